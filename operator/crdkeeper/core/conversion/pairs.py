"""Rules between a field of the hub and one of the spoke: how a value of one becomes a value of the other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from crdkeeper.api.versionconversion import ConversionRule
from crdkeeper.apiserver.schema.props import INT_OR_STRING, Schema
from crdkeeper.core.conversion.actions import over_list, over_map
from crdkeeper.core.conversion.alike import both_objects, difference
from crdkeeper.core.conversion.coverage import HUB, SPOKE
from crdkeeper.core.conversion.fieldpaths import ABSENT
from crdkeeper.core.conversion.standins import count_one
from crdkeeper.core.conversion.values import (
    DURATION_UNITS,
    MOVE,
    NOTHING,
    QUANTITY_UNITS,
    Convert,
    Converter,
    Unconvertible,
    casting,
    durations,
    keying,
    quantities,
    renaming,
    scaling,
    separating,
    strictly,
    wrapping,
)

SCALARS: Final = ("string", "integer", "number", "boolean")
_NUMBERS: Final = ("integer", "number")


class Unfit(ValueError):
    """A rule does not fit the schemas of its fields."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part
        """The part of the rule at fault, such as `.quantity`; empty for the rule as a whole."""


class Inner(Protocol):
    """Compiled rules for the objects in a list or a map (a `Scope`)."""

    exact: bool
    to_hub: Convert
    """Converts the spoke's object to the hub."""
    to_spoke: Convert
    """Converts the hub's object to the spoke."""

    @property
    def lossy(self) -> bool:
        """Whether rules allow something to be lost."""

    def forgiven(self, side: str, before: Any, after: Any) -> Any:
        """The object that it may have been."""


Within = Callable[[Schema, Schema, Sequence[ConversionRule]], Inner | None]
"""Compiles rules for inner objects with these schemas; None, after reporting errors, if that fails."""


def converter(
    rule: ConversionRule, kind: str, hub: Schema, spoke: Schema, within: Within, *, refuse: bool
) -> Converter | None:
    """Both directions of a rule; None if rules within it do not compile. Raises Unfit.

    With `refuse`, an item without counterpart leaves the whole list without one; otherwise the item is left
    out.

    Null becomes null whatever the rule, or no value if the other side does not allow null.
    """
    made = _converter(rule, kind, hub, spoke, within, refuse=refuse)
    nullable = bool(hub.get("nullable")), bool(spoke.get("nullable"))
    if made is None or not any(nullable):
        return made
    exact = made.exact and all(nullable)
    to_hub, to_spoke = _with_null(made.to_hub, nullable[0]), _with_null(made.to_spoke, nullable[1])
    return replace(made, to_hub=to_hub, to_spoke=to_spoke, exact=exact)


def _with_null(convert: Convert, nullable: bool) -> Convert:
    def converted(value: Any) -> Any:
        if value is not None:
            return convert(value)
        if not nullable:
            raise NOTHING
        return None

    return converted


def _converter(
    rule: ConversionRule, kind: str, hub: Schema, spoke: Schema, within: Within, *, refuse: bool
) -> Converter | None:
    types = hub.get("type"), spoke.get("type")
    match kind:
        case "":
            return _moved(hub, spoke)
        case "values":
            return _renamed(rule, hub, spoke)
        case "scale" if rule.scale and types[0] in _NUMBERS and types[1] in _NUMBERS:
            return scaling(rule.scale.hub, rule.scale.spoke, str(types[0]), str(types[1]))
        case "cast" if types[0] in SCALARS and types[1] in SCALARS:
            return casting(str(types[0]), str(types[1]))
        case "quantity":
            return _unit(kind, rule.quantity or "", quantities, QUANTITY_UNITS, hub, spoke)
        case "duration":
            return _unit(kind, rule.duration or "", durations, DURATION_UNITS, hub, spoke)
        case "separator":
            return _separated(rule.separator or "", hub, spoke)
        case "wrap":
            return _wrapped(rule, hub, spoke, within)
        case "key":
            return _keyed(rule, hub, spoke, within, _refuse if refuse else _leave_out)
        case "each":
            return _each(rule, hub, spoke, within)
    raise Unfit(f".{kind}", f"does not fit the types {types[0]} (hub) and {types[1]} (spoke)")


