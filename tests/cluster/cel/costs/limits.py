"""Objects that cost what is asked for: exactly as much as the API server allows, or a little more.

A rule under test stands among others on the items of a list. The items before the last one spend the budget
of the object, by two rules that sort and one that reads; the last item has the data that the rule is about.
For the limit of one evaluation, the rule itself sorts and reads first. Some of it comes from defaults.
"""

import copy
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

from crdkeeper.apiserver.cel.compilation import RulePlace, compile_rules
from crdkeeper.apiserver.cel.run.budget import CALL_LIMIT, OBJECT_LIMIT
from crdkeeper.apiserver.cel.types.declared import declare
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate
from crdkeeper.apiserver.objects.defaulting import fill
from crdkeeper.apiserver.objects.objectnode import ObjectNode, copied
from crdkeeper.apiserver.objects.rulecompilation import (
    ExpansionLimit,
    RuleSubject,
    Variables,
    compiled_rules,
)
from crdkeeper.apiserver.schema.decoding import ABSENT
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA, VALIDATIONS
from crdkeeper.apiserver.schema.violation import Report
from tests.cluster.cel.compiling.costly import COSTS
from tests.cluster.cel.compiling.expressions import Nested, calls
from tests.cluster.cel.compiling.schemas import SELF
from tests.cluster.cel.costs.data import DATA, RULES

Json = Any
ITEMS: Final = 26
"""The most items of the list that spends the budget."""
RULES_AT_ONCE: Final = 20
_SORTED, _SORTED_ALONE = 425, 712
"""The most elements to sort in rules for many items, and in a rule for one."""
_READ: Final = 30_000
_MOST_EXPENSIVE: Final = 1_500_000
"""What a rule may cost by the server's estimate, so that many together stay below its limit."""
_MESSAGES: Final = ("'fails ' + self.se", "self.sb.lowerAscii()", "self.se + self.sb", "string(1 / 0)")


def _bounded(schema: Json) -> Json:
    """A schema with a limit for every size, by which the server estimates costs."""
    limited = copy.deepcopy(schema)
    waiting = [limited]
    while waiting:
        each = waiting.pop()
        kind = each.get("type")
        if kind == "string" or each.get("x-kubernetes-int-or-string"):
            each.setdefault("maxLength", 30)
        elif kind == "array":
            each.setdefault("maxItems", 6)
            waiting.append(each["items"])
        waiting += (each.get("properties") or {}).values()
        if isinstance(each.get("additionalProperties"), dict):
            each.setdefault("maxProperties", 4)
            waiting.append(each["additionalProperties"])
    return limited


def _item(most: int, rules: Sequence[Json], defaults: Json) -> Json:
    item = _bounded(SELF)
    own = {
        "id": {"type": "integer"},
        "t": {"type": "integer"},
        "sorted": {"type": "array", "maxItems": most, "items": {"type": "integer"}},
        "read": {"type": "string", "maxLength": _READ},
    }
    properties = item["properties"] | own
    for name, default in defaults.items():
        properties[name] = {**properties[name], "default": default}
    item |= {"properties": properties, "required": ["id", "t"], VALIDATIONS: [*rules]}
    return item


def _list(most: int, item: Json) -> Json:
    return {
        "type": "array",
        "maxItems": most,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["id"],
        "items": item,
    }


_WITHOUT_DEFAULT: Final = ("emb", "pu")


def _defaults(rng: random.Random, most: int) -> Json:
    """Defaults of fields, of which some are those of the data, and others cost much."""
    known = {name: each for name, each in DATA[0].items() if name not in _WITHOUT_DEFAULT}
    some = {name: each for name, each in known.items() if rng.randrange(4) == 0}
    return {**some, "sorted": [0] * most, "read": "x" * _READ}


_SPENDING: Final = (
    {"rule": "!has(self.sorted) || self.sorted.sort().size() >= 0"},
    {"rule": "!has(self.sorted) || self.sorted.sort().size() >= 0 || false"},
    {"rule": "!has(self.read) || self.read.lowerAscii().size() >= 0"},
)


def _guarded(at: int, rule: str) -> str:
    return f"self.t != {at} || ({rule})"


def _alone(at: int, rule: str) -> str:
    spent = "self.sorted.sort().size() >= 0 && self.read.lowerAscii().size() >= 0"
    return _guarded(at, f"{spent} && ({rule})")


def _decoded(schema: Json) -> Json:
    found = SCHEMA.decode(schema, root("schema"), Report())
    assert found is not ABSENT
    return found


