"""Rules compiled once for two schemas: what is copied, what goes through a rule, and what no rule covers.

A scope is a pair of objects, one of each version: the whole object, or an item of two lists. Each field of
each side is either copied or covered by exactly one rule. Anything else is an error that proposes a rule.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from crdkeeper.api.versionconversion import ConversionRule
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion import actions
from crdkeeper.core.conversion.actions import Action, Tree
from crdkeeper.core.conversion.coverage import HUB, SPOKE, Coverage, other_side
from crdkeeper.core.conversion.fieldpaths import ABSENT, BadPath, Steps, show
from crdkeeper.core.conversion.pairs import SCALARS, Unfit, converter
from crdkeeper.core.conversion.scopefields import Fields, RuleField
from crdkeeper.core.conversion.standins import REFUSED, for_metadata, misfit, stand_in
from crdkeeper.core.conversion.template import BadTemplate, Template
from crdkeeper.core.conversion.values import Convert, Unconvertible, casting, kind_of, same

_KINDS: Final = (
    "values",
    "scale",
    "cast",
    "quantity",
    "duration",
    "wrap",
    "separator",
    "key",
    "join",
    "cel",
    "aside",
    "drop",
)
_AROUND_EACH: Final = frozenset(("key", "wrap"))

Forgive = Callable[[Any, Any], Any]
"""Returns what a value may have been, given the value and its result after a round trip."""


@dataclass(frozen=True, slots=True)
class RuleError:
    """An error in a rule, or a field that no rule covers."""

    where: str
    """The rule's field, such as `rules[2].spoke`; for a missing rule, the list that lacks it, such as
    `rules[2].each`, or `schema` for the whole object.
    """
    message: str
    proposals: Sequence[str] = ()
    """YAML of rules that could be added where one is missing, the likeliest first."""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class Scope:
    """Two versions of an object and the rules between them. Compiling never raises; check `errors`."""

    def __init__(
        self,
        hub: Schema,
        spoke: Schema,
        rules: Sequence[ConversionRule],
        *,
        top: bool = True,
        at: str = "rules",
        refuse: bool = False,
    ) -> None:
        """With `refuse`, no field gets a stand-in (`standins`), whatever the rules say."""
        self.errors: list[RuleError] = []
        self.exact = True
        """Whether both directions are each other's inverse for every object that the schemas allow."""
        self.costly = False
        """Whether there are expressions, whose cost must be limited."""
        self._schemas = {HUB: hub, SPOKE: spoke}
        self._top = top
        self._refuse = refuse
        self._fields = Fields(self._schemas, top=top)
        self._actions: dict[str, list[Action]] = {HUB: [], SPOKE: []}
        """The actions that write each side."""
        self._last: dict[str, list[Action]] = {HUB: [], SPOKE: []}
        """The actions that write each side after all of `_actions`."""
        self._losses: dict[str, list[tuple[Steps, Forgive]]] = {HUB: [], SPOKE: []}
        """Fields that may be lost, or in which something may, by side."""
        for i, rule in enumerate(rules):
            self._add(rule, f"{at}[{i}]")
        self.moves_metadata = top and any(
            steps[0] == "metadata" for claimed in self._fields.claimed.values() for steps in claimed
        )
        """Whether rules are about annotations or labels."""
        if not self.errors:
            coverage = Coverage(self._schemas, self._fields.claimed, self._fields.trees, top=top)
            self.errors.extend(RuleError("schema", str(each), each.rules) for each in coverage.gaps)
            self.exact = self.exact and coverage.exact
        self.to_hub = self._way(SPOKE, HUB)
        """Converts the spoke's object to the hub. Raises Unconvertible, naming the field."""
        self.to_spoke = self._way(HUB, SPOKE)
        """Converts the hub's object to the spoke. Raises Unconvertible, naming the field."""

    def _way(self, source: str, target: str) -> Convert:
        return _converting(self._fields.trees[source], (*self._actions[target], *self._last[target]))

    def forgiven(self, side: str, before: Any, after: Any) -> Any:
        """`before`, but with the values of `after`, its round trip, where rules allow losses."""
        for steps, forgive in self._losses[side]:
            before = _forgiven(before, after, steps, forgive)
        return before

    @property
    def lossy(self) -> bool:
        """Whether rules allow something to be lost."""
        return any(self._losses.values())

    def movable(self, side: str) -> frozenset[Steps]:
        """The annotations and labels of that side that rules read or write."""
        claimed = self._fields.claimed[side] if self._top else ()
        return frozenset(steps for steps in claimed if steps[0] == "metadata")

    def _error(self, where: str, message: str) -> None:
        self.errors.append(RuleError(where, message))

    # The rules

    def _add(self, rule: ConversionRule, where: str) -> None:
        kinds = [kind for kind in _KINDS if getattr(rule, kind) is not None]
        if rule.each is not None and not _AROUND_EACH.issuperset(kinds):
            kinds.append("each")
        if len(kinds) > 1:
            self._error(where, f"{' and '.join(kinds)} exclude each other")
            return
        kind = kinds[0] if kinds else "each" if rule.each is not None else ""
        if rule.hub is None and rule.spoke is None:
            self._error(where, "names neither a field of the hub nor one of the spoke")
        elif rule.fill is not None and not kind:
            self._error(
                f"{where}.fill", "is for a rule by which a value may have no counterpart, not for a move"
            )
        elif rule.refuse and kind in ("aside", "drop"):
            self._error(
                f"{where}.refuse", f"is for a rule by which a value may have no counterpart, not {kind}"
            )
        elif rule.refuse and rule.fill is not None:
            self._error(where, "fill and refuse exclude each other")
        elif kind == "join":
            self._add_join(rule, where)
        elif kind == "cel":
            self._add_expressions(rule, where)
        elif kind in ("aside", "drop"):
            self._add_one_sided(rule, where)
        elif rule.hub is None or rule.spoke is None:
            given, missing = (HUB, SPOKE) if rule.spoke is None else (SPOKE, HUB)
            self._error(
                where,
                f"names a field of the {given} alone: name one of the {missing}, or say aside, drop or cel",
            )
        else:
            self._add_pair(rule, kind, where)

    def _claim(self, side: str, text: str, where: str, *, rest: bool = False) -> RuleField | None:
        try:
            return self._fields.claim(side, text, where, rest=rest)
        except BadPath as error:
            self._error(where, str(error))
            return None

    def _add_pair(self, rule: ConversionRule, kind: str, where: str) -> None:
        hub = self._claim(HUB, rule.hub or "", f"{where}.hub")
        spoke = self._claim(SPOKE, rule.spoke or "", f"{where}.spoke")
        if hub is None or spoke is None:
            return
        try:
            within = partial(self._inner, f"{where}.each", self._refuse or bool(rule.refuse))
            made = converter(rule, kind, hub[1], spoke[1], within, refuse=self._refuse or bool(rule.refuse))
        except Unfit as unfit:
            self._error(where + unfit.part, str(unfit))
            return
        if made is None:
            return
        fills = self._fills(rule, where)
        for side, own, other, there, back in (
            (HUB, hub, spoke, made.to_hub, made.to_spoke),
            (SPOKE, spoke, hub, made.to_spoke, made.to_hub),
        ):
            otherwise = self._otherwise(
                rule, f"{where}.fill.{side}", side, own, fills.get(side, ABSENT), back
            )
            carried = actions.carry(other[0], own[0], self._checked(own[0], there), otherwise)
            self._act(side, carried, own[0])
        if made.forgive is not None:
            for side, steps in ((HUB, hub[0]), (SPOKE, spoke[0])):
                self._losses[side].append((steps, partial(made.forgive, side)))
        # If the object that the field moves into does not exist, it is created, and remains when the field is
        # removed.
        shared = hub[0][:-1] == spoke[0][:-1] and all(map(self._fields.shared, (hub[0], spoke[0])))
        self.exact = self.exact and made.exact and shared

    def _fills(self, rule: ConversionRule, where: str) -> Mapping[str, Any]:
        """The rule's `fill` by side."""
        if rule.fill is None:
            return {}
        if not isinstance(rule.fill, dict) or not rule.fill.keys() <= {HUB, SPOKE}:
            said = "must be {hub: …, spoke: …}, what a side shows where the other's value has no counterpart"
            self._error(f"{where}.fill", said)
            return {}
        return rule.fill

    def _otherwise(
        self,
        rule: ConversionRule,
        where: str,
        side: str,
        target: RuleField,
        fill: Any,
        back: Convert | None,
    ) -> Any:
        """What a field shows if its value cannot be computed; `fill` is ABSENT if the rule has none."""
        steps, schema = target
        if fill is not ABSENT and misfit(fill, schema):
            self._error(where, f"{show(steps)}: the schema does not allow this value")
        if self._refuse or rule.refuse:
            return REFUSED
        if fill is not ABSENT:
            return fill
        around = self._fields.find(side, steps[:-1]) if steps[:-1] else self._schemas[side]
        return stand_in(schema, back, required=steps[-1] in ((around or {}).get("required") or ()))

    def _checked(self, steps: Steps, convert: Callable[..., Any]) -> Callable[..., Any]:
        return for_metadata(steps, convert) if self._top and steps[0] == "metadata" else convert

    def _act(self, side: str, action: Action, *targets: Steps) -> None:
        """Run this when an object of that side is created."""
        self._actions[side].append(action)
        self._own(side, *targets)

    def _own(self, side: str, *targets: Steps) -> None:
        for steps in targets:
            self._fields.trees[other_side(side)].own(steps)

    def _add_one_sided(self, rule: ConversionRule, where: str) -> None:
        if rule.hub is not None and rule.spoke is not None:
            self._error(where, "aside and drop are for a field that one side alone has: name one side")
            return
        side, text = (HUB, rule.hub) if rule.hub is not None else (SPOKE, rule.spoke)
        rest = rule.aside is not None and rule.fill is None
        claimed = self._claim(side, text or "", f"{where}.{side}", rest=rest)
        if claimed is None:
            return
        if rule.aside or rule.fill is not None:
            self.exact = False
        if rule.drop:
            self._losses[side].append((claimed[0], lambda before, after: after))
        if rule.fill is not None:
            self._last[side].append(actions.fill(claimed[0], rule.fill))
            self._own(side, claimed[0])

    def _add_expressions(self, rule: ConversionRule, where: str) -> None:
        # The engine is large, and few conversions need it.
        from crdkeeper.apiserver.cel.expressions import BadExpression
        from crdkeeper.core.conversion.expressions import expression

        if rule.cel is None:
            return
        claimed = {
            side: self._claim(side, text, f"{where}.{side}")
            for side, text in ((HUB, rule.hub), (SPOKE, rule.spoke))
            if text is not None
        }
        self.exact, self.costly = False, True
        fills = self._fills(rule, where)
        texts = ((HUB, "toHub", rule.cel.to_hub), (SPOKE, "toSpoke", rule.cel.to_spoke))
        if not any(text for _, _, text in texts):
            self._error(f"{where}.cel", "has no expression: toHub, toSpoke or both")
        for side, name, text in texts:
            at, source = f"{where}.cel.{name}", other_side(side)
            target, own = claimed.get(side), claimed.get(source)
            if text is None or (side in claimed and target is None) or (source in claimed and own is None):
                continue
            if target is None:
                self._error(at, f"the rule names no field of the {side}")
                continue
            steps = own[0] if own is not None else None
            try:
                made = expression(text, at, self._schemas[source], steps, target[1], top=self._top)
            except BadExpression as error:
                self._error(at, str(error))
                continue
            nullable = bool(target[1].get("nullable"))
            fill = fills.get(side, ABSENT)
            otherwise = self._otherwise(rule, f"{where}.fill.{side}", side, target, fill, None)
            made = self._checked(target[0], made)
            computed = actions.compute(steps, target[0], made, otherwise, nullable=nullable)
            self._act(side, computed, target[0])

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
            if type_ not in SCALARS:
                self._error(f"{where}.join.parts.{name}", f"{show(part[0])} is no scalar")
                return
            caster = casting(type_, "string")
            to_part[name] = part[0], self._checked(part[0], caster.to_hub)
            to_text[name] = part[0], caster.to_spoke
        fills = self._fills(rule, where)
        given = fills.get(other, {})
        if not isinstance(given, dict) or not given.keys() <= to_part.keys():
            self._error(f"{where}.fill.{other}", f"must have values by the parts: {', '.join(to_part)}")
            return
        otherwise = {
            part[0]: self._otherwise(
                rule, f"{where}.fill.{other}.{name}", other, part, given.get(name, ABSENT), to_text[name][1]
            )
            for name, part in parts.items()
            if part is not None
        }
        split = actions.split(whole[0], template, to_part, otherwise)
        self._act(other, split, *(steps for steps, _ in to_part.values()))
        fill = self._otherwise(rule, f"{where}.fill.{side}", side, whole, fills.get(side, ABSENT), None)
        check = self._checked(whole[0], same)
        self._act(side, actions.join(whole[0], template, to_text, check, fill), whole[0])
        self.exact = False

    def _inner(
        self, at: str, refuse: bool, hub: Schema, spoke: Schema, rules: Sequence[ConversionRule]
    ) -> "Scope | None":
        scope = Scope(hub, spoke, rules, top=False, at=at, refuse=refuse)
        self.costly = self.costly or scope.costly
        self.errors += [replace(each, where=at) if each.where == "schema" else each for each in scope.errors]
        return None if scope.errors else scope


def _converting(tree: Tree, applied: Sequence[Action]) -> Convert:
    copy = tree.copier()

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Unconvertible(f"{kind_of(value)}, and no object")
        made = copy(value)
        for act in applied:
            act(value, made)
        return made

    return convert


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
