"""The status subresource and the content of status."""

from crdkeeper.apiserver.schema.fieldpath import Step
from crdkeeper.apiserver.schema.props import LIST_MAP_KEYS, LIST_TYPE, PRESERVE
from crdkeeper.core.lint.checkeddefinition import CheckedDefinition, CheckedVersion
from crdkeeper.core.lint.conventions.definition import STATUS_IN_MANIFEST
from crdkeeper.core.lint.conventions.status import (
    CONDITIONS_FIELDS,
    CONDITIONS_LIST,
    OBSERVED_GENERATION,
    STATUS_FIELDS,
    STATUS_PHASE,
    STATUS_REQUIRED,
    STATUS_SCHEMA,
    STATUS_SUBRESOURCE,
)
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.place import SchemaPlace
from crdkeeper.core.lint.severity import Severity

_CONDITION = ("type", "status", "reason", "message", "lastTransitionTime", "observedGeneration")
_REQUIRED = frozenset(("type", "status"))
_REQUIRED_OF_METAV1 = frozenset(_CONDITION) - {"observedGeneration"}


def check_status_in_manifest(definition: CheckedDefinition, found: Findings) -> None:
    """Report a status in a manifest."""
    status = definition.manifest.get("status") if definition.manifest is not None else None
    if status:
        found.add(STATUS_IN_MANIFEST, "status", ("status",), "the manifest has a status")


def check_status(version: CheckedVersion, found: Findings) -> None:
    """Report on the status of one version."""
    root = version.root
    has_subresource = "status" in (version.declared.get("subresources") or {})
    status = root.child("status")
    if status is None:
        if has_subresource and not root.schema.get(PRESERVE):
            at: tuple[Step, ...] = (*root.steps[:3], "subresources", "status")
            message = "the schema has no property `status`"
            found.add(STATUS_SCHEMA, f"{root.version}:subresources.status", at, message)
        return
    if not has_subresource:
        # Some controllers deliberately write whole objects. But recording the generation then increments it.
        # A status that is required is written with the object: with the subresource, that would be refused.
        recorded = root.child("spec") is not None and status.child("observedGeneration") is not None
        defeated = recorded and not status.required
        severity = None if defeated else Severity.INFO
        status.report(found, STATUS_SUBRESOURCE, "is no subresource", severity=severity)
    if status.required:
        _check_required(status, found, has_subresource=has_subresource)
    if has_subresource and status.schema.get("required"):
        message = f"requires {', '.join(map(str, status.schema['required']))}"
        status.report(found, STATUS_FIELDS, message, "required")
    if status.child("phase") is not None:
        (status.child("phase") or status).report(found, STATUS_PHASE, "is a phase")
    conditions = status.child("conditions")
    item = conditions.items() if conditions is not None else None
    if conditions is not None and item is not None and item.child("type") is not None:
        _check_conditions(conditions, item, found)
    else:
        item = None
    _check_observed(status, item, found)


def _check_required(status: SchemaPlace, found: Findings, *, has_subresource: bool) -> None:
    if has_subresource:
        message = "is required at the root, but dropped from each object that is created"
        status.report(found, STATUS_REQUIRED, message)
        return
    # Then it shows when the first object is created, and most such objects are created by a controller.
    message = "is required at the root, so no object can be created without it"
    status.report(found, STATUS_REQUIRED, message, severity=Severity.INFO)


def _is_of_metav1(item: SchemaPlace) -> bool:
    """Whether the entries are metav1.Condition; lists of others may repeat a `type`."""
    fields = item.schema.get("properties") or {}
    required = item.schema.get("required") or ()
    return fields.keys() == set(_CONDITION) and _REQUIRED_OF_METAV1.issubset(required)


def _check_conditions(conditions: SchemaPlace, item: SchemaPlace, found: Findings) -> None:
    schema = conditions.schema
    if schema.get(LIST_TYPE) != "map" or schema.get(LIST_MAP_KEYS) != ["type"]:
        kind = schema.get(LIST_TYPE)
        message = "is no map by type" if kind != "map" else "is a map by other keys than type"
        # A schema does not show how many controllers write conditions. One needs no map.
        severity = Severity.WARNING if kind == "map" and _is_of_metav1(item) else None
        conditions.report(found, CONDITIONS_LIST, message, *((LIST_TYPE,) if kind else ()), severity=severity)
    missing = [name for name in _CONDITION if item.child(name) is None]
    optional = sorted(_REQUIRED - set(item.schema.get("required") or ()))
    faults = [f"lacks {', '.join(missing)}"] if missing else []
    if optional:
        faults.append(f"does not require {' and '.join(optional)}")
    if faults:
        conditions.report(found, CONDITIONS_FIELDS, " and ".join(faults))


def _check_observed(status: SchemaPlace, item: SchemaPlace | None, found: Findings) -> None:
    if item is None or status.schema.get(PRESERVE):
        # Without conditions, status usually contains plain facts, which need no observedGeneration.
        return
    if status.child("observedGeneration") is None and item.child("observedGeneration") is None:
        status.report(found, OBSERVED_GENERATION, "has no observedGeneration, nor have its conditions")
