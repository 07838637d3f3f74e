"""The schema of a version with the fields that every composite has. Keeps every keyword of the user's schema.

What cannot be combined with them is unchanged here; `traps` reports it.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from crdkeeper.api import crdgen
from crdkeeper.api.composite import CompositeSettings, CompositeStatus
from crdkeeper.api.meta import UNSEEN
from crdkeeper.apiserver.objects.objectnode import copied
from crdkeeper.apiserver.objects.objectschema import CannotCompile, ObjectSchema
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import PRESERVE, SCHEMA, VALIDATIONS
from crdkeeper.apiserver.schema.structural import conversion_error
from crdkeeper.apiserver.schema.violation import Report

Schema = dict[str, Any]

MOST_OF_A_NAME: Final = 63
"""The longest name of a composite, which becomes the value of a label."""
SETTINGS: Final = "crdkeeper"
"""The field in spec."""
STATUS_FIELDS: Final = ("crdkeeper", "conditions", "observedGeneration")
"""The fields in status."""
_FIRST_STATUS: Final = {"observedGeneration": UNSEEN}
_STATUS: Final = re.compile(r"\bstatus\b")


def with_composite_fields(schema: Mapping[str, Any], *, first_status: bool) -> Schema:
    """A version's schema in the CRD; `first_status`: with a default for status.

    An object is read with the defaults of the version that it is stored in, and then converted: either all
    versions allow the default, or none has it.
    """
    made: Schema = copied(schema)
    made.setdefault("type", "object")
    properties = made.setdefault("properties", {})
    kept = {PRESERVE: True} if made.get(PRESERVE) is True else {}
    if isinstance(properties, dict):
        _limit_name(properties)
        properties.setdefault("spec", {"type": "object", **kept})
        properties.setdefault("status", {"type": "object", **kept})
        _add(properties["spec"], {SETTINGS: crdgen.schema_of(CompositeSettings)})
        _add(properties["status"], _status_fields())
        if first_status:
            given = properties["status"].get("default")
            properties["status"]["default"] = {**(given or {}), **_FIRST_STATUS}
    return made


def takes_fields(part: object) -> TypeGuard[Schema]:
    """Whether fields can be added to the schema of spec or status."""
    return (
        isinstance(part, dict)
        and isinstance(part.get("properties", {}), dict)
        and ("additionalProperties" not in part)
    )


def may_default_status(schema: Mapping[str, Any]) -> bool:
    """Whether an object can have a status of only observedGeneration, by its schema and the root's rules.

    The API server validates the status again with each change of spec, so an invalid default would make every
    change fail.
    """
    rules = schema.get(VALIDATIONS)
    if any(_STATUS.search(str(each)) for each in (rules if isinstance(rules, list) else ())):
        return False
    return first_status_errors(schema) == []


def first_status_errors(schema: Mapping[str, Any]) -> list[str] | None:
    """Why the schema of status rejects one with only observedGeneration; None if only the server can tell."""
    properties = schema.get("properties", {})
    part = properties.get("status", {"type": "object"}) if isinstance(properties, dict) else None
    if not takes_fields(part) or part.get("type") != "object":
        return None
    given = part.get("default")
    if not isinstance(given, dict | None):
        return None
    part = copied({key: each for key, each in part.items() if key != "default"})
    part.setdefault("properties", {}).update(_status_fields())
    report = Report()
    decoded = SCHEMA.decode({"type": "object", "properties": {"status": part}}, root("schema"), report)
    if report.violations or conversion_error(decoded) is not None:
        return None
    try:
        admitted = ObjectSchema.of(decoded).admit(
            {"metadata": {"name": "x"}, "status": {**(given or {}), **_FIRST_STATUS}}
        )
    except CannotCompile:
        return None
    if admitted.unchecked:
        return None
    return [f"{each.path}: {each.message}" for each in admitted.violations]


def _status_fields() -> Schema:
    fields: Schema = crdgen.schema_of(CompositeStatus, status=True)["properties"]
    fields["observedGeneration"]["default"] = UNSEEN
    return fields


def _add(part: object, fields: Schema) -> None:
    if takes_fields(part):
        part["properties"] = {**part.get("properties", {}), **fields}


def _limit_name(properties: Schema) -> None:
    metadata = properties.setdefault("metadata", {"type": "object"})
    if not isinstance(metadata, dict):
        return
    known = metadata.setdefault("properties", {})
    if not isinstance(known, dict):
        return
    name = known.setdefault("name", {"type": "string"})
    if isinstance(name, dict):
        given = name.get("maxLength")
        name["maxLength"] = min(given, MOST_OF_A_NAME) if isinstance(given, int) else MOST_OF_A_NAME
