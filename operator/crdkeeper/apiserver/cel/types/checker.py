"""Checks the types of an expression, with the API server's messages.

Follows cel-go's checker (checker/checker.go) in Kubernetes' environment: list and map literals contain values
of one type, and the only message types are those of the schema. What depends on the messages of Protocol
Buffers is undecided.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

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
    Problem,
    Select,
    StructLiteral,
)
from crdkeeper.apiserver.cel.syntax.shape import expanded_size
from crdkeeper.apiserver.cel.types import declarations, types
from crdkeeper.apiserver.cel.types.resolution import resolve, resolve_plain
from crdkeeper.apiserver.cel.types.types import Type, optional_of, substitute

_MOST_NODES = 100_000
"""How many nodes are checked at most, with all expansions."""

_PROTOBUF = "google.protobuf"
_LITERALS = {
    "int": types.INT,
    "uint": types.UINT,
    "double": types.DOUBLE,
    "string": types.STRING,
    "bytes": types.BYTES,
    "bool": types.BOOL,
    "null": types.NULL,
}
_DOTTED_TYPES = frozenset(name.rpartition(".")[2] for name in declarations.TYPE_NAMES if "." in name)


class UndecidedExpression(Exception):
    """Only the API server can tell whether it accepts the expression."""


class Checked(NamedTuple):
    """The result of the check.

    `types` are those of all nodes that were reached, `overloads` the ids of the overloads to which each call
    can resolve, `names` the selections that are qualified names, `namespaced` the calls whose target is part
    of the function's name. `uses_old_self` is whether a variable of that name occurs.
    """

    problems: Sequence[Problem]
    types: Mapping[Expr, Type]
    overloads: Mapping[Call, tuple[str, ...]]
    names: Mapping[Expr, str]
    namespaced: frozenset[Call]
    uses_old_self: bool


def check(
    tree: Expr,
    variables: Mapping[str, Type],
    *,
    stored: bool,
    spend: Callable[[int], None] | None = None,
) -> Checked:
    """The types in an expression, and its errors.

    `stored` is whether the CRD already contained the expression. `spend` is called before with the number of
    nodes to be checked, and may raise. Raises UndecidedExpression, and RecursionError for an expression that
    is nested too deeply.
    """
    size = expanded_size(tree)
    if size > _MOST_NODES:
        raise UndecidedExpression("the expression expands to too much to be checked here")
    if spend is not None:
        spend(size)
    checker = _Checker(variables, stored=stored)
    try:
        checker.check(tree)
        bindings = checker.bindings
        known = {
            node: substitute(bindings, type_, free_to_dyn=True) if type_.generic else type_
            for node, type_ in checker.types.items()
        }
    except types.TypeTooBig:
        raise UndecidedExpression("the types in the expression are too big to be checked here") from None
    return Checked(
        checker.problems,
        known,
        checker.overloads,
        checker.names,
        frozenset(checker.namespaced),
        checker.uses_old_self,
    )


@cache
def _namespaced() -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name in declarations.NAMES if "." in name)


def qualified_name(node: Expr) -> str | None:
    """The dotted name in an expression, if it is one."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Identifier):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))


