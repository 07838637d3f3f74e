"""The estimated cost of an expression: the maximum that the API server expects an evaluation to take.

Follows cel-go's checker/cost.go, with the sizes that the schema allows, as determined by the sizeEstimator of
k8s.io/apiextensions-apiserver (pkg/apiserver/schema/cel/compilation.go).
"""

from typing import NamedTuple

from crdkeeper.apiserver.cel.cost import estimates
from crdkeeper.apiserver.cel.cost.callcosts import Argument, CallCost
from crdkeeper.apiserver.cel.cost.costpaths import CostPath, declared_size
from crdkeeper.apiserver.cel.cost.estimates import MAX, NOTHING, ONE, UNKNOWN, Range, add, union
from crdkeeper.apiserver.cel.cost.functioncosts import function_cost
from crdkeeper.apiserver.cel.syntax.nodes import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Expr,
    Identifier,
    ListLiteral,
    Literal,
    Macro,
    MapLiteral,
    Select,
    StructLiteral,
)
from crdkeeper.apiserver.cel.types import types
from crdkeeper.apiserver.cel.types.checker import Checked, qualified_name
from crdkeeper.apiserver.cel.types.declared import Declared
from crdkeeper.apiserver.cel.types.types import Type

_LIST: Range = (10, 10)
_MAP: Range = (30, 30)
_STRUCT: Range = (40, 40)
_NEVER: Range = (MAX, 0)
_SCALARS = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))
_CONTAINERS = frozenset(("map", "struct", "param"))
_JOINS = frozenset(("add_string", "add_bytes", "add_list"))
_CHOICE = "conditional"
_INDICES = {"index_list": "@items", "index_map": "@values"}


def estimate(tree: Expr, checked: Checked, declared: Declared) -> Range:
    """The minimum and maximum cost of a checked expression in which `self` has a schema's declaration."""
    return _Estimate(checked, declared).cost(tree)


class _Entry(NamedTuple):
    """The sizes of the keys and values of a list or map."""

    kind: str
    key: Range
    value: Range


class _Local(NamedTuple):
    """What is known about a variable of a fold."""

    path: CostPath | None
    size: Range | None
    entry: _Entry | None


