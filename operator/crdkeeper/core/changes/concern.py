"""The part of an object that a change of its CRD can concern, and the schemas of that part.

Most changes concern a few fields of many. What lies outside of them is handled alike before and after the
change, so that it need not be judged; and objects that do not differ in those fields are judged once for all.

Where it would take more thought to see that a field does not matter, such as below a rule or beside a limit
of the number of fields, the whole value around it is kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.apiserver.objects.jsonvalue import same
from crdkeeper.apiserver.schema.props import (
    EMBEDDED,
    LIST_MAP_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    VALIDATIONS,
    Schema,
)

Json = Any
Definition = Mapping[str, Any]
_ROOT: Final = frozenset(("apiVersion", "kind", "metadata"))
_BELOW: Final = frozenset(("properties", "items", "additionalProperties"))
_NOTES: Final = frozenset(("description", "title", "example", "externalDocs"))
_HARMLESS: Final = frozenset(("type", "nullable", LIST_TYPE, LIST_MAP_KEYS, MAP_TYPE, "minItems", "maxItems"))
"""What says nothing about the fields of a value."""
_SIZES: Final = frozenset(("minProperties", "maxProperties"))
_SAMPLES: Final[Mapping[type, Json]] = {dict: {}, list: [], str: "x", int: 1, float: 0.5, bool: True}
_MOST_STEPS: Final = 400_000
"""About a tenth of a second: more of them would take the time in which whole objects can be judged."""
_NAME: Final = "x"
"""Instead of an object's: no schema that is cut sees it."""


class Kept:
    """What is kept of a value: all of it."""

    def of(self, value: Json) -> Json:
        """The part of the value."""
        return value

    def owned(self, fields: Json) -> Json:
        """The part of its fieldsV1."""
        return fields


class _Sample(Kept):
    """That there is a value, and its type: the change removes it, whatever it is."""

    def of(self, value: Json) -> Json:
        return _SAMPLES.get(type(value))

    def owned(self, fields: Json) -> Json:
        return {}


@dataclass(frozen=True, slots=True)
class _Fields(Kept):
    fields: Mapping[str, Kept]

    def of(self, value: Json) -> Json:
        if type(value) is not dict:
            return value
        return {name: kept.of(value[name]) for name, kept in self.fields.items() if name in value}

    def owned(self, fields: Json) -> Json:
        if not isinstance(fields, dict):
            return fields
        named = {f"f:{name}": kept for name, kept in self.fields.items()}
        return {key: kept.owned(fields[key]) for key, kept in named.items() if key in fields}


@dataclass(frozen=True, slots=True)
class _Each(Kept):
    """Of each item of a list, or each entry of a map."""

    kept: Kept

    def of(self, value: Json) -> Json:
        if type(value) is list:
            return [self.kept.of(each) for each in value]
        if type(value) is dict:
            return {key: self.kept.of(each) for key, each in value.items()}
        return value

    def owned(self, fields: Json) -> Json:
        if not isinstance(fields, dict):
            return fields
        return {key: self.kept.owned(each) for key, each in fields.items()}


_WHOLE: Final = Kept()
_Nodes = Sequence[Schema | None]
"""The schemas of one field: by version before the change, then by version after it."""
_Reduced = tuple[Kept, list[Schema | None]]


@dataclass(frozen=True, slots=True)
class Concern:
    """What a change concerns."""

    old: Mapping[str, Schema]
    """The schemas of that part, by version, before the change."""
    new: Mapping[str, Schema]
    has_rules: bool
    """Whether these have rules. API servers do not evaluate any for an object that is invalid elsewhere."""
    _kept: Kept = field(repr=False)
    _owners: bool = True
    """Whether it matters who set a field: what equals a default without an owner may not be stored."""
    _gone: frozenset[str] = frozenset()
    """The apiVersions that the CRD loses: managedFields must not name them."""

    def part(self, obj: Mapping[str, Any]) -> Json:
        """The part of an object: equal parts meet the same, except for the objects' names."""
        found = self._kept.of(obj)
        metadata = obj.get("metadata") or {}
        reduced: dict[str, Any] = {"name": _NAME}
        if "namespace" in metadata:
            reduced["namespace"] = _NAME
        entries = [each for each in metadata.get("managedFields") or () if isinstance(each, dict)]
        named = self._gone.intersection(str(each.get("apiVersion")) for each in entries)
        kept = [{"apiVersion": each} for each in sorted(named)]
        if self._owners:
            kept += [{"fieldsV1": self._kept.owned(each.get("fieldsV1"))} for each in entries]
        if kept:
            reduced["managedFields"] = kept
        head = {key: obj[key] for key in ("apiVersion", "kind") if key in obj}
        return {**found, **head, "metadata": reduced}


