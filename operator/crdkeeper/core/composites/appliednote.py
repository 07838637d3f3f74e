"""Whether an object is still as it was applied, without applying it again.

Whoever changes a field becomes its manager: so if the object says that it was applied by the same
configuration, and managedFields that the composer still has all fields of it, nothing has changed. No values
are compared, because the API server writes some in another form.

The annotation also says which fields were applied: those are put back if somebody changes them, but a field
that is new in a configuration, and belongs to somebody else, is a conflict.
"""

import hashlib
import re
from base64 import b64decode, b64encode
from binascii import Error
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import orjson

from crdkeeper.api.meta import GROUP
from crdkeeper.core.conversion.nesting import dumps

APPLIED: Final = f"{GROUP}/applied"
_DIGEST: Final = 32
"""Characters of the annotation that are of the configuration as a whole."""
_SIZE: Final = 4
"""Bytes of a field in the annotation."""
_MOST: Final = 20_000
"""Fields that are listed: all annotations of an object have 256 KiB at most. What has more lists none."""
_ITEM: Final = re.compile(r'\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\]')
"""An item of a list in a path of the API server."""
_NAME: Final = re.compile(r'[\[,]name=("(?:[^"\\]|\\.)*")')
_KEY: Final = re.compile(r'[\[,]([^\[,=]+)=("(?:[^"\\]|\\.)*"|[^,\]]*)')
"""A key of an item with its value."""
_IDENTITY: Final = frozenset(("apiVersion", "kind"))
_METADATA_IDENTITY: Final = frozenset(("name", "namespace", "uid", "resourceVersion"))


def applied_note(configuration: Mapping[str, Any]) -> str:
    """The value of the annotation for a configuration, which does not have it yet."""
    digest = hashlib.sha256(dumps(configuration, sort=True)).hexdigest()[:_DIGEST]
    fields = sorted({_short(each) for each in _paths(configuration, "")})
    listed = b"".join(fields) if len(fields) <= _MOST else b""
    return f"{digest}.{b64encode(listed).decode()}"


def is_current(configuration: Mapping[str, Any], live: Mapping[str, Any], manager: str) -> bool:
    """Whether applying the configuration would change nothing in the object."""
    if not same_configuration(configuration, live):
        return False
    fields = applied_fields(live, manager)
    return fields is not None and _covers(fields, _without_identity(configuration))


