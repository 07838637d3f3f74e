"""What differs between an object and what becomes of it, field by field, for people."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from crdkeeper.api.meta import ApiModel
from crdkeeper.core.composites.appliednote import APPLIED
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL, OUTLIVES, RESOURCE_LABEL
from crdkeeper.core.conversion.nesting import dumps
from crdkeeper.core.servermessages import HIDDEN

_LONGEST: Final = 200
"""Characters of a value."""
_SERVERS: Final = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink")
"""In metadata: what the API server sets."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation that repeats the whole object, values of Secrets included."""
_UNSHOWN: Final = (APPLIED, OUTLIVES, COMPOSITE_LABEL, RESOURCE_LABEL, _LAST_APPLIED)
"""In labels and annotations: with the marks of the composite."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")


class FieldChange(ApiModel):
    """A field that differs; a value that is None was not there, or goes."""

    path: str
    before: str | None = None
    """As JSON, shortened."""
    after: str | None = None


def differences(
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    names: Mapping[str, str],
    *,
    copies_secrets: bool = False,
) -> Iterator[FieldChange]:
    """The fields that differ, in order; all of a new object if there is none before.

    `names` are uids that only the dry run has given, with what to write in their place. Values of an object
    that may have copies of values of Secrets are not shown: any field may be made of one.
    """
    new = before is None
    one, other = _shown(before or {}), _shown(after)
    if new:
        for key in ("ownerReferences", "name", "namespace"):
            other["metadata"].pop(key, None)
        # Its fields are told one by one.
        one = {key: {} for key, each in other.items() if isinstance(each, Mapping)}
    hidden = (after.get("apiVersion"), after.get("kind")) == ("v1", "Secret")
    for path, left, right in _differences(one, other, ()):
        if new and right in ({}, None):
            continue
        secret = copies_secrets or (hidden and path[0] in ("data", "stringData"))
        yield FieldChange(
            path=_text(path),
            before=_value(left, names, hidden=secret),
            after=_value(right, names, hidden=secret),
        )


_ABSENT: Final = object()


def _shown(value: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of an object that people compare."""
    metadata = {key: each for key, each in (value.get("metadata") or {}).items() if key not in _SERVERS}
    for key in ("labels", "annotations"):
        left = {name: each for name, each in (metadata.pop(key, None) or {}).items() if name not in _UNSHOWN}
        if left:
            metadata[key] = left
    rest = {
        key: each for key, each in value.items() if key not in ("apiVersion", "kind", "metadata", "status")
    }
    return {"metadata": metadata, **rest}


def _differences(one: Any, other: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in (*one, *(each for each in other if each not in one)):
            yield from _differences(one.get(key, _ABSENT), other.get(key, _ABSENT), (*path, str(key)))
        return
    if isinstance(one, list) and isinstance(other, list):
        before, after = _items(one), _items(other)
        if before is None or after is None:
            before = {f"[{at}]": each for at, each in enumerate(one)}
            after = {f"[{at}]": each for at, each in enumerate(other)}
        for key in (*before, *(each for each in after if each not in before)):
            yield from _differences(before.get(key, _ABSENT), after.get(key, _ABSENT), (*path, key))
        return
    if one is _ABSENT or other is _ABSENT or type(one) is not type(other) or one != other:
        yield path, one, other


def _items(values: list[Any]) -> dict[str, Any] | None:
    """The items of a list by their names; None if not all have one of their own."""
    named = {
        f"[name={each['name']}]": each
        for each in values
        if isinstance(each, Mapping) and isinstance(each.get("name"), str)
    }
    return named if len(named) == len(values) else None


def _text(path: tuple[str, ...]) -> str:
    text = ""
    for step in path:
        if step.startswith("["):
            text += step
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"['{step}']"
    return text


def _value(value: Any, names: Mapping[str, str], *, hidden: bool) -> str | None:
    if value is _ABSENT:
        return None
    if hidden:
        return HIDDEN
    text = dumps(value).decode(errors="replace")
    for uid, name in names.items():
        text = text.replace(uid, name)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"
