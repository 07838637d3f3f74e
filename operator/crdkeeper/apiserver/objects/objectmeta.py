"""apiVersion, kind and metadata of objects and of embedded resources, as the API server reads them.

metadata is decoded into typed fields and written back: fields that ObjectMeta does not have are dropped,
empty ones are omitted, times are normalized (apiextensions-apiserver: objectmeta.Coerce, GetObjectMeta). A
value of another type causes the whole request to be rejected.
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from crdkeeper.apiserver.objects.jsonvalue import stored
from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.apiserver.objects.valuerules import DECODE
from crdkeeper.apiserver.schema.fieldpath import joined
from crdkeeper.apiserver.schema.finding import (
    INVALID,
    NO_FINDINGS,
    FieldError,
    FieldErrors,
    Step,
    UndecidedValue,
    below,
)


class Malformed(Exception):
    """A field of metadata does not have ObjectMeta's type."""


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed("must be a string")
    return value


def _texts(value: Any) -> list[str]:
    return [_text(each) for each in _list(value)]


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed("must be an array")
    return value


def _text_map(value: Any) -> dict[str, str]:
    return {key: _text(each) for key, each in _map(value).items()}


def _map(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Malformed("must be an object")
    return value


def _integer(value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise Malformed("must be a 64-bit integer")
    return value


def _count(value: Any) -> int | None:
    return _integer(value) or None


def _flag(value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise Malformed("must be a boolean")
    return value


_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,]\d+)?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)


def _time(value: Any) -> str | None:
    if value is None:
        return None
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise Malformed("must be a time such as 2006-01-02T15:04:05Z")
    year, month, day, hour, minute, second = (int(each) for each in found.groups()[:6])
    sign, hours, minutes = found[7], int(found[8] or 0), int(found[9] or 0)
    if hours > 24 or minutes > 60:
        raise Malformed("has no such offset")
    if year == 0 or (year, month, day) == (1, 1, 1):
        raise UndecidedValue("times of the years 0 and 1 are not decided here")
    try:
        local = datetime(year, month, day, hour, minute, second)
    except ValueError:
        raise Malformed("is no time that exists") from None
    offset = timedelta(hours=hours, minutes=minutes)
    try:
        utc = local + offset if sign == "-" else local - offset
    except OverflowError:
        raise UndecidedValue("times beyond the year 9999 are not decided here") from None
    return f"{utc:%Y-%m-%dT%H:%M:%SZ}".zfill(20)


def _fields(value: Any) -> Any:
    # The server keeps it as a text of JSON, which is not empty.
    return value


def _owners(value: Any) -> list[dict[str, Any]]:
    found = []
    for each in _list(value):
        owner = _decoded(_map(each), _OWNER)
        found.append({**dict.fromkeys(("apiVersion", "kind", "name", "uid"), ""), **owner})
    return found


def _managers(value: Any) -> list[dict[str, Any]]:
    return [_decoded(_map(each), _MANAGER) for each in _list(value)]


_Decoder = Callable[[Any], Any]

_OWNER: dict[str, _Decoder] = {
    "apiVersion": _text,
    "kind": _text,
    "name": _text,
    "uid": _text,
    "controller": _flag,
    "blockOwnerDeletion": _flag,
}
OWNER_FIELDS: Final = tuple(_OWNER)
"""Those of an owner reference, in the order in which the API server shows them."""
_MANAGER: dict[str, _Decoder] = {
    "manager": _text,
    "operation": _text,
    "apiVersion": _text,
    "time": _time,
    "fieldsType": _text,
    "fieldsV1": _fields,
    "subresource": _text,
}
_METADATA: dict[str, _Decoder] = {
    "name": _text,
    "generateName": _text,
    "namespace": _text,
    "selfLink": _text,
    "uid": _text,
    "resourceVersion": _text,
    "generation": _count,
    "creationTimestamp": _time,
    "deletionTimestamp": _time,
    "deletionGracePeriodSeconds": _integer,
    "labels": _text_map,
    "annotations": _text_map,
    "ownerReferences": _owners,
    "finalizers": _texts,
    "managedFields": _managers,
}