def concern_of(old: Definition, new: Definition) -> Concern | None:
    """What the change concerns; None if that may be all of an object.

    Conversions by rules are not considered: they move values between fields. Raises UnreadableDefinition and
    RecursionError.
    """
    before, after = _versions(old), _versions(new)
    aligned = before == after
    if _around(old) != _around(new) or not (aligned or _is_plain(new)):
        return None
    if old["spec"].get("preserveUnknownFields"):
        # A field without a schema, which any object may have then, makes it count as changed in each write.
        return None
    # The order in which a CRD lists its versions means nothing.
    names = list(before), list(before if aligned else after)
    subresources = _subresources(old), _subresources(new)
    if not _alike([subresources[i][each] for i in (0, 1) for each in names[i]], aligned):
        return None
    schemas = schemas_of(old), schemas_of(new)
    roots: list[Schema | None] = [schemas[i][each] for i in (0, 1) for each in names[i]]
    for each in ("apiVersion", "kind", "metadata"):
        found = [(root or {}).get("properties", {}).get(each) for root in roots]
        if not _alike(found, aligned):
            return None
    try:
        reduced = _Reduction(aligned, len(before), not after.keys() <= before.keys()).of(
            roots, not_below=_ROOT
        )
    except _TakesLong:
        return None
    kept, nodes = reduced or (_Fields({}), [{"type": "object"} for _ in roots])
    if kept is _WHOLE:
        return None
    found_old = {name: each or {} for name, each in zip(names[0], nodes[: len(before)], strict=True)}
    found_new = {name: each or {} for name, each in zip(names[1], nodes[len(before) :], strict=True)}
    group = old["spec"]["group"]
    return Concern(
        found_old,
        found_new,
        any(_has(each, VALIDATIONS) for each in found_new.values()),
        kept,
        any(_has(each, "default") for each in nodes),
        frozenset(f"{group}/{each}" for each in before if each not in after),
    )


class _TakesLong(Exception):
    """It would take less time to judge whole objects."""


