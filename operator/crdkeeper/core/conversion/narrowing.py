"""The part of a schema that the rules can convert: most schemas allow any string where a quantity is needed.

Objects generated from the narrowed schema (`samples`) show what rules do with the values they are meant for.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from crdkeeper.api.versionconversion import ConversionRule, VersionConversionSpec
from crdkeeper.apiserver.schema.props import INT_OR_STRING, LIST_MAP_KEYS, LIST_TYPE, Schema
from crdkeeper.core.conversion import fieldpaths
from crdkeeper.core.conversion.coverage import HUB, SPOKE
from crdkeeper.core.conversion.fieldpaths import BadPath, Steps
from crdkeeper.core.conversion.values import strictly

_QUANTITIES: Final = ("1Gi", "512Mi", "1500m", "2", "100k", "0", "1500000Ki")
_DURATIONS: Final = ("30s", "1m30s", "1h0m0s", "1500ms", "24h", "0s")
_NUMERALS: Final[Mapping[Any, Sequence[str]]] = {
    "integer": ("8080", "1", "0", "-1"),
    "number": ("0.5", "2", "-1.25"),
    "boolean": ("true", "false"),
}
_PARTS: Final[Mapping[Any, Sequence[str]]] = {"string": ("one", "example.com"), **_NUMERALS}
_TEXTS_SHOWN: Final = 3


def narrowed(spec: VersionConversionSpec, schemas: Mapping[str, Schema], version: str) -> Schema:
    """The schema of a version, restricted to values that the rules can convert.

    Rules for annotations and labels change nothing, because schemas do not contain these.
    """
    schema = schemas[version]
    for spoke in spec.spokes:
        if version in (spec.hub, spoke.version):
            side = HUB if version == spec.hub else SPOKE
            other = schemas[spoke.version if side == HUB else spec.hub]
            schema = _object(schema, other, side, spoke.rules)
    return schema


def _object(schema: Schema, other: Schema, side: str, rules: Iterable[ConversionRule]) -> Schema:
    for rule in rules:
        own, far = (rule.hub, rule.spoke) if side == HUB else (rule.spoke, rule.hub)
        steps = _steps(own)
        field = _at(schema, steps)
        if field is None:
            continue
        if rule.join is not None:
            types = {
                name: (_at(other, _steps(path)) or {}).get("type") for name, path in rule.join.parts.items()
            }
            made = _only(field, _joined(rule.join.template, types))
        else:
            made = _value(field, _at(other, _steps(far)) or {}, side, rule)
        schema = _with(schema, steps, made)
    return schema


def _value(schema: Schema, other: Schema, side: str, rule: ConversionRule) -> Schema:
    text = schema.get("type") == "string" or bool(schema.get(INT_OR_STRING))
    if rule.values is not None:
        return _only(schema, [each.hub if side == HUB else each.spoke for each in rule.values])
    if rule.quantity is not None and text:
        return _only(schema, _QUANTITIES)
    if rule.duration is not None and text:
        return _only(schema, _DURATIONS)
    if rule.cast is not None and text:
        return _only(schema, _NUMERALS.get(other.get("type"), ()))
    if rule.cast is not None and other.get("type") == "boolean":
        return _only(schema, (0, 1))
    if rule.separator is not None and schema.get("type") == "string":
        known = _NUMERALS.get((other.get("items") or {}).get("type"), ())
        return _only(schema, ["", known[0], rule.separator.join(known)] if known else ())
    if rule.key is not None:
        return _keyed(schema, other, side, rule)
    return _within(schema, other, side, rule.each or ())


def _within(schema: Schema, other: Schema, side: str, rules: Sequence[ConversionRule]) -> Schema:
    """The content of a list or a map, or the object itself, next to its counterpart on the other side."""
    part, other_part = _inner(schema), _inner(other)
    other = other[other_part] if other_part else other
    return (
        {**schema, part: _object(schema[part], other, side, rules)}
        if part
        else _object(schema, other, side, rules)
    )


def _keyed(schema: Schema, other: Schema, side: str, rule: ConversionRule) -> Schema:
    key, rules = rule.key or "", rule.each or ()
    part, other_part = _inner(schema), _inner(other)
    if part is None or other_part is None or part == other_part:
        return schema
    own, far = schema[part], other[other_part]
    items, values = (own, far) if part == "items" else (far, own)
    alone = next((name for name in items.get("properties") or {} if name != key), None)
    packed = alone is not None and values.get("type") != "object"
    if packed:
        values = {"properties": {alone: values}}
    if part == "items":
        required = dict.fromkeys((*(items.get("required") or ()), key))
        made = {**_object(items, values, side, rules), "required": list(required)}
        return {**schema, part: made, LIST_TYPE: "map", LIST_MAP_KEYS: [key]}
    made = dict(_object(values, items, side, rules))
    return {**schema, part: made["properties"][alone] if packed else made}


def _joined(template: str, types: Mapping[str, Any]) -> Sequence[str]:
    texts = []
    for i in range(_TEXTS_SHOWN):
        text = template
        for name, type_ in types.items():
            known = _PARTS.get(type_, ("",))
            text = text.replace(f"{{{name}}}", known[i % len(known)])
        texts.append(text)
    return texts


def _only(schema: Schema, values: Sequence[Any]) -> Schema:
    """The schema with only these values; of an enum, those that it contains."""
    allowed = {strictly(each) for each in schema.get("enum") or values}
    left = [each for each in values if strictly(each) in allowed]
    return {**schema, "enum": left} if left else schema


def _steps(path: str | None) -> Steps:
    try:
        return fieldpaths.parse(path or "")
    except BadPath:
        return ()


def _at(schema: Schema, steps: Steps) -> Schema | None:
    if not steps:
        return None
    for step in steps:
        part = _part(schema, step)
        if part is None:
            return None
        schema = schema[part][step] if part == "properties" else schema[part]
    return schema


def _with(schema: Schema, steps: Steps, made: Schema) -> Schema:
    if not steps:
        return made
    part = _part(schema, steps[0]) or ""
    if part == "properties":
        inner = _with(schema[part][steps[0]], steps[1:], made)
        return {**schema, part: {**schema[part], steps[0]: inner}}
    # All entries and items are restricted together with the one that the rule names.
    return {**schema, part: _with(schema[part], steps[1:], made)}


def _part(schema: Schema, step: str) -> str | None:
    """The part of a schema to which the next step leads."""
    if isinstance((schema.get("properties") or {}).get(step), Mapping):
        return "properties"
    part = _inner(schema)
    return None if part == "items" and step != "0" else part


def _inner(schema: Schema) -> str | None:
    """The keyword with the schema of a list's items or a map's values."""
    return next(
        (key for key in ("items", "additionalProperties") if isinstance(schema.get(key), Mapping)), None
    )
