"""Parses CEL: from the text of a rule to its syntax tree.

Hand-written because the grammar is small and rules are many: operators by precedence with an explicit stack,
so that Python's own stack grows only with nested brackets. The limits are cel-go's (100,000 code points, 250
levels).
"""

# Long because the grammar is one recursion.

from typing import NoReturn

from crdkeeper.apiserver.cel.syntax.constants import LITERALS, literal
from crdkeeper.apiserver.cel.syntax.grammar import BINARY, RELATION, RESERVED
from crdkeeper.apiserver.cel.syntax.lexer import MAX_CODE_POINTS, tokenize
from crdkeeper.apiserver.cel.syntax.macros import RECEIVER_MACROS, MacroError, expand_receiver
from crdkeeper.apiserver.cel.syntax.nodes import (
    Call,
    CelDepthError,
    CelSyntaxError,
    Expr,
    Identifier,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Op,
    Problem,
    Select,
    StructField,
    StructLiteral,
)
from crdkeeper.apiserver.cel.syntax.shape import MAX_DEPTH, balanced, depth_exceeded

NO_OFFSET = -1
"""The offset of a problem of the whole expression."""


def parse(text: str) -> Expr:
    """Parse an expression to its syntax tree.

    Raises CelSyntaxError if the API server would not parse it, and CelDepthError for one nested too deeply
    for Python's stack (some hundred brackets), which the API server may still accept.
    """
    if len(text) > MAX_CODE_POINTS:
        raise _refusal(
            NO_OFFSET,
            f"expression code point size exceeds limit: size: {len(text)}, limit {MAX_CODE_POINTS}",
            exact=True,
        )
    parser = _Parser(text)
    try:
        tree = parser.whole()
    except RecursionError:
        raise CelDepthError("the expression is nested too deeply to be read here") from None
    if len(parser.kinds) > MAX_DEPTH and depth_exceeded(tree):
        parser.problems.append(Problem(NO_OFFSET, "max recursion depth exceeded"))
    if parser.problems:
        raise CelSyntaxError(tuple(parser.problems), exact=True)
    return tree


def _refusal(offset: int, message: str, *, exact: bool) -> CelSyntaxError:
    return CelSyntaxError((Problem(offset, message),), exact=exact)


