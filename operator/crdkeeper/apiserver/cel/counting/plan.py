"""Creates the steps of a counted evaluation from a checked expression.

Macros are expanded, and what the server computes in advance costs nothing. Follows cel-go:
interpreter/planner.go and interpreter/decorators.go.
"""

from collections.abc import Callable, Sequence
from typing import Final

from crdkeeper.apiserver.cel.counting.attributes import (
    Attribute,
    AttributeStep,
    Choice,
    Computed,
    ComputedQualifier,
    Instruction,
    PresenceStep,
    Qualifier,
    Variable,
)
from crdkeeper.apiserver.cel.counting.loops import Fold, appended, inserted
from crdkeeper.apiserver.cel.counting.prices import price_of
from crdkeeper.apiserver.cel.counting.steps import (
    Alternative,
    ConstantStep,
    Invocation,
    Logic,
    Look,
    NewList,
    NewMap,
)
from crdkeeper.apiserver.cel.library.functions import GLOBALS, MEMBERS
from crdkeeper.apiserver.cel.library.lists import sort_by_keys
from crdkeeper.apiserver.cel.run.budget import cost_of
from crdkeeper.apiserver.cel.run.folding import literal_value
from crdkeeper.apiserver.cel.run.functions import evaluates_all, prepared
from crdkeeper.apiserver.cel.syntax.macros import SORT_BY_KEYS
from crdkeeper.apiserver.cel.syntax.nodes import (
    MAP_INSERT,
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
from crdkeeper.apiserver.cel.types.checker import Checked, qualified_name
from crdkeeper.apiserver.cel.values.arithmetic import (
    BINARY,
    ORDERED,
    RELATIONS,
    add,
    negate,
    unknown_operator,
)
from crdkeeper.apiserver.cel.values.containers import CelMap
from crdkeeper.apiserver.cel.values.equality import compare, equal
from crdkeeper.apiserver.cel.values.membership import contains
from crdkeeper.apiserver.cel.values.sets import constant_set
from crdkeeper.apiserver.cel.values.values import (
    CelType,
    EvaluationError,
    Indeterminate,
    Value,
    elements_of,
    is_list,
    no_overload,
)

_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
"""Functions of a constant that are constants."""
_QUICK: Final = frozenset((*RELATIONS, *BINARY, Op.NOT, Op.NEGATE, Op.NOT_STRICTLY_FALSE)) - {Op.ADD}
"""Operators that take us no longer than a step does."""
_PATTERNS: Final = frozenset(("matches", "find", "findAll"))
_SELECTIONS: Final = frozenset((Op.INDEX, Op.OPT_INDEX, Op.OPT_SELECT))


def _relation(name: str) -> Callable[[Value, Value], bool]:
    holds = RELATIONS[name]

    def run(one: Value, two: Value) -> bool:
        if type(one) not in ORDERED:
            raise unknown_operator(name, one)
        return holds(compare(one, two), 0)

    return run


def _differs(one: Value, two: Value) -> bool:
    try:
        return not equal(one, two)
    except EvaluationError:
        return True


def _not(value: Value) -> bool:
    if type(value) is bool:
        return not value
    raise no_overload()


def _sorted_by(values: Value, keys: Value) -> Value:
    if not is_list(values):
        raise unknown_operator(SORT_BY_KEYS, values)
    return sort_by_keys(values, elements_of(keys))


_OPERATORS: Final[dict[str, Callable[..., Value]]] = {
    **BINARY,
    **{name: _relation(name) for name in RELATIONS},
    Op.EQUALS: equal,
    Op.NOT_EQUALS: _differs,
    Op.NOT: _not,
    Op.NEGATE: negate,
    Op.IN: lambda value, container: contains(container, value),
    Op.NOT_STRICTLY_FALSE: lambda value: value is not False,
    SORT_BY_KEYS: _sorted_by,
    MAP_INSERT: inserted,
}


class Planner:
    """Plans one expression; `slots` is the number of its variables, once it is planned."""

    def __init__(self, checked: Checked, variables: Sequence[str]) -> None:
        """`variables` are those of the expression; they have the first places."""
        self._checked = checked
        self._globals = {name: (at, None) for at, name in enumerate(variables)}
        self._scope: dict[str, tuple[int, Instruction | None]] = {}
        self.slots = len(variables)
        self._made = 0

    def plan(self, node: Expr) -> Instruction:
        """The steps of a node. Raises Indeterminate, and RecursionError."""
        self._made += 1
        if isinstance(node, Macro):
            return self.plan(node.expansion)
        if isinstance(node, Literal):
            return ConstantStep(literal_value(node))
        if isinstance(node, Identifier):
            return self._identifier(node)
        if isinstance(node, Select):
            return self._selection(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        if isinstance(node, Comprehension):
            return self._fold(node)
        raise Indeterminate("messages cannot be made here")

    def _type(self, node: Expr, name: str) -> Instruction | None:
        known = self._checked.types.get(node)
        if known is None or known.kind != "type":
            return None
        return ConstantStep(CelType(name.removeprefix(".")))

    def _identifier(self, node: Identifier) -> Instruction:
        name = node.name.removeprefix(".")
        local = self._scope.get(name)
        if local is not None and name != node.name:
            raise Indeterminate("a variable of a macro hides the one with a dot before it")
        found = local or self._globals.get(name)
        if found is None:
            named = self._type(node, name)
            if named is None:
                raise Indeterminate(f"the name {name}")
            return named
        return AttributeStep(Variable(name, *found))

    def _selection(self, node: Select) -> Instruction:
        named = self._checked.names.get(node)
        if named is not None:
            known = self._type(node, named)
            if known is None:
                raise Indeterminate(f"the name {named}")
            return known
        attribute = self._attribute(node.operand)
        attribute.add(Qualifier(node.field, optional=False, test=node.test_only))
        return PresenceStep(attribute) if node.test_only else AttributeStep(attribute)

    def _attribute(self, operand: Expr) -> Attribute:
        """The attribute of a selection's operand."""
        step = self.plan(operand)
        return _attribute_of(step)

    def _call(self, node: Call) -> Instruction:
        function = node.function.removeprefix(".")
        parts = list(node.args)
        namespaced = node in self._checked.namespaced
        if namespaced and node.target is not None:
            function = f"{qualified_name(node.target)}.{function}".removeprefix(".")
        elif node.target is not None:
            parts.insert(0, node.target)
        if function in _SELECTIONS:
            return self._index(node, parts)
        args = [self.plan(each) for each in parts]
        if function == Op.AND or function == Op.OR:
            return Logic(args, deciding=function == Op.OR)
        if function == Op.CONDITIONAL:
            return AttributeStep(Choice(args[0], _branch(args[1]), _branch(args[2])))
        if function in ("or", "orValue") and len(args) == 2:
            return Alternative(*args, whole=function == "or")
        return self._invocation(node, function, args, member=node.target is not None and not namespaced)

    def _index(self, node: Call, parts: Sequence[Expr]) -> Instruction:
        attribute = self._attribute(parts[0])
        optional = node.function != Op.INDEX
        key = self.plan(parts[1])
        qualifier: Qualifier
        if isinstance(key, ConstantStep):
            qualifier = Qualifier(key.value, optional=optional)
        elif isinstance(key, AttributeStep):
            qualifier = ComputedQualifier(key.attribute, optional=optional)
        else:
            qualifier = ComputedQualifier(Computed(key), optional=optional)
        attribute.add(qualifier)
        return AttributeStep(attribute)

    def _invocation(self, node: Call, name: str, args: Sequence[Instruction], *, member: bool) -> Instruction:
        ids = self._checked.overloads.get(node, ())
        overload = ids[0] if len(ids) == 1 else ""
        function: Callable[..., Value] | None = _OPERATORS.get(name)
        if function is None:
            function = prepared(node, name, MEMBERS if member else GLOBALS, ids)
        if function is None:
            raise Indeterminate(f"the function {name}")
        if name == Op.ADD and _is_accumulator(args[0]):
            function = _GROWN
        if overload == "in_list" and isinstance(args[1], ConstantStep):
            values = elements_of(args[1].value)
            found = constant_set(values)
            if not values or found is not None:
                return Look(args[0], found) if values and found is not None else ConstantStep(False)
        if name in _CONVERSIONS and len(args) == 1 and isinstance(args[0], ConstantStep):
            return ConstantStep(function(args[0].value))
        pattern = args[1] if name in _PATTERNS and len(args) > 1 else None
        compiled = isinstance(pattern, ConstantStep) and type(pattern.value) is str
        return Invocation(
            args,
            function,
            price_of(name, overload),
            None if name in _QUICK or function is _GROWN else cost_of(name, constant_pattern=compiled),
            evaluates_all=evaluates_all(
                overload or (name if name in _OPERATORS else ""), len(args), constant_pattern=compiled
            ),
            strict=name != Op.NOT_STRICTLY_FALSE,
        )

    def _list(self, node: ListLiteral) -> Instruction:
        elements = [self.plan(each) for each in node.elements]
        constants = [each.value for each in elements if isinstance(each, ConstantStep)]
        if len(constants) == len(elements) and not node.optional:
            return ConstantStep(constants)
        return NewList(elements, node.optional)

    def _map(self, node: MapLiteral) -> Instruction:
        entries = [(self.plan(each.key), self.plan(each.value), each.optional) for each in node.entries]
        constant = CelMap()
        for key, value, optional in entries:
            if optional or not isinstance(key, ConstantStep) or not isinstance(value, ConstantStep):
                return NewMap(entries)
            constant.put(key.value, value.value)
        return ConstantStep(constant)

    def _fold(self, node: Comprehension) -> Instruction:
        initial = self.plan(node.init)
        range_ = self.plan(node.range)
        outer = self._scope
        accumulator, first = self.slots, self.slots + 1
        names = (node.variable, node.variable2) if node.variable2 else (node.variable,)
        self.slots = first + len(names)
        within = outer | {node.accumulator: (accumulator, initial)}
        variables = tuple(range(first, self.slots))
        self._scope = within | {name: (slot, None) for name, slot in zip(names, variables, strict=True)}
        before = self._made
        condition, step = self.plan(node.condition), self.plan(node.step)
        work = self._made - before
        self._scope = within
        result = self.plan(node.result)
        self._scope = outer
        return Fold(range_, variables, accumulator, (condition, step, result), work)


def _attribute_of(step: Instruction) -> Attribute:
    if isinstance(step, AttributeStep):
        return step.attribute
    return Computed(step)


_branch = _attribute_of


def _is_accumulator(step: Instruction) -> bool:
    attribute = step.attribute if isinstance(step, AttributeStep) else None
    return isinstance(attribute, Variable) and attribute.accumulates


def _grown(target: Value, added: Value) -> Value:
    """A loop's result with one more element."""
    return appended(target, added) if type(target) is list else add(target, added)


_GROWN: Final[Callable[..., Value]] = _grown
