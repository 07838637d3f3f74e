"""Draws conversions: schemas of a hub and its spokes, the rules between them, and objects of each version."""

# Long because each kind of rule has its strategy here, and they nest.

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.core.conversion.objects import Conversion, compile_conversion

GROUP = "stable.example.com"
_TEXTS = st.text("ab:%/é ", max_size=4)
_INTEGERS = st.integers(-(2**53), 2**53)
_NUMBERS = st.one_of(_INTEGERS, st.floats(-1e9, 1e9, allow_nan=False))


@dataclass
class Side:
    """The fields of one version of an object, and their possible values."""

    properties: dict[str, Any] = field(default_factory=dict)
    values: dict[str, st.SearchStrategy[Any]] = field(default_factory=dict)
    metadata: dict[str, dict[str, st.SearchStrategy[str]]] = field(
        default_factory=lambda: {"annotations": {}, "labels": {}}
    )

    def add(self, name: str, schema: dict[str, Any], values: st.SearchStrategy[Any]) -> None:
        self.properties[name] = schema
        self.values[name] = values

    required: set[str] = field(default_factory=set)

    @property
    def schema(self) -> dict[str, Any]:
        required = [name for name in self.properties if name in self.required]
        return {
            "type": "object",
            "properties": self.properties,
            **({"required": required} if required else {}),
        }

    @property
    def objects(self) -> st.SearchStrategy[dict[str, Any]]:
        required = {name: each for name, each in self.values.items() if name in self.required}
        optional = {name: each for name, each in self.values.items() if name not in self.required}
        return st.fixed_dictionaries(required, optional=optional)