class _Estimate:
    def __init__(self, checked: Checked, declared: Declared) -> None:
        self.checked = checked
        self.declared = declared
        self.paths: dict[Expr, CostPath] = {}
        self.sizes: dict[Expr, Range] = {}
        self.entries: dict[Expr, _Entry] = {}
        self.locals: dict[str, list[_Local]] = {}
        self.costs: dict[Expr, Range] = {}

    def cost(self, node: Expr) -> Range:
        if isinstance(node, Macro):
            return self.cost(node.expansion)
        if isinstance(node, Literal):
            return NOTHING
        if isinstance(node, Select):
            return self.select(node)
        if isinstance(node, Identifier):
            return self.name(node, node.name)
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, ListLiteral):
            return self.list_literal(node)
        if isinstance(node, MapLiteral):
            return self.map_literal(node)
        if isinstance(node, StructLiteral):
            return add(_STRUCT, *(self.cost(each.value) for each in node.fields))
        if _is_binding(node):
            return self.binding(node)
        return self.fold(node)

    def name(self, node: Expr, name: str) -> Range:
        if name[0] == "." and name[1:] not in self.locals:
            name = name[1:]
        known = self.locals.get(name)
        path = known[-1].path if known else CostPath.of(name)
        if path is not None:
            self.paths[node] = path
        return ONE

    def select(self, node: Select) -> Range:
        named = self.checked.names.get(node)
        if named is not None:
            return self.name(node, named)
        cost = self.cost(node.operand)
        if node.test_only:
            return cost
        if self.type(node.operand).kind in _CONTAINERS:
            cost = add(cost, ONE)
        self.extend(node, node.operand, node.field)
        return cost

    def extend(self, node: Expr, base: Expr, step: str) -> None:
        self.paths[node] = CostPath.append(self.path(base), step)

    def call(self, node: Call) -> Range:
        function = node.function
        if function == "dyn":
            cost = add(ONE, self.cost(node.args[0]))
            self.copy_sizes(node, node.args[0])
            return cost
        costs: list[Range] = []
        arguments: list[Argument] = []
        for each in node.args:
            costs.append(self.cost(each))
            arguments.append(self.argument(each))
        overloads = self.checked.overloads.get(node, ())
        if not overloads:
            return NOTHING
        total = NOTHING
        target: Argument | None = None
        if node.target is not None:
            if node in self.checked.namespaced:
                function = f"{qualified_name(node.target)}.{function}".removeprefix(".")
            else:
                total = self.cost(node.target)
                target = self.argument(node.target)
        widest = _NEVER
        size: Range | None = None
        for overload in overloads:
            estimated = self.overload(node, function, overload, target, arguments, costs)
            widest = union(widest, estimated.cost)
            if estimated.size is not None:
                size = estimated.size if size is None else union(size, estimated.size)
            step = _INDICES.get(overload)
            if step is not None:
                entry = self.entry(node.args[0])
                size = entry.value if entry is not None else None
                self.extend(node, node.args[0], step)
            if size is None:
                size = self.size(node)
        if size is not None:
            self.sizes[node] = size
        return add(total, widest)

    def overload(
        self,
        node: Call,
        function: str,
        overload: str,
        target: Argument | None,
        arguments: list[Argument],
        costs: list[Range],
    ) -> CallCost:
        if overload == "logical_and" or overload == "logical_or":
            return CallCost((costs[0][0], min(costs[0][1] + costs[1][1], MAX)))
        if overload == _CHOICE:
            self.set_joined_entry(node, node.args[1], node.args[2])
            size = union(arguments[1].size_or_unknown, arguments[2].size_or_unknown)
            return CallCost(add(costs[0], union(costs[1], costs[2])), size)
        if overload in _JOINS:
            self.set_joined_entry(node, node.args[0], node.args[1])
        own = function_cost(function, overload, target, arguments, self.declared)
        return CallCost(add(own.cost, *costs), own.size)

    def set_joined_entry(self, node: Expr, one: Expr, other: Expr) -> None:
        first, second = self.entry(one), self.entry(other)
        if first is not None and second is not None:
            kind = first.kind
            self.entries[node] = _Entry(kind, union(first.key, second.key), union(first.value, second.value))

    def list_literal(self, node: ListLiteral) -> Range:
        cost = _LIST
        size = _NEVER if node.elements else NOTHING
        for each in node.elements:
            cost = add(cost, self.cost(each))
            size = union(size, self.size_or_unknown(each))
        self.entries[node] = _Entry("list", ONE, size)
        return cost

    def map_literal(self, node: MapLiteral) -> Range:
        cost = _MAP
        key = value = _NEVER if node.entries else NOTHING
        for each in node.entries:
            cost = add(cost, self.cost(each.key), self.cost(each.value))
            key = union(key, self.size_or_unknown(each.key))
            value = union(value, self.size_or_unknown(each.value))
        self.entries[node] = _Entry("map", key, value)
        return cost

    def binding(self, node: Comprehension) -> Range:
        """A fold over nothing, which only names a value."""
        cost = add(self.cost(node.range), self.cost(node.init))
        self.push_value(node.accumulator, node.init)
        cost = add(cost, self.cost(node.result))
        self.pop(node.accumulator)
        self.copy_sizes(node, node.result)
        return cost

    def fold(self, node: Comprehension) -> Range:
        ranged = node.range
        cost = add(self.cost(ranged), self.cost(node.init))
        self.push_value(node.accumulator, node.init)
        if node.variable2:
            self.push_element(node.variable, ranged, keys=True)
            self.push_element(node.variable2, ranged, keys=False)
        else:
            self.push_element(node.variable, ranged, keys=self.container(ranged) != "list")
        loop = add(self.cost(node.condition), self.cost(node.step))
        self.pop(node.variable)
        if node.variable2:
            self.pop(node.variable2)
        cost = add(cost, self.cost(node.result))
        self.pop(node.accumulator)
        # Only now, as in cel-go: the path of the range may have changed meanwhile, see costpaths.
        count = self.size_or_unknown(ranged)
        cost = add(cost, estimates.multiply(count, loop))
        if isinstance(node.init, Literal):
            size = self.size(node.init)
            if size is not None:
                self.sizes[node] = size
        elif isinstance(node.init, ListLiteral | MapLiteral):
            self.sizes[node] = count
            entry = self.entry(node.step)
            if entry is not None:
                self.entries[node] = entry
        return cost

    def container(self, ranged: Expr) -> str:
        entry = self.entry(ranged)
        return entry.kind if entry is not None else self.type(ranged).kind

    def push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def pop(self, name: str) -> None:
        stack = self.locals[name]
        stack.pop()
        if not stack:
            del self.locals[name]

    def push_value(self, name: str, value: Expr) -> None:
        path = self.path(value)
        self.push(name, _Local(path, self.size(value), self.entry(value)))

    def push_element(self, name: str, ranged: Expr, *, keys: bool) -> None:
        """A variable for the keys (or indices) or the values (or items) of a range."""
        entry = self.entry(ranged)
        size = None
        if entry is not None:
            size = entry.key if keys else entry.value
        is_list = self.container(ranged) == "list"
        step = ("@indices" if is_list else "@keys") if keys else ("@items" if is_list else "@values")
        self.push(name, _Local(CostPath.append(self.path(ranged), step), size, None))

    def type(self, node: Expr) -> Type:
        return self.checked.types.get(node, types.DYN)

    def path(self, node: Expr) -> CostPath | None:
        if isinstance(node, Macro):
            node = node.expansion
        if isinstance(node, Identifier):
            known = self.locals.get(node.name)
            if known:
                return known[-1].path
        return self.paths.get(node)

    def argument(self, node: Expr) -> Argument:
        path = self.path(node)
        if path is not None and path.first in (ACCUMULATOR, "__result__"):
            path = None
        literal = node if isinstance(node, Literal) else None
        return Argument(self.type(node), self.size(node), path, literal)

    def size_or_unknown(self, node: Expr) -> Range:
        size = self.size(node)
        return UNKNOWN if size is None else size

    def size(self, node: Expr) -> Range | None:
        if isinstance(node, Macro):
            node = node.expansion
        known = self.sizes.get(node)
        if known is not None:
            return known
        size = _literal_size(node)
        if size is not None:
            return size
        path = self.path(node)
        size = declared_size(self.declared, path)
        if size is not None:
            self.sizes[node] = size
            return size
        if _is_scalar(self.type(node)):
            return ONE
        if isinstance(node, Identifier):
            stack = self.locals.get(node.name)
            if stack:
                return stack[-1].size
        return None

    def entry(self, node: Expr) -> _Entry | None:
        if isinstance(node, Macro):
            node = node.expansion
        known = self.entries.get(node)
        if known is None and isinstance(node, Identifier):
            stack = self.locals.get(node.name)
            if stack:
                return stack[-1].entry
        return known

    def copy_sizes(self, to: Expr, from_: Expr) -> None:
        size, entry = self.size(from_), self.entry(from_)
        if size is not None:
            self.sizes[to] = size
        if entry is not None:
            self.entries[to] = entry


def _is_binding(node: Comprehension) -> bool:
    return (
        isinstance(node.range, ListLiteral)
        and not node.range.elements
        and isinstance(node.condition, Literal)
        and node.condition.value is False
    )


def _literal_size(node: Expr) -> Range | None:
    if isinstance(node, Literal):
        value = node.value
        count = len(value) if isinstance(value, str | bytes) else 1
    elif isinstance(node, ListLiteral):
        count = len(node.elements)
    elif isinstance(node, MapLiteral):
        count = len(node.entries)
    else:
        return None
    return count, count


def _is_scalar(type_: Type) -> bool:
    if type_.kind in _SCALARS:
        return True
    inner, wrapped = types.unwrap_optional(type_)
    return wrapped and _is_scalar(inner)