class _Reduction:
    """Compares the schemas of each field from the leaves up, so that each is looked at once."""

    def __init__(self, aligned: bool, before: int, adds: bool) -> None:
        """`aligned`: the versions are the same before and after, and are compared one by one.

        `adds`: there are new ones, at which objects are compared as they may be stored: without defaults.
        """
        self._aligned = aligned
        self._before = before
        self._adds = adds
        self._left = _MOST_STEPS
        self._changing: dict[int, bool] = {}

    def of(
        self, nodes: _Nodes, *, always: Iterable[str] = (), not_below: frozenset[str] = frozenset()
    ) -> _Reduced | None:
        """What is kept of a value and of its schemas; None if the change does not concern it.

        `always`: fields that are kept if any is. `not_below`: fields that are not looked at.
        Raises _TakesLong.
        """
        self._take(len(nodes))
        known = [each for each in nodes if each is not None]
        if not known:
            return None
        if self._is_removed(nodes):
            return _Sample(), [None if each is None else _any_value(each) for each in nodes]
        if not self._alike([None if each is None else _of_value(each) for each in nodes]) or (
            self._adds and any("default" in each for each in known)
        ):
            return _WHOLE, list(nodes)
        children = {
            key: self._child(nodes, key) for key in ("items", "additionalProperties") if _some(known, key)
        }
        names = {
            name: None for each in known for name in each.get("properties") or () if name not in not_below
        }
        fields = {name: self._field(nodes, name) for name in names}
        required = self._required(nodes)
        concerned = any(each is not None for each in (*children.values(), *fields.values()))
        if not required and not concerned:
            return None
        # What an update leaves unchanged may lack a required field, and parts may make that count as changed.
        uncertain = bool(required) and any(map(self._may_count_as_changed, known))
        if uncertain or not all(map(_can_be_cut, known)) or not _has_one_shape(known):
            return _WHOLE, list(nodes)
        for key, found in children.items():
            if found is not None:
                kept, reduced = found
                return _Each(kept), [
                    None if each is None else {**_own(each), key: below}
                    for each, below in zip(nodes, reduced, strict=True)
                ]
        return self._cut(nodes, fields, {*required, *always})

    def _cut(self, nodes: _Nodes, fields: Mapping[str, _Reduced | None], whole: Iterable[str]) -> _Reduced:
        """An object of which some fields are kept."""
        kept = {name: found[0] for name, found in fields.items() if found is not None}
        below = {name: found[1] for name, found in fields.items() if found is not None}
        for name in whole:
            kept[name] = _WHOLE
            below[name] = [_property(each, name) for each in nodes]
        reduced: list[Schema | None] = []
        for i, each in enumerate(nodes):
            if each is None:
                reduced.append(None)
                continue
            properties = {name: found[i] for name, found in below.items() if found[i] is not None}
            needed = [name for name in each.get("required") or () if name in kept]
            reduced.append({**_own(each), "properties": properties, "required": needed})
        return _Fields(kept), reduced

    def _child(self, nodes: _Nodes, key: str) -> _Reduced | None:
        found = [None if each is None else each.get(key) for each in nodes]
        schemas = [each if isinstance(each, dict) else None for each in found]
        keys = {name for each in nodes if each for name in each.get(LIST_MAP_KEYS) or ()}
        return self.of(schemas, always=keys)

    def _field(self, nodes: _Nodes, name: str) -> _Reduced | None:
        return self.of([_property(each, name) for each in nodes])

    def _required(self, nodes: _Nodes) -> set[str]:
        """The fields that are not required alike."""
        sets = [None if each is None else set(each.get("required") or ()) for each in nodes]
        names = set().union(*(each for each in sets if each))
        self._take(len(names) * len(nodes))
        return {
            name
            for name in names
            if not self._alike([None if each is None else name in each for each in sets])
        }

    def _is_removed(self, nodes: _Nodes) -> bool:
        """Whether the field is gone, and neither rules look at it before nor its defaults matter."""
        if any(each is not None for each in nodes[self._before :]):
            return False
        return not any(
            each and (_has(each, VALIDATIONS) or (self._adds and _has(each, "default"))) for each in nodes
        )

    def _take(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TakesLong

    def _may_count_as_changed(self, node: Any) -> bool:
        """Whether an update may seem to change it: where fields have no schema, or items no key."""
        known = self._changing.get(id(node))
        if known is None:
            known = bool(node.get(PRESERVE) or node.get(EMBEDDED) or node.get(LIST_TYPE) == "map")
            below = [
                *(node.get("properties") or {}).values(),
                node.get("items"),
                node.get("additionalProperties"),
            ]
            known = known or any(
                isinstance(each, dict) and self._may_count_as_changed(each) for each in below
            )
            self._changing[id(node)] = known
        return known

    def _alike(self, found: Sequence[Json]) -> bool:
        return _alike(found, self._aligned)


def _alike(found: Sequence[Json], aligned: bool) -> bool:
    """Whether what is found before is the same afterwards: version by version, or everywhere."""
    if aligned:
        half = len(found) // 2
        return all(same(one, other) for one, other in zip(found[:half], found[half:], strict=True))
    return all(same(found[0], each) for each in found[1:])


def _property(node: Schema | None, name: str) -> Schema | None:
    found: Schema | None = (node.get("properties") or {}).get(name) if node is not None else None
    return found


def _some(nodes: Iterable[Schema], key: str) -> bool:
    return any(isinstance(each.get(key), dict) for each in nodes)


def _own(node: Schema) -> dict[str, Any]:
    """What a schema says of a value without what it says of the values in it."""
    found = {key: each for key, each in node.items() if key not in _BELOW | _NOTES | {"required"}}
    for key in ("items", "additionalProperties"):
        if key in node and not isinstance(node[key], dict):
            found[key] = node[key]
    return found


def _of_value(node: Schema) -> list[Any]:
    return [_own(node), sorted(_BELOW.intersection(node))]


def _can_be_cut(node: Schema) -> bool:
    """Whether fields in a value matter to nothing but themselves."""
    harmless = _HARMLESS | _SIZES if "properties" not in node else _HARMLESS
    return _own(node).keys() <= harmless and node.get(LIST_TYPE) != "set"


def _has_one_shape(nodes: Sequence[Schema]) -> bool:
    """Whether all are lists, all maps, or all objects. What a map requires is none of its values."""
    shapes = {_BELOW.intersection(each) for each in nodes}
    shape = shapes.pop()
    is_one = not shapes and len(shape) == 1
    return is_one and ("properties" in shape or not any("required" in each for each in nodes))


def _any_value(node: Schema) -> Schema:
    return {PRESERVE: True, "nullable": bool(node.get("nullable"))}


def _has(node: Any, key: str) -> bool:
    """Whether a keyword is anywhere in a schema. A field or a value of that name counts, too."""
    if isinstance(node, dict):
        return key in node or any(_has(each, key) for each in node.values())
    return isinstance(node, list) and any(_has(each, key) for each in node)


def _versions(crd: Definition) -> dict[str, tuple[Any, Any]]:
    return {each["name"]: (bool(each.get("served")), bool(each.get("storage"))) for each in _entries(crd)}


def _around(crd: Definition) -> tuple[Any, ...]:
    spec = crd["spec"]
    return spec["group"], spec.get("scope"), _strategy(crd), spec.get("preserveUnknownFields")


def _strategy(crd: Definition) -> str:
    return (crd["spec"].get("conversion") or {}).get("strategy") or "None"


def _is_plain(crd: Definition) -> bool:
    return _strategy(crd) == "None"


def _subresources(crd: Definition) -> dict[str, Any]:
    return {each["name"]: each.get("subresources") or {} for each in _entries(crd)}


def _entries(crd: Definition) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = crd["spec"]["versions"]
    return found
