"""Shortcuts to a compiled schema and its verdict on a value, for the tests in this directory."""

from typing import Any

from crdkeeper.apiserver.objects.objectschema import Admitted, ObjectSchema
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA, Schema
from crdkeeper.apiserver.schema.violation import Report

TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVE}


def decoded(schema: dict[str, Any]) -> Schema:
    """A schema as the server decodes it; it must be one."""
    report = Report()
    found: Schema = SCHEMA.decode(schema, root("schema"), report)
    assert not report.violations, report
    return found


def resource(**properties: Any) -> ObjectSchema:
    """The schema of a resource whose spec has these properties."""
    spec = {"type": "object", "properties": properties}
    return ObjectSchema.of(decoded({"type": "object", "properties": {"spec": spec}}))


def thing(**spec: Any) -> dict[str, Any]:
    """An object with this spec."""
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec}


def admitted(schema: dict[str, Any], value: Any, *, old: Any = ...) -> Admitted:
    """The result for a value of spec.a, or for its change from `old`."""
    before = None if old is ... else thing(a=old)
    return resource(a=schema).admit(thing(a=value), before)


def said(outcome: Admitted) -> list[str]:
    """All violations as field and message; nothing may be left to the server."""
    assert outcome.unchecked == []
    return [f"{each.path}: {each.message}" for each in outcome.violations]


def stored(schema: dict[str, Any], value: Any) -> Any:
    """spec.a as it would be stored, or ... if it is not there."""
    return admitted(schema, value).object["spec"].get("a", ...)