def _moved(hub: Schema, spoke: Schema) -> Converter:
    found = difference(hub, spoke)
    if found:
        raise Unfit("", f"the two fields are not alike: {found}")
    return MOVE


def _renamed(rule: ConversionRule, hub: Schema, spoke: Schema) -> Converter:
    pairs = [(each.hub, each.spoke) for each in rule.values or ()]
    if any(None in pair for pair in pairs):
        raise Unfit(".values", "must not contain null, which always becomes null")
    complete = True
    for side, schema, known in ((HUB, hub, [a for a, _ in pairs]), (SPOKE, spoke, [b for _, b in pairs])):
        enum = schema.get("enum")
        complete = complete and bool(enum)
        for value in enum or ():
            if value is not None and strictly(value) not in map(strictly, known):
                raise Unfit(".values", f"lacks {value!r}, which the {side} allows")
    one_to_one = all(len({strictly(pair[i]) for pair in pairs}) == len(pairs) for i in (0, 1))
    return renaming(pairs, exact=complete and one_to_one)


def _unit(
    kind: str,
    unit: str,
    make: Callable[[str, str], Converter],
    units: Sequence[str],
    hub: Schema,
    spoke: Schema,
) -> Converter:
    if unit not in units:
        raise Unfit(f".{kind}", f"{unit!r} is none of {', '.join(filter(None, units))}")
    texts = [schema.get("type") == "string" or bool(schema.get(INT_OR_STRING)) for schema in (hub, spoke)]
    numbers = [schema.get("type") in _NUMBERS for schema in (hub, spoke)]
    if texts[1] and numbers[0]:
        return make(unit, str(hub["type"]))
    if texts[0] and numbers[1]:
        return make(unit, str(spoke["type"])).swapped()
    raise Unfit(f".{kind}", "needs a string on one side and a number on the other")


def _separated(separator: str, hub: Schema, spoke: Schema) -> Converter:
    for text, list_, is_spoke in ((hub, spoke, True), (spoke, hub, False)):
        item = (list_.get("items") or {}).get("type")
        if text.get("type") == "string" and item in SCALARS:
            made = separating(separator, str(item))
            return made if is_spoke else made.swapped()
    raise Unfit(".separator", "needs a list of scalars on one side and a string on the other")


def _wrapped(rule: ConversionRule, hub: Schema, spoke: Schema, within: Within) -> Converter | None:
    lists = [schema.get("type") == "array" for schema in (hub, spoke)]
    if lists[0] == lists[1]:
        raise Unfit(".wrap", "needs a list on one side alone")
    pair = (hub.get("items") or {}, spoke) if lists[0] else (hub, spoke.get("items") or {})
    items, forgive = MOVE, None
    if rule.each is not None:
        _need_objects(*pair)
        inner = within(pair[0], pair[1], rule.each)
        if inner is None:
            return None
        items = Converter(inner.to_hub, inner.to_spoke, inner.exact)
        forgive = _first_forgiven(inner) if inner.lossy else None
    elif found := difference(*pair):
        raise Unfit(".wrap", f"the items are not like what stands alone: {found}; add each: [...]")
    made = wrapping(items) if lists[1] else wrapping(items.swapped()).swapped()
    return replace(made, forgive=forgive)


def _refuse(error: Unconvertible) -> None:
    raise error


def _leave_out(_: Unconvertible) -> None:
    count_one()


