"""Small CRDs and objects to rehearse."""

from typing import Any

from crdkeeper.core.rehearsal.definition import CompiledDefinition, compile_definition
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.judgement import Judge

Json = Any
TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
GROUP = "example.com"


def version(name: str = "v1", *, served: bool = True, storage: bool = True, **parts: Json) -> Json:
    """A version whose spec has these properties; `status` and `subresources` are separate."""
    properties: Json = {}
    for key in ("status",):
        if key in parts:
            properties[key] = parts.pop(key)
    subresources = parts.pop("subresources", None)
    rules = parts.pop("rules", None)
    required = parts.pop("required", None)
    spec: Json = {"type": "object", "properties": parts}
    if rules:
        spec["x-kubernetes-validations"] = rules
    if required:
        spec["required"] = required
    schema = {"type": "object", "properties": {"spec": spec, **properties}}
    found = {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}}
    return {**found, "subresources": subresources} if subresources else found


def crd(*versions: Json, **spec: Json) -> Json:
    """A CRD as stored by the API server."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "scope": "Namespaced",
            "conversion": {"strategy": "None"},
            "versions": list(versions),
            **spec,
        },
    }


def definition(*versions: Json, **spec: Json) -> CompiledDefinition:
    """The same, compiled."""
    return compile_definition(crd(*versions, **spec))


def widget(spec: Json, version: str = "v1", **fields: Json) -> Json:
    """An object."""
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": spec,
        **fields,
    }


def effects(old: CompiledDefinition | None, new: CompiledDefinition, obj: Json) -> list[Effect]:
    """All predictions for an object."""
    return Judge(old, new).predict(obj).effects


def told(found: list[Effect]) -> set[tuple[EffectKind, str, str]]:
    """The kinds, fields and versions."""
    return {(each.kind, each.field, each.version) for each in found}
