"""Rules compiled once over two schemas: what is copied, what goes through a rule, and what no rule covers.

A scope is a pair of objects, one of each version: the whole object, or an item of two lists. Each field of
each side is carried over as it is, or covered by exactly one rule. Anything else is an error that proposes
one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from crdkeeper.api.versionconversion import ConversionRule
from crdkeeper.core.conversion import fieldpaths
from crdkeeper.core.conversion.actions import Action, Carry, Fill, Join, Split, Tree, over_list, over_map
from crdkeeper.core.conversion.alike import difference
from crdkeeper.core.conversion.coverage import HUB, SPOKE, Coverage, other_side
from crdkeeper.core.conversion.fieldpaths import ABSENT, BadPath, Steps, show
from crdkeeper.core.conversion.template import BadTemplate, Template
from crdkeeper.core.conversion.values import (
    DURATION_UNITS,
    MOVE,
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
    strictly,
    wrapping,
)
from crdkeeper.core.schema.props import INT_OR_STRING, Schema

_KINDS: Final = ("values", "scale", "cast", "quantity", "duration", "wrap", "key", "join", "aside", "drop")
_SCALARS: Final = ("string", "integer", "number", "boolean")
_NUMBERS: Final = ("integer", "number")
_TEXT: Final[Schema] = {"type": "string"}

Forgive = Callable[[Any, Any], Any]
"""Of a value and what came back for it, what it may be taken to have been."""


@dataclass(frozen=True, slots=True)
class RuleError:
    """What is wrong with a rule, or a field that no rule covers."""

    where: str
    """The rule's field, such as `rules[2].spoke`, or `schema` where a rule is missing."""
    message: str


