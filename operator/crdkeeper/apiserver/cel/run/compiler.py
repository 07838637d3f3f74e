"""Compiles a syntax tree to closures.

Names become places in a frame, macros loops, and constants are evaluated in advance.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from crdkeeper.apiserver.cel.library.conversion import TYPE_NAMES
from crdkeeper.apiserver.cel.library.functions import GLOBALS, MEMBERS
from crdkeeper.apiserver.cel.run import budget
from crdkeeper.apiserver.cel.run.budget import Frame
from crdkeeper.apiserver.cel.run.comprehensions import LOOPS, Loop, Run
from crdkeeper.apiserver.cel.run.folding import constant_of, folded, literal_value
from crdkeeper.apiserver.cel.run.functions import REGEXES, evaluates_all, has_constant_pattern, prepared
from crdkeeper.apiserver.cel.run.operations import (
    OPERATORS,
    called,
    constant,
    failing,
    in_container,
    optional_map,
    optional_or,
    sort_by,
    variable,
)
from crdkeeper.apiserver.cel.run.panics import beside, flattened, list_or_panic, no_error
from crdkeeper.apiserver.cel.run.selection import chain
from crdkeeper.apiserver.cel.syntax.nodes import (
    Call,
    Comprehension,
    Expr,
    Identifier,
    ListLiteral,
    Literal,
    Macro,
    MapLiteral,
    Op,
    Select,
)
from crdkeeper.apiserver.cel.values.containers import NONE, CelMap, OptionalValue
from crdkeeper.apiserver.cel.values.sets import constant_set
from crdkeeper.apiserver.cel.values.sizes import size_of
from crdkeeper.apiserver.cel.values.values import (
    MISSING,
    CelType,
    EvaluationError,
    Indeterminate,
    Value,
)

_LAZY: Final = frozenset((Op.AND, Op.OR, "or", "orValue"))
"""Calls that decide themselves what they evaluate."""
_SAME_WITH_ERROR: Final = frozenset(OPERATORS) - {Op.ADD, Op.IN}
"""Operators whose cost does not depend on the other operand if one is an error."""


class Compiler:
    """Compiles one expression to a closure; `slots` and `cost` are what it needs, once it is compiled."""

    def __init__(self, overloads: Mapping[Call, Sequence[str]], variables: Sequence[str]) -> None:
        """The variables have the first places in a frame, after the budget."""
        self._overloads = overloads
        self._places = {name: place for place, name in enumerate(variables, 1)}
        self._scope: dict[str, int] = {}
        self.slots = len(variables) + 1
        self.cost = 0
        self._calls = 0
        """How many calls and macros have been compiled."""

    def compile(self, node: Expr) -> Run:
        """The closure of a node; its constant cost is added to `cost`."""
        if isinstance(node, Literal):
            return constant(literal_value(node))
        if isinstance(node, Identifier):
            return self._identifier(node)
        if isinstance(node, Select):
            return self._attribute(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Macro):
            return self._macro(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        return failing(Indeterminate("messages cannot be made here"))

    def _identifier(self, node: Identifier) -> Run:
        self.cost += 1
        name = node.name.removeprefix(".")
        # With a leading dot, a name is not that of a macro's variable.
        slot = self._scope.get(name) if name == node.name else None
        if slot is None:
            slot = self._places.get(name)
        if slot is not None:
            return variable(slot, name)
        if name in TYPE_NAMES:
            return constant(CelType(name))
        return failing(EvaluationError(f"no such attribute(s): {name}"))

    def _attribute(self, node: Expr, *, branch: bool = False) -> Run:
        """A chain of selections and indices, from what it starts at; `branch` is whether it is one of a
        conditional.
        """
        name = _dotted(node)
        if name in TYPE_NAMES and name.split(".")[0] not in self._scope:
            return constant(CelType(name))
        steps: list[tuple[Run | None, Value, bool, int]] = []
        test = isinstance(node, Select) and node.test_only
        current = node
        while True:
            self.cost += 1
            if isinstance(current, Select) and (current is node or not current.test_only):
                steps.append((None, current.field, False, current.offset))
                current = current.operand
            elif isinstance(current, Call) and current.function in (Op.INDEX, Op.OPT_INDEX, Op.OPT_SELECT):
                key = current.args[1]
                optional = current.function != Op.INDEX
                if isinstance(key, Literal):
                    steps.append((None, literal_value(key), optional, current.offset))
                else:
                    steps.append((self.compile(key), None, optional, current.offset))
                current = current.args[0]
            else:
                break
        return chain(self.compile(current), steps[::-1], test=test, branch=branch)

    def _call(self, node: Call) -> Run:
        function = node.function
        if function in (Op.INDEX, Op.OPT_INDEX, Op.OPT_SELECT):
            return self._attribute(node)
        self._calls += 1
        self.cost += budget.CONSTANT_CALL
        if node.target is not None:
            return self._member(node, node.target)
        if function == Op.IN and isinstance(node.args[1], ListLiteral):
            return self._membership(node.args[0], node.args[1])
        args = self._arguments(node, function, node.args)
        special = OPERATORS.get(function)
        if special is not None:
            return special(*args)
        value = folded(node)
        if value is not MISSING:
            # The API server reads the text of an address each time.
            self.cost += budget.cost_of(function)([constant_of(node.args[0])])
            return constant(value)
        return self._function(node, function, GLOBALS, args)

    def _arguments(self, node: Call, name: str, parts: Sequence[Expr]) -> list[Run]:
        """The arguments of a call, each evaluated even if one before it fails, where the server does so."""
        if name == Op.CONDITIONAL:
            condition, *branches = parts
            return [self.compile(condition), *map(self._branch, branches)]
        first = [self.compile(each) for each in parts[:1]]
        before = self._calls
        args = first + [self.compile(each) for each in parts[1:]]
        if len(args) != 2 or name in _LAZY or (self._calls == before and name in _SAME_WITH_ERROR):
            return args
        known = constant_of(parts[1])
        # The depth of flatten is a factor of its cost.
        if name != "flatten" and known is not MISSING and size_of(known) <= budget.SMALL:
            return args
        overloads = self._overloads.get(node, ())
        overload = overloads[0] if len(overloads) == 1 else ""
        pattern = name in REGEXES and known is not MISSING
        if name in OPERATORS or evaluates_all(overload, 2, constant_pattern=pattern):
            args[0] = beside(args[0], args[1], budget.cost_of(name))
        return args

    def _branch(self, node: Expr) -> Run:
        tests = isinstance(node, Select) and node.test_only
        return self._attribute(node, branch=True) if tests else self.compile(node)

    def _member(self, node: Call, target: Expr) -> Run:
        prefix = _dotted(target)
        qualified = f"{prefix}.{node.function}"
        if prefix and qualified in GLOBALS:
            return self._function(node, qualified, GLOBALS, self._arguments(node, qualified, node.args))
        args = self._arguments(node, node.function, (target, *node.args))
        if node.function in ("or", "orValue") and len(args) == 2:
            return optional_or(*args, whole=node.function == "or")
        return self._function(node, node.function, MEMBERS, args)

    def _function(
        self, node: Call, name: str, functions: Mapping[str, Callable[..., Value]], args: list[Run]
    ) -> Run:
        function = prepared(node, name, functions, self._overloads.get(node, ()))
        if function is None:
            return failing(Indeterminate(f"the function {name}"))
        if name == "distinct" or (name == "sort" and self._is_resolved(node)):
            args = [list_or_panic(each) for each in args]
        elif name == "flatten" and len(args) > 1:
            args = flattened(*args)
        cost = budget.cost_of(name, constant_pattern=has_constant_pattern(node, name))
        return called(function, args, cost)

    def _sorts_by_one_type(self, node: Macro) -> bool:
        expansion = node.expansion
        result = expansion.result if isinstance(expansion, Comprehension) else expansion
        return isinstance(result, Call) and self._is_resolved(result)

    def _is_resolved(self, node: Call) -> bool:
        return len(self._overloads.get(node, ())) == 1

    def _membership(self, searched: Expr, container: ListLiteral) -> Run:
        value, values = self.compile(searched), self.compile(container)
        if not container.elements:
            return constant(False)
        known = (
            None if container.optional else constant_set([constant_of(each) for each in container.elements])
        )
        if known is None:
            return in_container(beside(value, values, budget.cost_of(Op.IN)), values)
        return lambda frame: known(value(frame))

    def _macro(self, node: Macro) -> Run:
        self._calls += 1
        before = self.cost
        target = self.compile(node.target)
        if node.name in ("optMap", "optFlatMap"):
            self.cost += self.cost - before + budget.CONSTANT_CALL
            (slot,), (body,), _ = self._within(node, (node.body,))
            return optional_map(target, slot, body, wrap=node.name == "optMap")
        parts = (node.body,) if node.filter is None else (node.body, node.filter)
        slots, runs, cost = self._within(node, parts)
        loop = Loop(target, slots, cost + budget.ITERATION)
        if node.name == "sortBy":
            self.cost += budget.SORT_BY
            keys = LOOPS["map"](Loop(variable(slots[0] - 1, ""), slots, loop.cost), None, runs[0])
            if self._sorts_by_one_type(node):
                target, keys = no_error(target), list_or_panic(keys)
            return sort_by(target, slots[0] - 1, keys)
        return LOOPS[node.name](loop, runs[1] if len(runs) > 1 else None, runs[0])

    def _within(self, node: Macro, parts: tuple[Expr, ...]) -> tuple[tuple[int, ...], list[Run], int]:
        """The slots of a macro's variables, its parts compiled with them, and their cost per iteration."""
        first = self.slots + (node.name == "sortBy")
        slots = tuple(range(first, first + len(node.variables)))
        self.slots = first + len(slots)
        outer, cost = self._scope, self.cost
        self._scope = outer | dict(zip(node.variables, slots, strict=True))
        self.cost = 0
        runs = [self.compile(each) for each in parts]
        inner = self.cost
        self._scope = outer
        self.cost = cost + (inner if node.name in ("optMap", "optFlatMap") else budget.RESULT)
        return slots, runs, inner

    def _list(self, node: ListLiteral) -> Run:
        self.cost += budget.LIST_COST
        if not node.optional and all(isinstance(each, Literal) for each in node.elements):
            return constant([literal_value(each) for each in node.elements if isinstance(each, Literal)])
        runs = [self.compile(each) for each in node.elements]
        if not node.optional:
            return lambda frame: [run(frame) for run in runs]
        optional = node.optional

        def make(frame: Frame) -> Value:
            made = []
            for at, run in enumerate(runs):
                value = run(frame)
                if at in optional:
                    if type(value) is not OptionalValue:
                        raise Indeterminate("the error of an optional element that is not optional")
                    if value is NONE:
                        continue
                    value = value.value
                made.append(value)
            return made

        return make

    def _map(self, node: MapLiteral) -> Run:
        self.cost += budget.MAP_COST
        entries = [(self.compile(each.key), self.compile(each.value), each.optional) for each in node.entries]

        def make(frame: Frame) -> Value:
            made = CelMap()
            for key_of, value_of, optional in entries:
                key, value = key_of(frame), value_of(frame)
                if optional:
                    if type(value) is not OptionalValue:
                        raise Indeterminate("the error of an optional entry that is not optional")
                    if value is NONE:
                        made.drop(key)
                        continue
                    value = value.value
                made.put(key, value)
            return made

        return make


def _dotted(node: Expr) -> str:
    parts = []
    while isinstance(node, Select) and not node.test_only:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Identifier):
        return ""
    return ".".join((node.name.lstrip("."), *reversed(parts)))