def _decoded(raw: dict[str, Any], fields: dict[str, _Decoder]) -> dict[str, Any]:
    """What ObjectMeta keeps: the fields that it has, without empty ones."""
    found = {}
    for key, each in raw.items():
        decode = fields.get(key)
        if decode is None:
            continue
        try:
            value = decode(each)
        except Malformed as error:
            raise Malformed(f"{key}: {error}") from None
        if value is not None and (decode is _fields or (value != "" and value != {} and value != [])):
            found[key] = value
    return found


def object_meta(raw: Any) -> dict[str, Any]:
    """metadata as the API server returns it. Raises Malformed, UndecidedValue."""
    # The server first writes it as JSON, which makes an integer of 1.0.
    return _decoded(_map(stored(raw)), _METADATA)


def unknown_fields(raw: Any, path: str) -> Iterator[str]:
    """The paths of the fields that ObjectMeta does not have."""
    if not isinstance(raw, dict):
        return
    for key in raw:
        if key not in _METADATA:
            yield joined((path, f".{key}"))
    for key, fields in (("ownerReferences", _OWNER), ("managedFields", _MANAGER)):
        entries = raw.get(key)
        for i, each in enumerate(entries if isinstance(entries, list) else ()):
            for name in each if isinstance(each, dict) else ():
                if name not in fields:
                    yield joined((path, f".{key}[{i}].{name}"))


def unknown_in_embedded(value: Any, node: ObjectNode | None, path: str = "") -> Iterator[str]:
    """The unknown fields in the metadata of the resources embedded in a value, before coercion."""
    if node is None or not node.has_embedded:
        return
    if type(value) is dict:
        if node.embedded:
            yield from unknown_fields(value.get("metadata"), f"{path}.metadata".removeprefix("."))
        for key, each in value.items():
            child = node.child(key)
            if child is not None and child.has_embedded:
                step = f".{key}" if key in node.properties else f"[{key}]"
                yield from unknown_in_embedded(each, child, joined((path, step)).removeprefix("."))
    elif type(value) is list:
        for i, each in enumerate(value):
            yield from unknown_in_embedded(each, node.items, joined((path, f"[{i}]")))


def _lenient(raw: Any) -> Any:
    """metadata without the fields that cannot be decoded; unchanged if it is not an object."""
    try:
        return object_meta(raw)
    except Malformed:
        pass
    if not isinstance(raw, dict):
        return raw
    kept: dict[str, Any] = {}
    for key, each in raw.items():
        try:
            kept |= object_meta({key: each})
        except Malformed:
            continue
    return kept


def coerce(value: Any, node: ObjectNode | None, *, lenient: bool = False) -> FieldErrors:
    """Normalize the embedded resources in a value, in place; returns what cannot be decoded.

    With `lenient`, as when an old object is read, that is dropped instead. Raises UndecidedValue.
    """
    if node is None or not node.has_embedded:
        return NO_FINDINGS
    found: list[FieldError] = []
    if type(value) is dict:
        if node.embedded:
            found += _coerce_resource(value, lenient)
        for key, each in value.items():
            child = node.child(key)
            if child is not None and child.has_embedded:
                step = Step.FIELD if key in node.properties else Step.KEY
                found += below(step, key, coerce(each, child, lenient=lenient))
    elif type(value) is list:
        for i, each in enumerate(value):
            found += below(Step.INDEX, i, coerce(each, node.items, lenient=lenient))
    return found


def _coerce_resource(value: dict[str, Any], lenient: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            if lenient:
                del value[key]
            else:
                found += below(Step.FIELD, key, [FieldError(DECODE, INVALID, value[key], "must be a string")])
    if "metadata" not in value:
        return found
    try:
        value["metadata"] = _lenient(value["metadata"]) if lenient else object_meta(value["metadata"])
    except Malformed as error:
        found += below(Step.FIELD, "metadata", [FieldError(DECODE, INVALID, value["metadata"], str(error))])
    return found