class Scope:
    """Two versions of an object and the rules between them. Compiling never raises; look at `errors`."""

    def __init__(
        self, hub: Schema, spoke: Schema, rules: Sequence[ConversionRule], *, top: bool = True, at: str = ""
    ) -> None:
        self.errors: list[RuleError] = []
        self.exact = True
        """Whether both ways are each other's inverse for every object that the schemas allow."""
        self._schemas = {HUB: hub, SPOKE: spoke}
        self._top = top
        self._at = at
        self._claimed: dict[str, dict[Steps, str]] = {HUB: {}, SPOKE: {}}
        self._trees = {HUB: Tree(), SPOKE: Tree()}
        """By the side that is read."""
        self._actions: dict[str, list[Action]] = {HUB: [], SPOKE: []}
        """By the side that is written."""
        self._losses: dict[str, list[tuple[Steps, Forgive]]] = {HUB: [], SPOKE: []}
        """Fields that may be lost, or in which something may, by side."""
        for i, rule in enumerate(rules):
            self._add(rule, f"{at}rules[{i}]")
        if not self.errors:
            coverage = Coverage(self._schemas, self._claimed, self._trees, self._find, top=top)
            self.errors.extend(RuleError("schema", each) for each in coverage.gaps)
            self.exact = self.exact and coverage.exact

    def to_hub(self, value: Any) -> Any:
        """The hub's form of the spoke's object. Raises Unconvertible, naming the field."""
        return self._convert(value, SPOKE, HUB)

    def to_spoke(self, value: Any) -> Any:
        """The spoke's form of the hub's object. Raises Unconvertible, naming the field."""
        return self._convert(value, HUB, SPOKE)

    def _convert(self, value: Any, source: str, target: str) -> Any:
        if not isinstance(value, dict):
            raise Unconvertible(f"{value!r} is no object")
        made = self._trees[source].copy(value)
        for action in self._actions[target]:
            action(value, made)
        return made

    def forgiven(self, side: str, before: Any, after: Any) -> Any:
        """`before`, but what rules allow to be lost is as in `after`, which came back from the other side."""
        for steps, forgive in self._losses[side]:
            before = _forgiven(before, after, steps, forgive)
        return before

    @property
    def lossy(self) -> bool:
        """Whether rules allow something to be lost."""
        return any(self._losses.values())

    def converter(self) -> Converter:
        """Both ways, for an object inside of another."""
        return Converter(self.to_hub, self.to_spoke, self.exact)

    def _error(self, where: str, message: str) -> None:
        self.errors.append(RuleError(where, message))

    # The rules

    def _add(self, rule: ConversionRule, where: str) -> None:
        kinds = [kind for kind in _KINDS if getattr(rule, kind) is not None]
        if rule.each is not None and not {"key"}.issuperset(kinds):
            kinds.append("each")
        if len(kinds) > 1:
            self._error(where, f"{' and '.join(kinds)} exclude each other")
            return
        kind = kinds[0] if kinds else "each" if rule.each is not None else ""
        if rule.hub is None and rule.spoke is None:
            self._error(where, "names neither a field of the hub nor one of the spoke")
        elif kind == "join":
            self._add_join(rule, where)
        elif kind in ("aside", "drop"):
            self._add_one_sided(rule, where)
        elif rule.hub is None or rule.spoke is None:
            given, missing = (HUB, SPOKE) if rule.spoke is None else (SPOKE, HUB)
            self._error(
                where,
                f"names a field of the {given} alone: name the one of the {missing}, or say aside or drop",
            )
        elif rule.fill is not None:
            self._error(f"{where}.fill", "is for a field that one side alone has (aside, drop)")
        else:
            self._add_pair(rule, kind, where)

    def _claim(self, side: str, text: str, where: str) -> tuple[Steps, Schema] | None:
        """The field of that side for this rule alone, with its schema."""
        try:
            steps = fieldpaths.parse(text)
            if self._top:
                fieldpaths.check_top(steps)
        except BadPath as error:
            self._error(where, str(error))
            return None
        schema = self._find(side, steps)
        if schema is None:
            self._error(where, f"{show(steps)}: the {side} has no such field")
            return None
        for other, by in self._claimed[side].items():
            if other[: len(steps)] == steps or steps[: len(other)] == other:
                self._error(where, f"{show(steps)}: {by} is about {show(other)} already")
                return None
        self._claimed[side][steps] = where
        self._trees[side].skip(steps)
        return steps, schema

    def _find(self, side: str, steps: Steps) -> Schema | None:
        if self._top and steps[0] == "metadata":
            return _TEXT
        schema: Any = self._schemas[side]
        for step in steps:
            properties = schema.get("properties") or {}
            if step not in properties:
                return None
            schema = properties[step]
        return schema if isinstance(schema, Mapping) else None

    def _add_pair(self, rule: ConversionRule, kind: str, where: str) -> None:
        hub = self._claim(HUB, rule.hub or "", f"{where}.hub")
        spoke = self._claim(SPOKE, rule.spoke or "", f"{where}.spoke")
        if hub is None or spoke is None:
            return
        made = self._converter(rule, kind, hub[1], spoke[1], where)
        if made is None:
            return
        self._act(HUB, Carry(spoke[0], hub[0], made.to_hub), hub[0])
        self._act(SPOKE, Carry(hub[0], spoke[0], made.to_spoke), spoke[0])
        if made.forgive is not None:
            for side, steps in ((HUB, hub[0]), (SPOKE, spoke[0])):
                self._losses[side].append((steps, partial(made.forgive, side)))
        shared = self._shared(hub[0]) and self._shared(spoke[0])
        self.exact = self.exact and made.exact and shared

    def _act(self, side: str, action: Action, *targets: Steps) -> None:
        """Carry this out when an object of that side is made."""
        self._actions[side].append(action)
        for steps in targets:
            self._trees[other_side(side)].own(steps)

    def _shared(self, steps: Steps) -> bool:
        """Whether the object around a field is there on both sides, so that it stays if the field goes."""
        if self._top and steps[0] == "metadata":
            return False
        around = steps[:-1]
        return not around or all(self._find(side, around) is not None for side in (HUB, SPOKE))

    def _add_one_sided(self, rule: ConversionRule, where: str) -> None:
        if rule.hub is not None and rule.spoke is not None:
            self._error(where, "aside and drop are for a field that one side alone has: name one side")
            return
        side, text = (HUB, rule.hub) if rule.hub is not None else (SPOKE, rule.spoke)
        claimed = self._claim(side, text or "", f"{where}.{side}")
        if claimed is None:
            return
        if rule.aside or rule.fill is not None:
            self.exact = False
        if rule.drop:
            self._losses[side].append((claimed[0], lambda before, after: after))
        if rule.fill is not None:
            self._act(side, Fill(claimed[0], rule.fill), claimed[0])

    def _add_join(self, rule: ConversionRule, where: str) -> None:
        join = rule.join
        if join is None:
            return
        if rule.hub is not None and rule.spoke is not None:
            self._error(where, "with join, name the field of the text alone; the others are its parts")
            return
        side, other, text = (HUB, SPOKE, rule.hub) if rule.hub is not None else (SPOKE, HUB, rule.spoke)
        try:
            template = Template(join.template)
        except BadTemplate as error:
            self._error(f"{where}.join.template", str(error))
            return
        if set(template.names) != set(join.parts):
            self._error(f"{where}.join.parts", f"must be those of the template: {', '.join(template.names)}")
            return
        whole = self._claim(side, text or "", f"{where}.{side}")
        parts = {
            name: self._claim(other, path, f"{where}.join.parts.{name}") for name, path in join.parts.items()
        }
        if whole is None:
            return
        if whole[1].get("type") != "string":
            self._error(f"{where}.{side}", f"{show(whole[0])} is no string")
        to_part: dict[str, tuple[Steps, Convert]] = {}
        to_text: dict[str, tuple[Steps, Convert]] = {}
        for name, part in parts.items():
            if part is None:
                return
            type_ = part[1].get("type")
            if type_ not in _SCALARS:
                self._error(f"{where}.join.parts.{name}", f"{show(part[0])} is no scalar")
                return
            caster = casting(type_, "string")
            to_part[name], to_text[name] = (part[0], caster.to_hub), (part[0], caster.to_spoke)
        self._act(other, Split(whole[0], template, to_part), *(steps for steps, _ in to_part.values()))
        self._act(side, Join(whole[0], template, to_text), whole[0])
        self.exact = False

    def _converter(
        self, rule: ConversionRule, kind: str, hub: Schema, spoke: Schema, where: str
    ) -> Converter | None:
        types = hub.get("type"), spoke.get("type")
        match kind:
            case "":
                return self._moved(hub, spoke, where)
            case "values":
                return self._renamed(rule, hub, spoke, where)
            case "scale" if rule.scale and types[0] in _NUMBERS and types[1] in _NUMBERS:
                return scaling(rule.scale.hub, rule.scale.spoke, str(types[0]), str(types[1]))
            case "cast" if types[0] in _SCALARS and types[1] in _SCALARS:
                return casting(str(types[0]), str(types[1]))
            case "quantity":
                return self._unit(
                    rule.quantity or "", quantities, QUANTITY_UNITS, hub, spoke, f"{where}.quantity"
                )
            case "duration":
                return self._unit(
                    rule.duration or "", durations, DURATION_UNITS, hub, spoke, f"{where}.duration"
                )
            case "wrap":
                return self._wrapped(hub, spoke, where)
            case "key":
                return self._keyed(rule, hub, spoke, where)
            case "each":
                return self._each(rule, hub, spoke, where)
        self._error(f"{where}.{kind}", f"does not fit the types {types[0]} (hub) and {types[1]} (spoke)")
        return None

    def _moved(self, hub: Schema, spoke: Schema, where: str) -> Converter | None:
        found = difference(hub, spoke)
        if found:
            self._error(where, f"the two fields are not alike: {found}")
            return None
        return MOVE

    def _renamed(self, rule: ConversionRule, hub: Schema, spoke: Schema, where: str) -> Converter | None:
        pairs = [(each.hub, each.spoke) for each in rule.values or ()]
        complete = True
        for side, schema, known in ((HUB, hub, [a for a, _ in pairs]), (SPOKE, spoke, [b for _, b in pairs])):
            enum = schema.get("enum")
            complete = complete and bool(enum)
            for value in enum or ():
                if strictly(value) not in map(strictly, known):
                    self._error(f"{where}.values", f"lacks {value!r}, which the {side} allows")
                    return None
        one_to_one = all(len({strictly(pair[i]) for pair in pairs}) == len(pairs) for i in (0, 1))
        return renaming(pairs, exact=complete and one_to_one)

    def _unit(
        self,
        unit: str,
        make: Callable[[str, str], Converter],
        units: Sequence[str],
        hub: Schema,
        spoke: Schema,
        where: str,
    ) -> Converter | None:
        if unit not in units:
            self._error(where, f"{unit!r} is none of {', '.join(filter(None, units))}")
            return None
        texts = [schema.get("type") == "string" or bool(schema.get(INT_OR_STRING)) for schema in (hub, spoke)]
        numbers = [schema.get("type") in _NUMBERS for schema in (hub, spoke)]
        if texts[1] and numbers[0]:
            return make(unit, str(hub["type"]))
        if texts[0] and numbers[1]:
            return make(unit, str(spoke["type"])).swapped()
        self._error(where, "needs a string on one side and a number on the other")
        return None

    def _wrapped(self, hub: Schema, spoke: Schema, where: str) -> Converter | None:
        lists = [schema.get("type") == "array" for schema in (hub, spoke)]
        if lists[0] == lists[1]:
            self._error(f"{where}.wrap", "needs a list on one side alone")
            return None
        single, items = (hub, spoke.get("items") or {}) if lists[1] else (spoke, hub.get("items") or {})
        found = difference(single, items)
        if found:
            self._error(f"{where}.wrap", f"the items are not like what stands alone: {found}")
            return None
        return wrapping() if lists[1] else wrapping().swapped()

    def _keyed(self, rule: ConversionRule, hub: Schema, spoke: Schema, where: str) -> Converter | None:
        lists = [schema.get("type") == "array" for schema in (hub, spoke)]
        maps = [isinstance(schema.get("additionalProperties"), Mapping) for schema in (hub, spoke)]
        if not ((lists[0] and maps[1]) or (lists[1] and maps[0])):
            self._error(
                f"{where}.key", "needs a list of objects on one side and a map of objects on the other"
            )
            return None
        key = rule.key or ""
        list_, map_ = (hub, spoke) if lists[0] else (spoke, hub)
        items, values = dict(list_.get("items") or {}), map_["additionalProperties"]
        properties = dict(items.get("properties") or {})
        if (properties.pop(key, None) or {}).get("type") != "string":
            self._error(f"{where}.key", f"the items have no string {key}")
            return None
        items["properties"] = properties
        # Inside, the map's side is the hub; `keying` speaks of it like that.
        pair = (items, values) if lists[0] else (values, items)
        inner = self._inner(pair[0], pair[1], rule.each or (), f"{where}.")
        if inner is None:
            return None
        way = inner.converter()
        made = keying(key, way) if lists[1] else keying(key, way.swapped()).swapped()
        return replace(made, forgive=_each_forgiven(inner))

    def _each(self, rule: ConversionRule, hub: Schema, spoke: Schema, where: str) -> Converter | None:
        lists = [isinstance(schema.get("items"), Mapping) for schema in (hub, spoke)]
        maps = [isinstance(schema.get("additionalProperties"), Mapping) for schema in (hub, spoke)]
        if not all(lists) and not all(maps):
            self._error(f"{where}.each", "needs two lists or two maps of objects")
            return None
        part = "items" if all(lists) else "additionalProperties"
        inner = self._inner(hub[part], spoke[part], rule.each or (), f"{where}.")
        if inner is None:
            return None
        over = over_list if all(lists) else over_map
        return Converter(over(inner.to_hub), over(inner.to_spoke), inner.exact, _each_forgiven(inner))

    def _inner(self, hub: Schema, spoke: Schema, rules: Sequence[ConversionRule], at: str) -> "Scope | None":
        scope = Scope(hub, spoke, rules, top=False, at=at)
        if scope.errors:
            self.errors.extend(scope.errors)
            return None
        return scope


def _forgiven(before: Any, after: Any, steps: Steps, forgive: Forgive) -> Any:
    if not steps:
        return forgive(before, after)
    if not isinstance(before, dict):
        return before
    step = steps[0]
    old = before.get(step, ABSENT)
    new = _forgiven(old, after.get(step, ABSENT) if isinstance(after, dict) else ABSENT, steps[1:], forgive)
    if new is old:
        return before
    if new is ABSENT:
        return {key: each for key, each in before.items() if key != step}
    return {**before, step: new}


def _each_forgiven(inner: Scope) -> Callable[[str, Any, Any], Any] | None:
    if not inner.lossy:
        return None

    def forgiven(side: str, before: Any, after: Any) -> Any:
        if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            return [inner.forgiven(side, one, other) for one, other in zip(before, after, strict=True)]
        if isinstance(before, dict) and isinstance(after, dict):
            return {key: inner.forgiven(side, each, after.get(key, ABSENT)) for key, each in before.items()}
        return before

    return forgiven