class _Parser:
    """One parse. `expressions`, `relations` and `sums` count open grammar rules as cel-go does."""

    __slots__ = (
        "expressions",
        "kinds",
        "offsets",
        "position",
        "problems",
        "relations",
        "structs",
        "sums",
        "texts",
    )

    def __init__(self, text: str) -> None:
        self.kinds, self.texts, self.offsets = tokenize(text)
        self.position = 0
        self.problems: list[Problem] = []
        self.expressions = self.relations = self.sums = 0
        self.structs = "{" in self.kinds

    def whole(self) -> Expr:
        if "bad" in self.kinds:
            index = self.kinds.index("bad")
            raise _refusal(
                self.offsets[index],
                f"Syntax error: token recognition error at: '{self.texts[index]}'",
                exact=False,
            )
        tree = self.expression()
        if self.kinds[self.position] != "end":
            self.unexpected()
        return tree

    def unexpected(self) -> NoReturn:
        text = self.texts[self.position]
        raise _refusal(self.offsets[self.position], f"Syntax error: mismatched input '{text}'", exact=False)

    def expect(self, kind: str) -> int:
        """Consume a token of a kind; returns its offset."""
        position = self.position
        if self.kinds[position] != kind:
            self.unexpected()
        self.position = position + 1
        return self.offsets[position]

    def problem(self, offset: int, message: str) -> Expr:
        """Record an error after which cel-go continues; returns the node to continue with."""
        self.problems.append(Problem(offset, message))
        return Literal(offset, "error", None)

    def deeper(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _refusal(NO_OFFSET, f"expression recursion limit exceeded: {MAX_DEPTH}", exact=True)

    def expression(self) -> Expr:
        """`or`, or `or ? or : expression`; a chain of these is a loop here."""
        outer = self.expressions
        branches: list[tuple[int, Expr, Expr]] = []
        while True:
            self.expressions += 1
            self.deeper(self.expressions)
            tree = self.disjunction()
            if self.kinds[self.position] != "?":
                break
            offset = self.expect("?")
            chosen = self.disjunction()
            self.expect(":")
            branches.append((offset, tree, chosen))
        self.expressions = outer
        for offset, condition, chosen in reversed(branches):
            tree = Call(offset, Op.CONDITIONAL, (condition, chosen, tree))
        return tree

    def disjunction(self) -> Expr:
        self.relations += 1
        self.sums += 1
        self.deeper(max(self.relations, self.sums))
        kinds = self.kinds
        terms = [self.relation()]
        kind = kinds[self.position]
        if kind == "&&" or kind == "||":
            alternatives: list[Expr] = []
            or_offsets: list[int] = []
            and_offsets: list[int] = []
            while kind == "&&" or kind == "||":
                offset = self.offsets[self.position]
                self.position += 1
                if kind == "&&":
                    and_offsets.append(offset)
                else:
                    alternatives.append(balanced(Op.AND, terms, and_offsets))
                    or_offsets.append(offset)
                    terms, and_offsets = [], []
                terms.append(self.relation())
                kind = kinds[self.position]
            alternatives.append(balanced(Op.AND, terms, and_offsets))
            tree = balanced(Op.OR, alternatives, or_offsets)
        else:
            tree = terms[0]
        self.relations -= 1
        self.sums -= 1
        return tree

    def relation(self) -> Expr:
        """Operands joined by comparisons and arithmetic."""
        tree = self.operand()
        kinds = self.kinds
        operator = BINARY.get(kinds[self.position])
        if operator is None:
            return tree
        values = [tree]
        pending: list[tuple[int, str, int]] = []
        while operator is not None:
            level, function = operator
            while pending and pending[-1][0] >= level:
                self.reduce(values, pending)
            pending.append((level, function, self.offsets[self.position]))
            if level == RELATION:
                self.relations += 1
            else:
                self.sums += 1
            self.deeper(max(self.relations, self.sums))
            self.position += 1
            values.append(self.operand())
            operator = BINARY.get(kinds[self.position])
        while pending:
            self.reduce(values, pending)
        return values[0]

    def reduce(self, values: list[Expr], pending: list[tuple[int, str, int]]) -> None:
        level, function, offset = pending.pop()
        if level == RELATION:
            self.relations -= 1
        else:
            self.sums -= 1
        right = values.pop()
        values[-1] = Call(offset, function, (values[-1], right))

    def operand(self) -> Expr:
        """A member with its prefixes; an even number of `!` or `-` has no effect."""
        kinds = self.kinds
        start = self.position
        kind = kinds[start]
        if kind == "!" or (kind == "-" and kinds[start + 1] not in ("int", "float")):
            position = start + 1
            while kinds[position] == kind:
                position += 1
            self.position = position
            tree = self.member()
            if (position - start) % 2 == 0:
                return tree
            return Call(self.offsets[start], Op.NOT if kind == "!" else Op.NEGATE, (tree,))
        return self.member()

    def member(self) -> Expr:
        tree = self.primary()
        kinds = self.kinds
        while True:
            position = self.position
            kind = kinds[position]
            if kind == ".":
                offset = self.offsets[position]
                following = kinds[position + 1]
                if following == "id":
                    name = self.texts[position + 1]
                    if kinds[position + 2] == "(":
                        tree = self.member_call(tree, name)
                        continue
                    self.position = position + 2
                    tree = Select(offset, tree, name)
                elif following == "escaped":
                    self.position = position + 2
                    tree = Select(offset, tree, self.texts[position + 1][1:-1])
                elif following == "?":
                    self.position = position + 2
                    where = self.offsets[position + 2]
                    name = self.field_name()
                    tree = Call(offset, Op.OPT_SELECT, (tree, Literal(where, "string", name)))
                else:
                    self.position = position + 1
                    self.unexpected()
            elif kind == "[":
                self.position = position + 1
                function = Op.INDEX
                if kinds[position + 1] == "?":
                    self.position = position + 2
                    function = Op.OPT_INDEX
                index = self.expression()
                self.expect("]")
                tree = Call(self.offsets[position], function, (tree, index))
            else:
                return tree

    def member_call(self, target: Expr, name: str) -> Expr:
        self.position += 3
        offset = self.offsets[self.position - 1]
        args = self.arguments()
        if (name, len(args)) in RECEIVER_MACROS:
            try:
                return expand_receiver(offset, name, target, args)
            except MacroError as error:
                return self.problem(error.offset, error.message)
        return Call(offset, name, args, target)

    def field_name(self) -> str:
        kind, text = self.kinds[self.position], self.texts[self.position]
        if kind not in ("id", "escaped"):
            self.unexpected()
        self.position += 1
        return text if kind == "id" else text[1:-1]

    def arguments(self) -> tuple[Expr, ...]:
        """The arguments up to the closing parenthesis."""
        if self.kinds[self.position] == ")":
            self.position += 1
            return ()
        args = [self.expression()]
        while self.kinds[self.position] == ",":
            self.position += 1
            args.append(self.expression())
        self.expect(")")
        return tuple(args)

    def primary(self) -> Expr:
        position = self.position
        kind = self.kinds[position]
        offset = self.offsets[position]
        if kind == "id" or kind == ".":
            return self.named(offset)
        if kind == "(":
            self.position = position + 1
            tree = self.expression()
            self.expect(")")
            return tree
        if kind == "[":
            return self.list_literal()
        if kind == "{":
            return self.map_literal()
        return self.literal(kind, offset)

    def named(self, start: int) -> Expr:
        """An identifier, a call of a global function, or a message."""
        dot = ""
        if self.kinds[self.position] == ".":
            dot = "."
            self.position += 1
            if self.kinds[self.position] != "id":
                self.unexpected()
        if self.structs:
            end = self.position + 1
            while self.kinds[end] == "." and self.kinds[end + 1] == "id":
                end += 2
            if self.kinds[end] == "{":
                return self.struct_literal(dot, end)
        position = self.position
        name = self.texts[position]
        if self.kinds[position + 1] == "(":
            self.position = position + 2
            args = self.arguments()
            if name in RESERVED:
                return self.problem(start, f"reserved identifier: {name}")
            if name == "has" and len(args) == 1 and not dot:
                return self.has(args[0], self.offsets[position + 1])
            return Call(self.offsets[position + 1], dot + name, args)
        self.position = position + 1
        if name in RESERVED:
            return self.problem(start, f"reserved identifier: {name}")
        return Identifier(self.offsets[position], dot + name)

    def has(self, argument: Expr, offset: int) -> Expr:
        if isinstance(argument, Select):
            return Select(offset, argument.operand, argument.field, test_only=True)
        return self.problem(argument.offset, "invalid argument to has() macro")

    def struct_literal(self, dot: str, brace: int) -> Expr:
        name = dot + "".join(self.texts[self.position : brace])
        self.position = brace + 1
        fields: list[StructField] = []
        while self.kinds[self.position] not in ("}", ","):
            optional = self.question_mark()
            field = self.field_name()
            colon = self.expect(":")
            fields.append(StructField(colon, field, self.expression(), optional))
            if not self.comma("}"):
                break
        self.close("}", empty=not fields)
        return StructLiteral(self.offsets[brace], name, tuple(fields))

    def list_literal(self) -> Expr:
        offset = self.expect("[")
        elements: list[Expr] = []
        optional: list[int] = []
        while self.kinds[self.position] not in ("]", ","):
            if self.question_mark():
                optional.append(len(elements))
            elements.append(self.expression())
            if not self.comma("]"):
                break
        self.close("]", empty=not elements)
        return ListLiteral(offset, tuple(elements), frozenset(optional))

    def map_literal(self) -> Expr:
        offset = self.expect("{")
        entries: list[MapEntry] = []
        while self.kinds[self.position] not in ("}", ","):
            optional = self.question_mark()
            key = self.expression()
            colon = self.expect(":")
            entries.append(MapEntry(colon, key, self.expression(), optional))
            if not self.comma("}"):
                break
        self.close("}", empty=not entries)
        return MapLiteral(offset, tuple(entries))

    def question_mark(self) -> bool:
        if self.kinds[self.position] != "?":
            return False
        self.position += 1
        return True

    def comma(self, closing: str) -> bool:
        """Consume a comma; returns whether another element must follow."""
        if self.kinds[self.position] != ",":
            return False
        self.position += 1
        return self.kinds[self.position] != closing

    def close(self, closing: str, *, empty: bool) -> None:
        """Consume the closing bracket. `[,]` and `{,}` are empty, in the grammar as well."""
        if empty and self.kinds[self.position] == ",":
            self.position += 1
        self.expect(closing)

    def literal(self, kind: str, offset: int) -> Expr:
        sign = ""
        if kind == "-" and self.kinds[self.position + 1] in ("int", "float"):
            sign = "-"
            self.position += 1
            kind = self.kinds[self.position]
        if kind not in LITERALS:
            self.unexpected()
        text = self.texts[self.position]
        self.position += 1
        try:
            return literal(kind, sign + text, offset)
        except ValueError as error:
            return self.problem(offset, str(error))