class _Checker:
    def __init__(self, variables: Mapping[str, Type], *, stored: bool) -> None:
        self.variables = variables
        self.stored = stored
        self.problems: list[Problem] = []
        self.types: dict[Expr, Type] = {}
        self.overloads: dict[Call, tuple[str, ...]] = {}
        self.names: dict[Expr, str] = {}
        self.namespaced: set[Call] = set()
        self.uses_old_self = False
        self.bindings = types.Bindings()
        self.free = 0
        self.locals: dict[str, Type] = {}

    def report(self, node: Expr, message: str) -> None:
        self.problems.append(Problem(node.offset, message))

    def free_type(self) -> Type:
        self.free += 1
        return types.parameter(f"_var{self.free - 1}")

    def assign(self, from_: Type, to: Type) -> bool:
        """Whether a type is assignable to another; records what that implies for type parameters."""
        if from_ is to:
            return True
        return types.assignable(self.bindings, (from_,), (to,))

    def check(self, node: Expr) -> Type:
        if isinstance(node, Select):
            type_ = self.check_select(node)
        elif isinstance(node, Identifier):
            type_ = self.check_identifier(node)
        elif isinstance(node, Call):
            type_ = self.check_call(node)
        elif isinstance(node, Literal):
            type_ = _LITERALS[node.kind]
        elif isinstance(node, Macro):
            type_ = self.check(node.expansion)
        elif isinstance(node, ListLiteral):
            type_ = self.check_list(node)
        elif isinstance(node, MapLiteral):
            type_ = self.check_map(node)
        elif isinstance(node, Comprehension):
            type_ = self.check_comprehension(node)
        else:
            type_ = self.check_struct(node)
        self.types[node] = type_
        return type_

    def check_identifier(self, node: Identifier) -> Type:
        name = node.name
        local = self.locals.get(name)
        if local is not None and name[0] != ".":
            self.uses_old_self = self.uses_old_self or name == "oldSelf"
            return local
        plain = name.removeprefix(".")
        known = self.variable(plain)
        if known is None:
            return self.undeclared(node, name)
        if name != plain and plain in self.locals:
            self.names[node] = name
        elif plain == "oldSelf":
            self.uses_old_self = True
        return known

    def variable(self, name: str) -> Type | None:
        known = self.variables.get(name)
        if known is not None:
            return known
        named = declarations.TYPE_NAMES.get(name)
        if named is not None:
            return types.type_of(named)
        if name.startswith(_PROTOBUF + "."):
            raise UndecidedExpression("messages of google.protobuf are not known here")
        return None

    def undeclared(self, node: Expr, name: str) -> Type:
        self.report(node, f"undeclared reference to '{name}' (in container '')")
        return types.ERROR

    def check_select(self, node: Select) -> Type:
        if not node.test_only:
            type_ = self.qualified(node)
            if type_ is not None:
                return type_
        type_ = self.field(node, node.operand, node.field)
        return types.BOOL if node.test_only else substitute(self.bindings, type_)

    def qualified(self, node: Select) -> Type | None:
        """The type of a qualified name; only types have such names."""
        name = qualified_name(node)
        if name is None:
            return None
        first, _, _ = name.lstrip(".").partition(".")
        if node.field not in _DOTTED_TYPES and first != "google":
            return None
        if name[0] != "." and first in self.locals:
            return None
        type_ = self.variable(name.removeprefix("."))
        if type_ is not None:
            self.names[node] = name if first in self.locals else name.removeprefix(".")
        return type_

    def field(self, node: Expr, operand: Expr, field: str, *, optional: bool = False) -> Type:
        """The type of a field of an operand; reports an operand without that field."""
        owner, wrapped = types.unwrap_optional(substitute(self.bindings, self.check(operand)))
        result = types.DYN
        if owner.kind == "map":
            result = owner.parameters[1]
        elif owner.kind == "struct":
            result = self.struct_field(node, owner, field)
        elif owner.kind == "param":
            self.assign(types.DYN, owner)
        elif not types.is_dyn_or_error(owner):
            self.report(node, f"type '{owner.text}' does not support field selection")
        return optional_of(result) if wrapped or optional else result

    def struct_field(self, node: Expr, owner: Type, field: str) -> Type:
        if owner.fields is None:
            self.report(node, f"unexpected failed resolution of '{owner.name}'")
            return types.ERROR
        found = owner.fields(field)
        if found is None:
            self.report(node, f"undefined field '{field}'")
            return types.ERROR
        return found

    def check_call(self, node: Call) -> Type:
        function = node.function
        if function == Op.OPT_SELECT:
            operand, field = node.args
            assert isinstance(field, Literal)
            self.overloads[node] = ("select_optional_field",)
            type_ = self.field(node, operand, str(field.value), optional=True)
            return substitute(self.bindings, type_)
        arguments = [self.check(each) for each in node.args]
        if node.target is None:
            return self.resolve(node, function.removeprefix("."), arguments, member=False)
        if function in _namespaced():
            prefix = qualified_name(node.target)
            if prefix is not None:
                name = f"{prefix}.{function}".removeprefix(".")
                if declarations.overloads(name, stored=self.stored) is not None:
                    self.namespaced.add(node)
                    return self.resolve(node, name, arguments, member=False)
        arguments.insert(0, self.check(node.target))
        return self.resolve(node, function, arguments, member=True)

    def resolve(self, node: Call, function: str, arguments: list[Type], *, member: bool) -> Type:
        if function == Op.AND or function == Op.OR:
            return self.resolve_logic(node, function, arguments)
        if declarations.overloads(function, stored=self.stored) is None:
            return self.undeclared(node, node.function)
        given = tuple(arguments)
        found = None
        if not any(each.generic or each.local for each in given):
            found = resolve_plain(function, given, member=member, stored=self.stored)
        if found is None:
            found = resolve(function, given, self.bindings, self.free, member=member, stored=self.stored)
        self.free += found.parameters
        if found.result is None:
            shown = [substitute(self.bindings, each, free_to_dyn=True).text for each in given]
            target = f"{shown.pop(0)}." if member else ""
            self.report(
                node, f"found no matching overload for '{function}' applied to '{target}({', '.join(shown)})'"
            )
            return types.ERROR
        self.overloads[node] = found.overloads
        return found.result

    def resolve_logic(self, node: Call, function: str, arguments: list[Type]) -> Type:
        fine = True
        for argument, type_ in zip(node.args, arguments, strict=True):
            if not self.assign(type_, types.BOOL):
                self.mismatch(argument, types.BOOL, type_)
                fine = False
        if not fine:
            return types.ERROR
        self.overloads[node] = ("logical_and" if function == Op.AND else "logical_or",)
        return types.BOOL

    def mismatch(self, node: Expr, expected: Type, actual: Type) -> None:
        self.report(node, f"expected type '{expected.text}' but found '{actual.text}'")

    def element(self, node: Expr, *, optional: bool) -> Type:
        """The type of an element of a literal, without its optional if it has a question mark."""
        type_ = self.check(node)
        if optional:
            type_, wrapped = types.unwrap_optional(type_)
            if not wrapped and not types.is_dyn(type_):
                self.mismatch(node, optional_of(type_), type_)
        return type_

    def join(self, previous: Type | None, current: Type) -> Type:
        """The type of a literal's elements so far. A later check ensures that they all have one type."""
        if previous is None:
            return current
        if self.assign(previous, current):
            return types.most_general(previous, current)
        return types.DYN

    def check_list(self, node: ListLiteral) -> Type:
        joined: Type | None = None
        for index, each in enumerate(node.elements):
            type_ = self.element(each, optional=index in node.optional)
            joined = self.join(joined, type_)
        return types.list_of(joined or self.free_type())

    def check_map(self, node: MapLiteral) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self.join(key, self.check(entry.key))
            type_ = self.element(entry.value, optional=entry.optional)
            value = self.join(value, type_)
        if key is None or value is None:
            key, value = self.free_type(), self.free_type()
        return types.map_of(key, value)

    def check_struct(self, node: StructLiteral) -> Type:
        name = node.type_name.removeprefix(".")
        named = declarations.TYPE_NAMES.get(name)
        if name.startswith(_PROTOBUF) or (named is not None and named.kind not in _SCALARS):
            raise UndecidedExpression("messages of google.protobuf are not known here")
        if named is None:
            return self.undeclared(node, node.type_name)
        self.report(node, f"'{name}' is not a message type")
        for field in node.fields:
            self.check(field.value)
            self.problems.append(Problem(field.offset, f"undefined field '{field.name}'"))
        return types.ERROR

    def check_comprehension(self, node: Comprehension) -> Type:
        ranged = self.check(node.range)
        accumulated = self.check(node.init)
        ranged = substitute(self.bindings, ranged)
        first, second = self.iterated(node, ranged)
        outer = self.locals
        self.locals = {**outer, node.accumulator: accumulated}
        with_accumulator = self.locals
        self.locals = {**with_accumulator, node.variable: first}
        if node.variable2:
            self.locals[node.variable2] = second
        self.expect(node.condition, types.BOOL)
        self.expect(node.step, accumulated)
        self.locals = with_accumulator
        result = self.check(node.result)
        self.locals = outer
        return substitute(self.bindings, result)

    def iterated(self, node: Comprehension, ranged: Type) -> tuple[Type, Type]:
        """The types of the variables of a fold."""
        if ranged.kind == "list":
            element = ranged.parameters[0]
            return (types.INT, element) if node.variable2 else (element, element)
        if ranged.kind == "map":
            return ranged.parameters[0], ranged.parameters[1]
        if types.is_dyn_or_error(ranged) or ranged.kind == "param":
            self.assign(types.DYN, ranged)
            return types.DYN, types.DYN
        self.report(
            node.range,
            f"expression of type '{ranged.text}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)",
        )
        return types.ERROR, types.ERROR

    def expect(self, node: Expr, type_: Type) -> None:
        actual = self.check(node)
        if not self.assign(type_, actual):
            self.mismatch(node, type_, actual)


_SCALARS = ("bool", "bytes", "double", "int", "string", "uint")