def _keyed(
    rule: ConversionRule,
    hub: Schema,
    spoke: Schema,
    within: Within,
    nameless: Callable[[Unconvertible], None],
) -> Converter | None:
    lists = [schema.get("type") == "array" for schema in (hub, spoke)]
    maps = [isinstance(schema.get("additionalProperties"), Mapping) for schema in (hub, spoke)]
    if not ((lists[0] and maps[1]) or (lists[1] and maps[0])):
        raise Unfit(".key", "needs a list of objects on one side and a map on the other")
    key = rule.key or ""
    list_, map_ = (hub, spoke) if lists[0] else (spoke, hub)
    items, values = dict(list_.get("items") or {}), map_["additionalProperties"]
    properties = dict(items.get("properties") or {})
    if (properties.pop(key, None) or {}).get("type") != "string":
        raise Unfit(".key", f"the items have no string {key}")
    items["properties"] = properties
    alone = None
    if values.get("type") != "object" and not values.get("properties"):
        if len(properties) != 1:
            raise Unfit(".key", f"the map has no objects: beside {key} the items must have one other field")
        (alone,) = properties
        values = {"type": "object", "properties": {alone: values}}
    # Inside, the map's side is the hub, as in `keying`.
    pair = (items, values) if lists[0] else (values, items)
    inner = within(pair[0], pair[1], rule.each or ())
    if inner is None:
        return None
    way = Converter(inner.to_hub, inner.to_spoke, inner.exact)
    way = way.swapped() if lists[0] else way
    if alone is not None:
        way = _unpacked(way, alone)
    made = keying(key, way, nameless)
    forgive = None if alone is not None else _each_forgiven(inner)
    return replace(made.swapped() if lists[0] else made, forgive=forgive)


def _unpacked(way: Converter, name: str) -> Converter:
    """To the hub: the value of the object's field `name`."""

    def unpack(value: Any) -> Any:
        made = way.to_hub(value)
        if name not in made:
            raise NOTHING
        return made[name]

    return Converter(unpack, lambda value: way.to_spoke({name: value}))


def _each(rule: ConversionRule, hub: Schema, spoke: Schema, within: Within) -> Converter | None:
    lists = [isinstance(schema.get("items"), Mapping) for schema in (hub, spoke)]
    maps = [isinstance(schema.get("additionalProperties"), Mapping) for schema in (hub, spoke)]
    if both_objects(hub, spoke):
        inner = within(hub, spoke, rule.each or ())
        if inner is None:
            return None
        forgive = inner.forgiven if inner.lossy else None
        return Converter(inner.to_hub, inner.to_spoke, inner.exact, forgive)
    if not all(lists) and not all(maps):
        raise Unfit(".each", "needs two lists or two maps of objects, or two objects")
    part = "items" if all(lists) else "additionalProperties"
    _need_objects(hub[part], spoke[part])
    inner = within(hub[part], spoke[part], rule.each or ())
    if inner is None:
        return None
    over = over_list if all(lists) else over_map
    return Converter(over(inner.to_hub), over(inner.to_spoke), inner.exact, _each_forgiven(inner))


def _need_objects(*schemas: Schema) -> None:
    for schema in schemas:
        if schema.get("type") != "object":
            raise Unfit(
                ".each", f"is for objects, not for {schema.get('type') or 'values of any type'}; use cel"
            )


def _each_forgiven(inner: Inner) -> Callable[[str, Any, Any], Any] | None:
    if not inner.lossy:
        return None

    def forgiven(side: str, before: Any, after: Any) -> Any:
        if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            return [inner.forgiven(side, one, other) for one, other in zip(before, after, strict=True)]
        if isinstance(before, dict) and isinstance(after, dict):
            return {key: inner.forgiven(side, each, after.get(key, ABSENT)) for key, each in before.items()}
        return before

    return forgiven


def _first_forgiven(inner: Inner) -> Callable[[str, Any, Any], Any]:
    def forgiven(side: str, before: Any, after: Any) -> Any:
        if isinstance(before, list):
            return [inner.forgiven(side, before[0], after[0]), *before[1:]] if before and after else before
        return inner.forgiven(side, before, after)

    return forgiven
