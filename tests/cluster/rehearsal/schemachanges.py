"""Changes of a schema that authors make, each where the objects are affected."""

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.cluster.rehearsal.fitting import Maker, Unfit
from tests.cluster.rehearsal.spots import NotHere, Spot, choose, holds

Json = Any
PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
RULES = "x-kubernetes-validations"
_VALUE_KEYWORDS = (
    "enum", "pattern", "format", "minLength", "maxLength", "minimum", "maximum", "multipleOf", "default",
    "minItems", "maxItems", "items", "properties", "additionalProperties", "required", "anyOf", "oneOf",
    "allOf", "not", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", RULES,
    PRESERVE, INT_OR_STRING, "x-kubernetes-embedded-resource", "minProperties", "maxProperties",
    "exclusiveMinimum", "exclusiveMaximum", "nullable",
)  # fmt: skip


def field_removed(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A field that some objects have is gone."""
    spot = choose(crd, objects, random, lambda each: bool(each.values))
    del spot.owner["properties"][spot.name]
    _not_required(spot)


def _not_required(spot: Spot) -> None:
    if spot.name in spot.owner.get("required", ()):
        spot.owner["required"] = [each for each in spot.owner["required"] if each != spot.name]


def field_renamed(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A field has another name, and may be required."""
    spot = choose(crd, objects, random, lambda each: bool(each.values))
    spot.owner["properties"][f"{spot.name}Renamed"] = spot.owner["properties"].pop(spot.name)
    if spot.name in spot.owner.get("required", ()):
        _not_required(spot)
        if random.random() < 0.5:
            spot.owner["required"] = [*spot.owner["required"], f"{spot.name}Renamed"]


def type_changed(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A field has another type."""
    spot = choose(crd, objects, random, lambda each: bool(each.values) and bool(each.schema.get("type")))
    others = [each for each in ("string", "integer", "boolean", "object") if each != spot.schema["type"]]
    _bare(spot.schema)
    spot.schema["type"] = random.choice(others)


def _bare(schema: Json) -> None:
    for key in _VALUE_KEYWORDS:
        schema.pop(key, None)


def required_added(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A field that some objects lack is required."""
    spot = choose(
        crd,
        objects,
        random,
        lambda each: each.name not in each.owner.get("required", ()) and len(each.values) < len(each.parents),
    )
    spot.owner["required"] = [*spot.owner.get("required", ()), spot.name]


def new_required_field(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A new field is required, perhaps with a default."""
    spot = choose(crd, objects, random, lambda each: each.depth > 0)
    new = {"type": "string"}
    if random.random() < 0.5:
        new["default"] = "filled"
    spot.owner["properties"]["freshField"] = new
    spot.owner["required"] = [*spot.owner.get("required", ()), "freshField"]


def enum_narrowed(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """Only one of the values is allowed."""
    spot = choose(crd, objects, random, holds("string", "integer"))
    known = [each for each in spot.values if each is not None]
    if not known:
        raise NotHere
    spot.schema["enum"] = [random.choice(known)]


def text_tightened(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A text is limited by its length, a pattern or a format."""
    spot = choose(crd, objects, random, holds("string"))
    lengths = [len(each) for each in spot.values if isinstance(each, str)]
    keyword, value = random.choice(
        (
            ("maxLength", max(0, max(lengths, default=1) - 1)),
            ("minLength", min(lengths, default=0) + 1),
            ("pattern", "^[a-m]+$"),
            ("pattern", r"^\d+$"),
            ("format", random.choice(("date-time", "ipv4", "uri", "duration", "date"))),
        )
    )
    spot.schema[keyword] = value


def number_tightened(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A number has bounds."""
    spot = choose(crd, objects, random, holds("integer", "number"))
    known = [each for each in spot.values if isinstance(each, int | float)] or [0]
    spot.schema.update(
        random.choice(({"maximum": min(known)}, {"minimum": max(known)}, {"multipleOf": 7}, {"maximum": -5}))
    )


def size_tightened(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A list or an object has more or fewer parts than is allowed."""
    spot = choose(crd, objects, random, holds("array", "object"))
    noun = "Items" if spot.schema["type"] == "array" else "Properties"
    sizes = [len(each) for each in spot.values if isinstance(each, list | dict)] or [1]
    spot.schema.update(
        random.choice(({f"max{noun}": max(0, max(sizes) - 1)}, {f"min{noun}": min(sizes) + 1}))
    )


def default_added(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A field that some objects lack has a default."""
    spot = choose(
        crd,
        objects,
        random,
        lambda each: "default" not in each.schema and len(each.values) < len(each.parents) and each.depth > 0,
    )
    try:
        spot.schema["default"] = Maker(random).value(spot.schema)
    except Unfit:
        raise NotHere from None


def default_changed(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A default is another one, or gone."""
    spot = choose(crd, objects, random, lambda each: "default" in each.schema)
    old = spot.schema.pop("default")
    if random.random() < 0.6:
        try:
            new = Maker(random).value(spot.schema)
        except Unfit:
            raise NotHere from None
        if new != old:
            spot.schema["default"] = new


_BY_TYPE: dict[str, tuple[Json, ...]] = {
    "string": (
        {"rule": "self.size() < 3", "message": "too long"},
        {"rule": "self.startsWith('a')", "messageExpression": "'not ' + self"},
        {"rule": "self == oldSelf", "message": "is immutable"},
        {"rule": "int(self) > 0"},
    ),
    "integer": ({"rule": "self > 2"}, {"rule": "self >= oldSelf"}, {"rule": "10 / self > 1"}),
    "number": ({"rule": "self > 2.0"},),
    "boolean": ({"rule": "self"},),
    "array": ({"rule": "self.size() < 2", "message": "too many"}, {"rule": "self.size() >= oldSelf.size()"}),
    "object": ({"rule": "false", "message": "never"}, {"rule": "self == oldSelf"}),
}


def rule_added(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A field has a CEL rule; some of them are about changes."""
    spot = choose(
        crd,
        objects,
        random,
        lambda each: bool(each.values) and each.schema.get("type") in _BY_TYPE and RULES not in each.schema,
    )
    choices = [*_BY_TYPE[spot.schema["type"]]]
    for name in spot.schema.get("properties") or {}:
        if name.isalpha():
            choices += [
                {"rule": f"has(self.{name})"},
                {"rule": f"!has(self.{name})", "fieldPath": f".{name}"},
            ]
    spot.schema[RULES] = [copy.deepcopy(random.choice(choices))]


def list_type(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A list is a set or a map now."""
    spot = choose(
        crd, objects, random, lambda each: holds("array")(each) and isinstance(each.schema.get("items"), dict)
    )
    items = spot.schema["items"]
    spot.schema.pop("x-kubernetes-list-map-keys", None)
    if items.get("type") in ("string", "integer", "number", "boolean") and not items.get("nullable"):
        spot.schema["x-kubernetes-list-type"] = "set"
        return
    scalars = [
        name
        for name, each in (items.get("properties") or {}).items()
        if each.get("type") in ("string", "integer", "boolean") and not each.get("nullable")
    ]
    if not scalars:
        raise NotHere
    key = random.choice(scalars)
    items["required"] = sorted({*items.get("required", ()), key})
    spot.schema.update({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})


def preserve(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """Unknown fields are no longer preserved."""
    spot = choose(crd, objects, random, lambda each: bool(each.values) and bool(each.schema.get(PRESERVE)))
    del spot.schema[PRESERVE]
    spot.schema.setdefault("type", "object")
    if spot.schema["type"] == "object":
        spot.schema.setdefault("properties", {"a": {"type": "string"}})


def preserve_added(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """All fields are preserved, and none is known."""
    spot = choose(crd, objects, random, lambda each: holds("object")(each) and not each.schema.get(PRESERVE))
    spot.schema[PRESERVE] = True
    spot.schema.pop("properties", None)
    spot.schema.pop("required", None)


def nullable(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A field must not be null."""
    spot = choose(crd, objects, random, lambda each: bool(each.schema.get("nullable")))
    del spot.schema["nullable"]


def int_or_string(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """An int-or-string becomes one of the two, or vice versa."""
    spot = choose(
        crd,
        objects,
        random,
        lambda each: (
            bool(each.values)
            and (bool(each.schema.get(INT_OR_STRING)) or each.schema.get("type") in ("string", "integer"))
        ),
    )
    was = spot.schema.get(INT_OR_STRING)
    _bare(spot.schema)
    spot.schema.pop("type", None)
    if was:
        spot.schema["type"] = random.choice(("string", "integer"))
    else:
        spot.schema[INT_OR_STRING] = True


def entries(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """The entries of a map have another type, or it is no longer a map."""
    spot = choose(
        crd, objects, random, lambda each: isinstance(each.schema.get("additionalProperties"), dict)
    )
    if random.random() < 0.4:
        del spot.schema["additionalProperties"]
        spot.schema["properties"] = {"a": {"type": "string"}}
    else:
        spot.schema["additionalProperties"] = random.choice(
            ({"type": "integer"}, {"type": "string", "maxLength": 1}, {"type": "object", "properties": {}})
        )


def opened(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """An object becomes a map."""
    spot = choose(
        crd, objects, random, lambda each: holds("object")(each) and bool(each.schema.get("properties"))
    )
    _bare(spot.schema)
    spot.schema["additionalProperties"] = random.choice(({"type": "string"}, {PRESERVE: True}))


def embedded(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """An object becomes a resource. Objects with other metadata become unreadable."""
    with_metadata = random.random() < 0.5
    spot = choose(
        crd,
        objects,
        random,
        lambda each: (
            holds("object")(each)
            and each.depth > 0
            and (not with_metadata or "metadata" in (each.schema.get("properties") or {}))
        ),
    )
    _bare(spot.schema)
    spot.schema.update({"type": "object", "x-kubernetes-embedded-resource": True, PRESERVE: True})


def junctor(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A value must be one of two, or must not be one."""
    spot = choose(crd, objects, random, holds("string", "integer", "object"))
    kind = spot.schema["type"]
    branches: dict[str, list[Json]] = {
        "string": [{"maxLength": 2}, {"pattern": "^a"}],
        "integer": [{"minimum": 3}, {"maximum": 1}],
        "object": [{"required": [each]} for each in list(spot.schema.get("properties") or {"a": 1})[:2]],
    }
    if any(key in spot.schema for key in ("anyOf", "oneOf", "not")):
        raise NotHere
    spot.schema.update(
        random.choice(({"oneOf": branches[kind]}, {"anyOf": branches[kind]}, {"not": branches[kind][0]}))
    )
