"""The mapped fields of a composite's status, so that the API server accepts the status.

It accepts or refuses a status as a whole. One field that is not in an enum, or lacks what its schema
requires, would keep the conditions and the list of resources from being written, too. So what it would refuse
is left out, with the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.objects.objectnode import copied
from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.core.composition.injected import STATUS_FIELDS
from crdkeeper.core.templates.rendered import Rendering
from crdkeeper.core.templates.statusgap import StatusGap, StatusGapKind


@dataclass(frozen=True, slots=True)
class MappedStatus:
    """What the status of a composite is to be."""

    status: dict[str, Any]
    """The mapped fields, and those that crdkeeper writes, as they are."""
    gaps: tuple[StatusGap, ...]
    """The mapped fields that have no value, or one that the API server would refuse."""


def mapped_status(rendering: Rendering, composite: Mapping[str, Any], schema: ObjectSchema) -> MappedStatus:
    """The status of a composite after a rendering; `schema` is that of its version.

    A field without a value keeps the one that it has, unless it needs an excluded resource. A field that the
    API server would refuse keeps its value, too; if that does not help, it is left out.
    """
    given = composite.get("status")
    live = given if isinstance(given, dict) else {}
    ours = {name: each for name, each in live.items() if name in STATUS_FIELDS}
    before = {name: each for name, each in live.items() if name not in STATUS_FIELDS}
    if not rendering.status and not rendering.gaps:
        return MappedStatus(dict(live), ())
    fields = _with_kept(rendering, before)
    found = _errors(composite, {**ours, **fields}, schema)
    # What is wrong without these fields, too, has another cause.
    others = _errors(composite, ours, schema) if found else []
    refused: dict[str, str] = {}
    for fallback in (before, {}, None):
        wrong = [each for each in found if each not in others]
        if not wrong:
            break
        if fallback is None:
            refused = dict.fromkeys(fields, wrong[0][1]) | refused
            fields = {}
            break
        named = {name for name, _ in wrong} & fields.keys()
        for name in sorted(named or fields.keys()):
            messages = [message for each, message in wrong if each == name]
            refused.setdefault(name, (messages or [wrong[0][1]])[0])
            value = fields.pop(name)
            if name in fallback and fallback[name] != value:
                fields[name] = fallback[name]
        found = _errors(composite, {**ours, **fields}, schema)
    at = root("spec").child("status")
    gaps = [
        StatusGap(at.child(name), StatusGapKind.FAILED, f"the API server would refuse it: {message}")
        for name, message in refused.items()
    ]
    return MappedStatus({**ours, **fields}, (*rendering.gaps, *gaps))


def _with_kept(rendering: Rendering, before: Mapping[str, Any]) -> dict[str, Any]:
    """The rendered fields, with the values that those without one keep."""
    fields: dict[str, Any] = copied(rendering.status)
    for gap in rendering.gaps:
        if gap.kind is StatusGapKind.EXCLUDED:
            continue
        if not gap.status_path:
            return {**before, **fields}
        _keep(fields, before, gap.status_path)
    return fields


def _keep(fields: dict[str, Any], before: Mapping[str, Any], path: tuple[str, ...]) -> None:
    value: Any = before
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return
        value = value[name]
    inner: Any = fields
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
        if not isinstance(inner, dict):
            return
    inner[path[-1]] = value


def _errors(
    composite: Mapping[str, Any], status: Mapping[str, Any], schema: ObjectSchema
) -> list[tuple[str, str]]:
    """Each field of status that the API server would refuse, with the reason without its value.

    The name is empty if the reason is not in one field.
    """
    admitted = schema.admit({**composite, "status": dict(status)}, dict(composite))
    found = []
    for each in admitted.violations:
        steps = each.path.steps
        if steps[:1] != ("status",) and steps:
            continue
        name = steps[1] if len(steps) > 1 else ""
        message = ": ".join(part for part in (str(each.path), each.kind, each.detail) if part)
        found.append((str(name), message))
    return found
