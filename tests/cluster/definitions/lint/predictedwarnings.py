"""The API server's warnings about a CRD: the texts of the Warning headers of its response.

As in WarningsOnCreate and WarningsOnUpdate of CRDs in k8s.io/apiextensions-apiserver (Kubernetes 1.37), and
those of k8s.io/apiserver for every kind. kubectl shows each one; a warning never rejects anything.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from crdkeeper.apiserver.definitions.rules.internalform import Decoded, internal
from crdkeeper.apiserver.golang.text import quote
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Step
from crdkeeper.apiserver.schema.formats import is_supported
from crdkeeper.apiserver.schema.props import LIST_TYPE, Schema, subschemas
from crdkeeper.apiserver.schema.violation import Report

_MOST_UNKNOWN = 100
"""The server's decoder reports no more unknown fields than this."""

_NAMED = frozenset(("properties", "patternProperties", "definitions"))
_LISTED = frozenset(("allOf", "anyOf", "oneOf"))
_DECODED_APART = frozenset(("items", "additionalProperties", "additionalItems", "dependencies"))


def general_warnings(crd: Decoded, report: Report) -> tuple[str, ...]:
    """Warnings about any object, even a rejected one; `report` is from decoding it."""
    steps = [each.path.steps for each in report.warnings if each.rule is rules.UNKNOWN_FIELD]
    seen = dict.fromkeys(_dotted(each) for each in steps if not _is_overlooked(each))
    unknown = [f"unknown field {quote(each)}" for each in list(seen)[:_MOST_UNKNOWN]]
    return _once([*unknown, *_owner_warnings(crd.get("metadata", {}).get("ownerReferences", ()))])


def creation_warnings(crd: Decoded) -> tuple[str, ...]:
    """Warnings about a new CRD that is accepted."""
    schemas = internal(crd).schemas
    return _once([*_format_warnings(schemas), *_set_warnings(schemas)])


def update_warnings(new: Decoded, old: Decoded) -> tuple[str, ...]:
    """Warnings about an accepted update that the old CRD did not cause."""
    said = set(creation_warnings(old))
    return tuple(each for each in creation_warnings(new) if each not in said)


def _once(warnings: Iterable[str]) -> tuple[str, ...]:
    # A text with control characters cannot be in a header.
    return tuple(dict.fromkeys(each for each in warnings if not any(map(_is_control, each))))


def _is_control(char: str) -> bool:
    return ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0


def _dotted(steps: Sequence[Step]) -> str:
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in steps).removeprefix(".")


def _is_overlooked(steps: Sequence[Step]) -> bool:
    """Whether an unknown field is where the server's decoder of schemas does not report any."""
    if "openAPIV3Schema" not in steps:
        return False
    at = steps.index("openAPIV3Schema") + 1
    while at < len(steps) - 1:
        keyword = steps[at]
        if keyword in _DECODED_APART:
            return True
        at += 2 if keyword in _NAMED or keyword in _LISTED else 1
    return False


def _owner_warnings(owners: Sequence[Decoded]) -> Iterator[str]:
    kept: set[tuple[tuple[str, Any], ...]] = set()
    duplicates: list[str] = []
    for each in owners:
        key = tuple(sorted(each.items()))
        if key in kept:
            duplicates.append(each.get("uid", ""))
        kept.add(key)
    if duplicates:
        yield (
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in "
            "1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate "
            f"UID(s) observed: {', '.join(duplicates)}"
        )


def _format_warnings(schemas: Iterable[Schema]) -> Iterator[str]:
    for each in _nodes(schemas):
        format_ = each.get("format")
        if format_ and not is_supported(format_, each.get("type", "")):
            yield f"unrecognized format {quote(format_)}"


def _set_warnings(schemas: Iterable[Schema]) -> list[str]:
    types = set()
    for each in _nodes(schemas):
        items = each.get("items")
        if each.get(LIST_TYPE) == "set" and isinstance(items, dict):
            types.add(items.get("type"))
    return [
        f"x-kubernetes-list-type: set for items of type {quote(each)} is not supported by server-side apply "
        "or CEL validation rules"
        for each in ("array", "object")
        if each in types
    ]


def _nodes(schemas: Iterable[Schema]) -> Iterator[Schema]:
    stack = list(schemas)
    while stack:
        schema = stack.pop()
        yield schema
        stack += subschemas(schema)