STRING, INTEGER, NUMBER = ({"type": each} for each in ("string", "integer", "number"))
SCALARS: list[tuple[dict[str, Any], st.SearchStrategy[Any]]] = [
    (STRING, _TEXTS),
    (INTEGER, _INTEGERS),
    (NUMBER, _NUMBERS),
    ({"type": "array", "items": STRING}, st.lists(_TEXTS, max_size=3)),
    ({"type": "object", "additionalProperties": STRING}, st.dictionaries(_TEXTS, _TEXTS, max_size=3)),
]
_LABELS = st.sampled_from(("", "a", "b", "a.b"))
_OTHERS = st.one_of(_TEXTS, st.just("9" * 30))
"""Strings without counterpart where there are numbers."""
_NUMERALS = st.one_of(_INTEGERS.map(str), st.sampled_from(("007", "+1", "-0")), _OTHERS)
_QUANTITIES = st.one_of(
    st.builds(
        "{}{}".format, st.integers(0, 5000), st.sampled_from(("", "m", "k", "Ki", "M", "Mi", "Gi", "e3"))
    ),
    _OTHERS,
)
_DURATIONS = st.one_of(
    st.builds(
        "{}{}".format,
        st.sampled_from(("", "-", "+")),
        st.sampled_from(("90s", "1h30m", "1.5h", "10ms", "0", "1m0.5s")),
    ),
    _OTHERS,
)
_UNITS = st.integers(-(10**6), 10**6)
_TEXT_LIST = {"type": "array", "items": STRING}
_PAIRS = {
    "type": "array",
    "items": {"type": "object", "properties": {"name": STRING, "value": STRING}},
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
_PAIR_LISTS = st.dictionaries(_TEXTS, st.none() | _TEXTS, max_size=3).map(
    lambda found: [
        {"name": key} if value is None else {"name": key, "value": value} for key, value in found.items()
    ]
)
_PAIRED = [{"hub": "A", "spoke": "a"}, {"hub": "B", "spoke": "b"}]
_CASES = {"toHub": "self.lowerAscii()", "toSpoke": "self.upperAscii()"}


@st.composite
def scopes(
    draw: st.DrawFn, depth: int = 0, inside: str = "spec.", prefix: str = ""
) -> tuple[Side, Side, list[dict[str, Any]]]:
    """Hub, spoke and rules of an object."""
    hub, spoke, rules = Side(), Side(), []
    kinds = [*_KINDS, *(_NESTED if depth < 2 else ()), *((("metadata", _metadata),) if prefix else ())]
    if draw(st.integers(0, 3)) == 0:
        # Rules that lose nothing are not tried with each object, unless there is another rule.
        kinds = _EXACT
    for i in range(draw(st.integers(1, 4))):
        name, kind = draw(st.sampled_from(kinds))
        rules += kind(draw, hub, spoke, f"{prefix}{name}{i}", inside, depth)
    return hub, spoke, rules


def _same(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    schema, values = draw(st.sampled_from(SCALARS))
    for side in (hub, spoke):
        side.add(name, schema, values)
    return []


def _rename(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    schema, values = draw(st.sampled_from(SCALARS))
    hub.add(name, schema, values)
    spoke.add(f"{name}s", schema, values)
    return [{"hub": inside + name, "spoke": f"{inside}{name}s"}]


def _aside(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    schema, values = draw(st.sampled_from(SCALARS))
    side, named = draw(st.sampled_from(((hub, "hub"), (spoke, "spoke"))))
    side.add(name, schema, values)
    fill = {"fill": draw(values)} if draw(st.booleans()) else {}
    return [{named: inside + name, "aside": True, **fill}]


def _pair(one: Any, other: Any, rule: dict[str, Any], *, turned: bool = True) -> Any:
    """A kind of rule between two such fields, in either direction."""

    def kind(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
        first, second = draw(st.permutations((one, other))) if turned else (one, other)
        first, second = (
            _nullable(*each) if draw(st.integers(0, 4)) == 0 else each for each in (first, second)
        )
        for side, (schema, values) in ((hub, first), (spoke, second)):
            match draw(st.integers(0, 5)):
                case 0:
                    side.required.add(name)
                case 1:
                    schema = {**schema, "default": draw(values)}
            side.add(name, schema, values)
        return [{"hub": inside + name, "spoke": inside + name, **rule}]

    return kind


def _nullable(
    schema: dict[str, Any], values: st.SearchStrategy[Any]
) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    if "enum" in schema:
        return schema, values  # null would have to be one of them
    return {**schema, "nullable": True}, st.none() | values


def _entries(schema: dict[str, Any], values: st.SearchStrategy[Any]) -> Any:
    """Maps on both sides in which one entry has another name."""

    def kind(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
        for side in (hub, spoke):
            side.add(name, schema, values)
        return [{"hub": f"{inside}{name}[a]", "spoke": f"{inside}{name}[b]"}]

    return kind


def _enum(*values: str) -> tuple[dict[str, Any], st.SearchStrategy[str]]:
    return {"type": "string", "enum": list(values)}, st.sampled_from(values)


def _join(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    (text, named), (parts, _) = draw(st.permutations(((hub, "hub"), (spoke, "spoke"))))
    text.add(name, STRING, st.one_of(st.builds("{}:{}".format, _TEXTS, _INTEGERS), _OTHERS))
    parts.add(f"{name}a", STRING, _TEXTS)
    parts.add(f"{name}b", INTEGER, _INTEGERS)
    paths = {"a": f"{inside}{name}a", "b": f"{inside}{name}b"}
    return [{named: inside + name, "join": {"template": "{a}:{b}", "parts": paths}}]


def _each(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    one, other, rules = draw(scopes(depth + 1, ""))
    for side, inner in ((hub, one), (spoke, other)):
        side.add(name, {"type": "array", "items": inner.schema}, st.lists(inner.objects, max_size=3))
    return [{"hub": inside + name, "spoke": inside + name, "each": rules}]


def _keyed(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    one, other, rules = draw(scopes(depth + 1, ""))
    by = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    lists = draw(st.booleans())
    for side, inner, is_list in ((hub, one, lists), (spoke, other, not lists)):
        keyed = st.dictionaries(_TEXTS, inner.objects, max_size=3)
        if is_list:
            items = {"type": "object", "properties": {**inner.properties, "name": STRING}}
            listed = keyed.map(lambda found: [{**each, "name": key} for key, each in found.items()])
            side.add(name, {"type": "array", "items": items, **by}, listed)
        else:
            side.add(name, {"type": "object", "additionalProperties": inner.schema}, keyed)
    return [{"hub": inside + name, "spoke": inside + name, "key": "name", "each": rules}]


def _wrapped(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    one, other, rules = draw(scopes(depth + 1, ""))
    lists = draw(st.booleans())
    for side, inner, is_list in ((hub, one, lists), (spoke, other, not lists)):
        if is_list:
            side.add(name, {"type": "array", "items": inner.schema}, st.lists(inner.objects, max_size=3))
        else:
            side.add(name, inner.schema, inner.objects)
    return [{"hub": inside + name, "spoke": inside + name, "wrap": True, "each": rules}]


def _metadata(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    """A field on one side only, or metadata, which neither schema contains."""
    rule = {}
    places = draw(st.sampled_from(PLACES))
    for side, named, place in ((hub, "hub", places[0]), (spoke, "spoke", places[1])):
        if place == "spec":
            side.add(name, STRING, _TEXTS)
            rule[named] = inside + name
        else:
            side.metadata[place][f"example.com/{name}"] = _TEXTS if place == "annotations" else _LABELS
            rule[named] = f"metadata.{place}[example.com/{name}]"
    return [rule]


PLACES = (("spec", "annotations"), ("labels", "spec"), ("annotations", "labels"), ("spec", "labels"))


def _moved(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    """A field that is in another object, or in the first item of a list, on one side."""
    (outer, one), (inner, other) = draw(st.permutations(((hub, "hub"), (spoke, "spoke"))))
    schema, values = draw(st.sampled_from(SCALARS))
    around = {"type": "object", "properties": {"x": STRING}}
    both = {"type": "object", "properties": {"x": STRING, "y": schema}}
    filled = st.fixed_dictionaries({}, optional={"x": _TEXTS, "y": values})
    outer.add(name, schema, values)
    if draw(st.booleans()):
        outer.add(f"{name}o", around, st.fixed_dictionaries({}, optional={"x": _TEXTS}))
        inner.add(f"{name}o", both, filled)
        return [{one: inside + name, other: f"{inside}{name}o.y"}]
    inner.add(f"{name}l", {"type": "array", "items": both}, st.lists(filled, max_size=3))
    return [
        {one: inside + name, other: f"{inside}{name}l[0].y"},
        {other: f"{inside}{name}l", "aside": True},
    ]


def _entry(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    """A field that is an entry of a map on the other side; other entries of the map are kept aside."""
    (plain, one), (entries, other) = draw(st.permutations(((hub, "hub"), (spoke, "spoke"))))
    schema, values = draw(st.sampled_from(SCALARS))
    plain.add(name, schema, values)
    keys = st.one_of(st.just("a"), _TEXTS)
    entries.add(
        f"{name}m",
        {"type": "object", "additionalProperties": schema},
        st.dictionaries(keys, values, max_size=3),
    )
    return [
        {one: inside + name, other: f"{inside}{name}m[a]"},
        {other: f"{inside}{name}m", "aside": True},
    ]


def _computed(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    """Fields that an expression computes from others, all together."""
    schema, values = draw(st.sampled_from(SCALARS))
    for side in (hub, spoke):
        side.add(name, schema, values)
    (made, named, way) = draw(st.sampled_from(((hub, "hub", "toHub"), (spoke, "spoke", "toSpoke"))))
    made.add(f"{name}c", schema, values)
    source = "object" + "".join(f".?{step}" for step in f"{inside}{name}".split("."))
    return [{named: f"{inside}{name}c", "cel": {way: source}}]


def _object(draw: Any, hub: Side, spoke: Side, name: str, inside: str, depth: int) -> list[Any]:
    one, other, rules = draw(scopes(depth + 1, f"{inside}{name}."))
    for side, inner in ((hub, one), (spoke, other)):
        side.add(name, inner.schema, inner.objects)
    return list(rules)


_NESTED = [("each", _each), ("keyed", _keyed), ("wrapped", _wrapped), ("object", _object)]
_NUMERIC = [(INTEGER, _UNITS), (NUMBER, _UNITS.map(lambda value: value / 4))]
_KINDS = [
    ("same", _same),
    ("rename", _rename),
    ("aside", _aside),
    ("cast", _pair((INTEGER, _INTEGERS), (STRING, _NUMERALS), {"cast": True})),
    ("scale", _pair(_NUMERIC[0], _NUMERIC[1], {"scale": {"hub": 3, "spoke": 1000}})),
    ("quantity", _pair(_NUMERIC[0], (STRING, _QUANTITIES), {"quantity": "Mi"})),
    ("duration", _pair(_NUMERIC[0], (STRING, _DURATIONS), {"duration": "s"})),
    (
        "wrap",
        _pair(
            (STRING, _TEXTS),
            ({"type": "array", "items": STRING}, st.lists(_TEXTS, max_size=3)),
            {"wrap": True},
        ),
    ),
    (
        "values",
        _pair(
            _enum("A", "B"),
            ({"type": "string"}, st.sampled_from(("a", "b", "c", "d"))),
            {"values": [{"hub": "A", "spoke": "a"}, {"hub": "B", "spoke": "b"}, {"hub": "B", "spoke": "c"}]},
            turned=False,
        ),
    ),
    ("join", _join),
    ("entry", _entry),
    ("moved", _moved),
    ("computed", _computed),
    ("list", _pair((_TEXT_LIST, st.lists(_TEXTS, max_size=3)), (STRING, _TEXTS), {"separator": ":"})),
    (
        "numbers",
        _pair(
            ({"type": "array", "items": INTEGER}, st.lists(_INTEGERS, max_size=3)),
            (STRING, st.one_of(st.lists(_NUMERALS, max_size=3).map(", ".join), _OTHERS)),
            {"separator": ", "},
        ),
    ),
    (
        "pairs",
        _pair(
            ({"type": "object", "additionalProperties": STRING}, st.dictionaries(_TEXTS, _TEXTS, max_size=3)),
            (_PAIRS, _PAIR_LISTS),
            {"key": "name"},
        ),
    ),
    (
        "renamed",
        _entries(
            {"type": "object", "additionalProperties": STRING},
            st.dictionaries(st.sampled_from("abc"), _TEXTS, max_size=3),
        ),
    ),
    ("expression", _pair((STRING, _TEXTS), (STRING, _TEXTS), {"cel": _CASES})),
    ("oneway", _pair((INTEGER, _UNITS), (INTEGER, _UNITS), {"cel": {"toHub": "self / 3"}})),
    (
        "otherway",
        _pair((INTEGER, _UNITS), (STRING, _TEXTS), {"cel": {"toSpoke": "string(self)"}}, turned=False),
    ),
]


_EXACT = [
    ("same", _same),
    ("rename", _rename),
    ("moved", _moved),
    ("words", _pair(_enum("A", "B"), _enum("a", "b"), {"values": _PAIRED}, turned=False)),
]


@dataclass(frozen=True)
class Drawn:
    """A conversion, and an object of each version."""

    spec: dict[str, Any]
    conversion: Conversion
    schemas: dict[str, dict[str, Any]]
    objects: dict[str, dict[str, Any]]


@st.composite
def conversions(draw: st.DrawFn) -> Drawn:
    """A hub v1 with the spokes v2 and v3."""
    sides: dict[str, Side] = {"v1": Side()}
    spokes: list[dict[str, Any]] = []
    for version in ("v2", "v3"):
        hub, sides[version], rules = draw(scopes(prefix=version))
        # What one spoke's rules mention, the other spoke either has exactly like the hub or not at all.
        for name in hub.properties:
            sides["v1"].add(name, hub.properties[name], hub.values[name])
        for place, entries in hub.metadata.items():
            sides["v1"].metadata[place] |= entries
        spokes.append({"version": version, "rules": rules})
    for spoke, other in ((spokes[0], "v3"), (spokes[1], "v2")):
        for name, schema in sides["v1"].properties.items():
            if not name.startswith(other):
                continue
            if draw(st.booleans()):
                sides[spoke["version"]].add(name, schema, sides["v1"].values[name])
            else:
                spoke["rules"].append({"hub": f"spec.{name}", "aside": True})
    spec = {"resource": {"group": GROUP, "resource": "things"}, "hub": "v1", "spokes": spokes}
    schemas = {
        version: {"type": "object", "properties": {"spec": side.schema}} for version, side in sides.items()
    }
    made = compile_conversion(VersionConversionSpec.model_validate(spec), schemas)
    assert isinstance(made, Conversion), (made, spec)
    objects = {version: draw(_objects(version, side)) for version, side in sides.items()}
    return Drawn(spec, made, schemas, objects)


@st.composite
def _objects(draw: st.DrawFn, version: str, side: Side) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "a"}
    for place, entries in side.metadata.items():
        texts = _TEXTS if place == "annotations" else _LABELS
        others = {"other": texts, "example.com/v20": texts}
        found = draw(st.fixed_dictionaries({}, optional={**others, **entries}))
        if found:
            metadata[place] = found
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Thing",
        "metadata": metadata,
        **draw(st.fixed_dictionaries({}, optional={"spec": side.objects})),
    }