def same_configuration(configuration: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether the object says that it was applied by this configuration."""
    return bool(_note(configuration)) and _note(configuration) == _note(live)


def was_applied(live: Mapping[str, Any], field: str) -> bool:
    """Whether a field, as the API server names it in a conflict, was applied before."""
    _, _, listed = _note(live).partition(".")
    try:
        content = b64decode(listed, validate=True)
    except (Error, ValueError):
        return False
    known = {content[at : at + _SIZE] for at in range(0, len(content), _SIZE)}
    path, at = "", 0
    for found in _ITEM.finditer(field):
        path += field[at : found.start()]
        at = found.end()
        step = _item(found)
        if step == "[]" and not _had_item(known, path, found[0]):
            return False
        path += step
    return _short(path + field[at:]) in known


def applied_fields(live: Mapping[str, Any], manager: str) -> Mapping[str, Any] | None:
    """The fields that this manager has applied at the version of the object; None if there are none."""
    for each in live["metadata"].get("managedFields") or ():
        if (
            each.get("manager") == manager
            and each.get("operation") == "Apply"
            and not each.get("subresource")
        ):
            same = each.get("apiVersion") == live.get("apiVersion")
            return each.get("fieldsV1") or {} if same else None
    return None


def fields_digest(live: Mapping[str, Any], manager: str) -> str:
    """Changes whenever another client takes over a field that was applied, or gives one back."""
    fields = applied_fields(live, manager)
    return hashlib.sha256(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def settled_digest(configuration: Mapping[str, Any], live: Mapping[str, Any], manager: str) -> str:
    """Changes whenever another configuration is to be applied, or others change what was.

    For objects that do not show what was applied, because admission or the schema changes it, or because the
    annotation is taken off.
    """
    return f"{_note(configuration)[:_DIGEST]}{fields_digest(live, manager)}"


def shape_digest(live: Mapping[str, Any]) -> str:
    """Changes with what others do to an object that is not its status: an apply may succeed now."""
    metadata = live["metadata"]
    managers = [
        {key: each.get(key) for key in ("manager", "operation", "fieldsV1")}
        for each in metadata.get("managedFields") or ()
        if each.get("subresource") != "status"
    ]
    shape = metadata["uid"], metadata.get("generation"), metadata.get("deletionTimestamp"), managers
    return hashlib.sha256(orjson.dumps(shape, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def is_settled(configuration: Mapping[str, Any], settled: str | None) -> bool:
    """Whether it is by this configuration that an object was settled, whoever has changed it since."""
    digest = _note(configuration)[:_DIGEST]
    return bool(digest) and settled is not None and settled.startswith(digest)


def _note(value: Mapping[str, Any]) -> str:
    return str((value["metadata"].get("annotations") or {}).get(APPLIED, ""))


def _short(path: str) -> bytes:
    return hashlib.sha256(path.encode(errors="surrogatepass")).digest()[:_SIZE]


def _had_item(known: Collection[bytes], path: str, item: str) -> bool:
    """Whether a list had an item with these keys, as far as that is known: some keys have defaults."""
    keys = _KEY.findall(item)
    same = [_short(f"{path}[{key}={value}]") in known for key, value in keys]
    unset = [_short(f"{path}[!{key}]") in known or _short(f"{path}[].{key}") not in known for key, _ in keys]
    return not keys or (any(same) and all(a or b for a, b in zip(same, unset, strict=True)))


def _paths(value: Any, path: str) -> Iterator[str]:
    """Each field, as a conflict names it. Items without a name have one path, and what tells them apart."""
    if path:
        yield path
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _paths(each, f"{path}.{key}")
    elif isinstance(value, list):
        yield from _keys(value, path)
        for each in value:
            name = each.get("name") if isinstance(each, Mapping) else None
            step = f"[name={orjson.dumps(name).decode()}]" if isinstance(name, str) else "[]"
            yield from _paths(each, f"{path}{step}")


def _keys(items: list[Any], path: str) -> Iterator[str]:
    """The values that tell items without a name apart, and which of them some items do not have."""
    unnamed = [each for each in items if isinstance(each, Mapping) and not isinstance(each.get("name"), str)]
    number: Counter[str] = Counter()
    for each in unnamed:
        for key, value in each.items():
            if isinstance(value, str | int):
                number[key] += 1
                yield f"{path}[{key}={dumps(value).decode(errors='surrogatepass')}]"
    yield from (f"{path}[!{key}]" for key, found in number.items() if found < len(unnamed))


def _item(found: re.Match[str]) -> str:
    name = _NAME.search(found[0])
    return f"[name={name[1]}]" if name is not None else "[]"


def _without_identity(configuration: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: each for key, each in configuration["metadata"].items() if key not in _METADATA_IDENTITY}
    rest = {key: each for key, each in configuration.items() if key not in _IDENTITY}
    return {**rest, "metadata": metadata}


def _covers(fields: Mapping[str, Any], value: Any) -> bool:
    """Whether all fields of a value are among the given ones, in the format FieldsV1."""
    if not fields:
        # Owned as a whole.
        return True
    if isinstance(value, Mapping):
        return all(f"f:{key}" in fields and _covers(fields[f"f:{key}"], each) for key, each in value.items())
    if isinstance(value, list):
        return all(_covers_item(fields, each) for each in value)
    return False


def _covers_item(fields: Mapping[str, Any], item: Any) -> bool:
    for key, inner in fields.items():
        what, _, text = key.partition(":")
        if what not in ("k", "v"):
            continue
        try:
            wanted = orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
        if what == "v":
            if wanted == item:
                return True
        elif (
            isinstance(item, Mapping)
            and isinstance(wanted, dict)
            # A part of the key that is not set has a default.
            and all(item.get(name, each) == each for name, each in wanted.items())
            and _covers(inner, item)
        ):
            return True
    return False