class Kind:
    """A list whose items have the rules under test, for one of the two limits."""

    def __init__(self, rules: Sequence[str], rng: random.Random, *, alone: bool) -> None:
        self.alone = alone
        write = _alone if alone else _guarded
        tested: list[Json] = [{"rule": write(at, each)} for at, each in enumerate(rules)]
        for each in tested:
            if rng.randrange(4) == 0:
                each["messageExpression"] = rng.choice(_MESSAGES)
        before = () if alone else _SPENDING
        most = _SORTED_ALONE if alone else _SORTED
        self._defaults = _defaults(rng, most)
        self._rng = rng
        item = _item(most, [*before, *tested], self._defaults)
        self.schema = _list(1 if alone else ITEMS, item)
        decoded = _decoded(item)
        self._node = ObjectNode(decoded)
        declared = declare(decoded, root=False)
        assert declared is not None
        self._rules = compiled_rules(decoded, declared, ExpansionLimit())
        self._subject = RuleSubject(decoded, root=False)
        self._first = len(before)

    def _cost_of(self, at: int, variables: Variables, *, has_old: bool) -> int:
        rule = self._rules[at]
        if rule.program is None or (rule.uses_old and not has_old):
            return 0
        found = rule.program.counted.evaluate(variables, limit=10 * OBJECT_LIMIT)
        cost = found.cost
        if found.by_chance:
            raise Indeterminate("the server goes through a map in any order")
        failed = found.value is not True and not isinstance(found.value, EvaluationError)
        if rule.message is not None and failed:
            cost += rule.message.counted.evaluate(variables).cost
        return cost

    def cost(self, item: Json, old: Json, only: int | None = None) -> int:
        """What the rules of an item cost; of one rule alone, without its message. Raises Indeterminate."""
        filled = copied(item)
        fill(filled, self._node)
        variables = self._subject.variables(filled, old)
        if only is not None:
            program = self._rules[self._first + only].program
            assert program is not None
            found = program.counted.evaluate(variables, limit=10 * OBJECT_LIMIT)
            if found.by_chance:
                raise Indeterminate("the server goes through a map in any order")
            return found.cost
        return sum(self._cost_of(at, variables, has_old=old is not None) for at in range(len(self._rules)))

    def items(self, at: int, data: Json, old: Json, over: int) -> list[Json]:
        """The list for one rule: `over` is how much it costs more than the limit. Raises Indeterminate."""
        made = self._whole_items(at, data, old, over)
        return made if self._rng.randrange(2) else [self._without_defaults(each) for each in made]

    def _without_defaults(self, item: Json) -> Json:
        """The item without what the API server adds to it."""
        left = {name: each for name, each in item.items() if name not in self._defaults}
        return left | {
            name: item[name] for name, default in self._defaults.items() if item.get(name, default) != default
        }

    def _whole_items(self, at: int, data: Json, old: Json, over: int) -> list[Json]:
        last = {**data, "id": 0, "t": at, "sorted": [], "read": ""}
        if self.alone:
            return [self._spending(last, CALL_LIMIT + over, lambda item: self.cost(item, old, at))]
        left = OBJECT_LIMIT + over - self.cost(last, old)
        made: list[Json] = []
        while left > 0:
            item = self._spending({"id": len(made) + 1, "t": -1}, left, lambda item: self.cost(item, None))
            left -= self.cost(item, None)
            made.append(item)
        assert left == 0 and len(made) < ITEMS, (left, len(made))
        return [*made, last]

    def _spending(self, item: Json, cost: int, measured: Any) -> Json:
        """The item with what makes it cost so much, or as much as one item can without passing it by."""
        empty = {**item, "sorted": [], "read": ""}
        times = 1 if self.alone else len(_SPENDING) - 1
        left = cost - measured(empty)
        most = _SORTED_ALONE if self.alone else _SORTED
        full = times * 2 * most**2
        if not self.alone and full < left < full + 20_000:
            most //= 2  # what is left then must not be less than an item costs
        count = min(most, math.isqrt(max(left, 0) // (2 * times)))
        left -= times * 2 * count**2
        assert left >= 0
        # Each ten characters that are read cost one.
        read = min(left * 10, _READ)
        return {**empty, "sorted": [0] * count, "read": "x" * read}


def rules(rng: random.Random) -> Iterator[str]:
    """Rules without an end: those written down in between random ones."""
    written = [*COSTS, *RULES, *calls(rng, 1)]
    rng.shuffle(written)
    nested = Nested(rng)
    while True:
        yield nested.rule()
        if written:
            yield written.pop()


def chosen(drawn: Iterator[str], *, alone: bool) -> list[str]:
    """The next rules that the API server takes, and thinks cheap enough to stand together in a CRD."""
    found: list[str] = []
    while len(found) < RULES_AT_ONCE:
        rule = next(drawn)
        write = _alone if alone else _guarded
        tested = _item(_SORTED_ALONE if alone else _SORTED, [{"rule": write(0, rule)}], {})
        place = RulePlace.root(_decoded(_list(1 if alone else ITEMS, tested)))
        (compiled,) = compile_rules(place.items(place.schema["items"]))
        verdict = compiled.rule
        fine = verdict is not None and verdict.problem is None and verdict.left is None
        if fine and compiled.total_cost <= _MOST_EXPENSIVE:
            found.append(rule)
    return found


__all__ = ["DATA", "Kind", "chosen", "rules"]
