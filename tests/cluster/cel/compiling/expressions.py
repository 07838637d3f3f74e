"""Random expressions: calls of every function with right and wrong arguments, and nested ones."""

import random
from collections.abc import Iterator, Sequence
from typing import Final

from crdkeeper.apiserver.cel.syntax.lexer import tokenize
from crdkeeper.apiserver.cel.types import declarations
from crdkeeper.apiserver.cel.types.declarations import OverloadDeclaration
from crdkeeper.apiserver.cel.types.types import Type

VALUES: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("self.b", "true", "has(self.o.x)", "self.lb[0]"),
    "int": ("self.i", "3", "self.o.x", "self.li[0]", "-7", "self.lo[0].nested.x", "self.ml['k'][0]"),
    "uint": ("4u", "uint(self.i)"),
    "double": ("self.n", "1.5", "self.ln[1]"),
    "string": (
        "self.s",
        "self.sb",
        "self.se",
        "'abc'",
        "self.ls[0]",
        "self.lsb[1]",
        "self.ms['k']",
        "self.mb.key",
        "self.o.y",
        "self.a__dash__b__dot__c__slash__d",
        "self.__namespace__",
        "self.nul",
        "self.emb.metadata.name",
        "self.lo[0].name",
        "(self.b ? self.sb : self.o.y)",
    ),
    "bytes": ("self.by", "b'abc'", "self.lby[0]"),
    "duration": ("self.du", "duration('1h')", "self.ldu[0]"),
    "timestamp": ("self.dt", "self.da", "timestamp('2024-01-01T00:00:00Z')", "self.ldt[0]"),
    "dyn": ("self.ios", "self.iosu", "dyn(self.s)", "dyn(self.li)"),
    "null": ("null",),
    "struct": ("self.o", "self.lo[0]", "self.pu", "self"),
    "list(int)": ("self.li", "[1, 2]", "self.lli[0]", "self.ml.k", "self.li.map(x, x + 1)", "lists.range(3)"),
    "list(uint)": ("[1u, 2u]",),
    "list(double)": ("self.ln", "[1.0]"),
    "list(bool)": ("self.lb", "[true]"),
    "list(string)": (
        "self.ls",
        "self.lsb",
        "['a', 'bc']",
        "self.lo[0].tags",
        "self.lo.map(x, x.name)",
        "self.s.split(',')",
        "self.ms.map(k, k)",
    ),
    "list(bytes)": ("self.lby", "[b'a']"),
    "list(duration)": ("self.ldu", "[duration('1s')]"),
    "list(timestamp)": ("self.ldt",),
    "list(dyn)": ("[self.ios]", "[dyn(1), dyn('a')]"),
    "list(list(int))": ("self.lli", "[[1], [2]]"),
    "list(struct)": ("self.lo",),
    "map(string, string)": ("self.ms", "self.mb", "{'a': 'b'}", "self.ls.transformMap(i, v, string(i))"),
    "map(string, int)": ("{'a': 1}", "self.mb.transformMap(k, v, v.size())"),
    "map(string, list(int))": ("self.ml",),
    "map(int, string)": ("{1: 'a'}", "self.lsb.transformMap(i, v, v)"),
    "optional(int)": ("optional.of(1)", "self.?i", "self.li[?0]", "self.o.?x"),
    "optional(string)": ("self.?s", "self.o.?z.q", "self.ms[?'a']", "optional.of(self.sb)"),
    "optional(list(int))": ("self.?li", "optional.of([1])"),
    "optional(map(string, string))": ("self.?ms", "optional.of({'a': 'b'})"),
    "list(optional(int))": ("[optional.of(1), optional.none()]", "[self.?i]"),
    "kubernetes.URL": ("url('https://a.b/c')", "url(self.sb)"),
    "net.IP": ("ip('1.2.3.4')", "ip(self.sb)", "cidr(self.sb).ip()"),
    "net.CIDR": ("cidr('10.0.0.0/8')", "cidr(self.sb)"),
    "kubernetes.Quantity": ("quantity('1Gi')", "quantity(self.sb)"),
    "kubernetes.Semver": ("semver('1.2.3')", "semver(self.sb)"),
    "kubernetes.NamedFormat": ("format.dns1123Label()", "format.named('uri').value()"),
    "type": ("int", "type(self.i)", "net.IP", "google.protobuf.Timestamp"),
}
"""Expressions by type."""

_ALL: Final = tuple(each for values in VALUES.values() for each in values)
_OPERATORS: Final = {
    name: name.strip("_")
    for name in (
        "_&&_",
        "_||_",
        "_==_",
        "_!=_",
        "_<_",
        "_<=_",
        "_>_",
        "_>=_",
        "_+_",
        "_-_",
        "_*_",
        "_/_",
        "_%_",
    )
}
_INTERNAL: Final = ("@not_strictly_false", "cel.@mapInsert", "@sortByAssociatedKeys")


def value(rng: random.Random, wanted: Type, bound: dict[str, str] | None = None) -> str:
    """An expression of a type; the same type for each occurrence of a parameter, as in `bound`."""
    bound = {} if bound is None else bound
    text = _named(rng, wanted, bound)
    if text.startswith("kubernetes.authorization"):
        return rng.choice(_ALL)
    if text not in VALUES:
        head = text.partition("(")[0] + "("
        text = rng.choice([name for name in VALUES if name.startswith(head)] or [*VALUES])
    return rng.choice(VALUES[text])


def _named(rng: random.Random, wanted: Type, bound: dict[str, str]) -> str:
    if wanted.kind == "param":
        return bound.setdefault(wanted.name, rng.choice(("int", "string", "bool", "double", "list(int)")))
    if not wanted.parameters:
        return wanted.text
    name = "optional" if wanted.name == "optional_type" else wanted.name
    return f"{name}({', '.join(_named(rng, each, bound) for each in wanted.parameters)})"


def called(function: str, overload: OverloadDeclaration, arguments: Sequence[str]) -> str:
    """A call as people write it."""
    operator = _OPERATORS.get(function)
    if operator is not None:
        return f"({arguments[0]} {operator} {arguments[1]})"
    if function == "_?_:_":
        return f"({arguments[0]} ? {arguments[1]} : {arguments[2]})"
    if function in ("!_", "-_"):
        return f"{function[0]}({arguments[0]})"
    if function in ("_[_]", "_[?_]"):
        return f"{arguments[0]}{'[?' if '?' in function else '['}{arguments[1]}]"
    if function == "@in":
        return f"({arguments[0]} in {arguments[1]})"
    if function == "_?._":
        return f"{arguments[0]}.?x"
    if overload.member:
        return f"{arguments[0]}.{function}({', '.join(arguments[1:])})"
    return f"{function}({', '.join(arguments)})"


def calls(rng: random.Random, times: int) -> Iterator[str]:
    """Every overload: with right arguments, with one wrong, with one too few and one too many."""
    for function in sorted(declarations.NAMES - set(_INTERNAL)):
        for overload in declarations.overloads(function, stored=True) or ():
            for _ in range(times):
                bound: dict[str, str] = {}
                arguments = [value(rng, each, bound) for each in overload.arguments]
                yield as_bool(rng, called(function, overload, arguments), overload.result)
                if arguments:
                    wrong = list(arguments)
                    wrong[rng.randrange(len(wrong))] = rng.choice(_ALL)
                    yield as_bool(rng, called(function, overload, wrong), overload.result)
            if function[0] not in "_@!-":
                yield called(function, overload, [*arguments, rng.choice(_ALL)])
                if len(arguments) > 1:
                    yield called(function, overload, arguments[:-1])


def as_bool(rng: random.Random, expression: str, result: Type | None = None) -> str:
    """A rule that contains an expression; sometimes the expression itself."""
    if result is not None and result.kind == "bool":
        return expression
    return rng.choice(
        (
            f"[{expression}].size() > 0",
            f"{expression} == {expression}",
            f"type({expression}) == int",
            expression,
            f"[{expression}].all(x, x == x)",
        )
    )


class Nested:
    """Generates nested expressions, most of them with the right types."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = 0

    def rule(self) -> str:
        return self.condition(3, {})

    def value(self, kind: str, depth: int, scope: dict[str, str]) -> str:
        """An expression of a type: a value, a variable, or something built."""
        rng = self.rng
        if rng.random() < 0.02:
            return rng.choice(_ALL)
        known = [name for name, its in scope.items() if its == kind]
        if known and rng.random() < 0.6:
            return rng.choice(known)
        build = {"bool": self.condition, "string": self.text, "int": self.number}.get(kind)
        if depth > 0 and build is not None and rng.random() < 0.6:
            return build(depth - 1, scope)
        if kind == "list(string)" and depth > 0 and rng.random() < 0.5:
            return self.strings(depth - 1, scope)
        if depth > 0 and rng.random() < 0.12:
            one, other = (self.value(kind, depth - 1, scope) for _ in range(2))
            return f"({self.condition(depth - 1, scope)} ? {one} : {other})"
        return rng.choice(VALUES[kind])

    def fresh(self) -> str:
        """A name for a variable."""
        self.names += 1
        return f"v{self.names}"

    def condition(self, depth: int, scope: dict[str, str]) -> str:
        """A condition."""
        rng, deeper = self.rng, depth - 1
        if depth <= 0:
            return rng.choice(VALUES["bool"])
        choice = rng.randrange(9)
        if choice < 2:
            operator = rng.choice(("&&", "||"))
            return f"({self.condition(deeper, scope)} {operator} {self.condition(deeper, scope)})"
        if choice == 2:
            kind = rng.choice(("int", "string", "double", "list(string)", "list(int)", "map(string, string)"))
            operator = rng.choice(("==", "!="))
            return f"{self.value(kind, deeper, scope)} {operator} {self.value(kind, deeper, scope)}"
        if choice == 3:
            kind = rng.choice(("int", "string", "duration", "timestamp", "double"))
            operator = rng.choice(("<", ">="))
            return f"{self.value(kind, deeper, scope)} {operator} {self.value(kind, deeper, scope)}"
        if choice == 4:
            kind = rng.choice(("string", "int"))
            return f"{self.value(kind, deeper, scope)} in {self.value(f'list({kind})', deeper, scope)}"
        if choice == 5:
            method = rng.choice(("startsWith", "endsWith", "contains"))
            return f"{self.value('string', deeper, scope)}.{method}({self.value('string', deeper, scope)})"
        if choice == 6:
            return f"!({self.condition(deeper, scope)})"
        return self.quantified(deeper, scope)

    def quantified(self, depth: int, scope: dict[str, str]) -> str:
        """A condition on the elements of something."""
        rng = self.rng
        kind, element = rng.choice(
            (("list(string)", "string"), ("list(int)", "int"), ("map(string, string)", "string"))
        )
        macro = rng.choice(("all", "exists", "exists_one", "existsOne"))
        ranged = self.value(kind, depth, scope)
        if rng.random() < 0.25:
            first, second = self.fresh(), self.fresh()
            keys = "string" if kind.startswith("map") else "int"
            inner = self.condition(depth, {**scope, first: keys, second: element})
            return f"{ranged}.{macro}({first}, {second}, {inner})"
        name = self.fresh()
        if rng.random() < 0.25:
            part, other = rng.choice(("tags", "other")), rng.choice(("tags", "other"))
            variable = self.fresh()
            inner = self.condition(depth, {**scope, variable: "string"})
            tail = f"{name}.{other}.{macro}({variable}, {inner} || {variable} in {name}.{part})"
            return f"self.lo.{macro}({name}, {tail})"
        return f"{ranged}.{macro}({name}, {self.condition(depth, {**scope, name: element})})"

    def text(self, depth: int, scope: dict[str, str]) -> str:
        """A text."""
        text = self.value("string", depth, scope)
        other = self.value("string", depth, scope)
        return self.rng.choice(
            (
                f"({text} + {other})",
                f"{text}.replace({other}, {self.value('string', depth, scope)})",
                f"{text}.substring({self.value('int', depth, scope)})",
                f"{text}.lowerAscii()",
                f"{self.value('list(string)', depth, scope)}.join({other})",
                f"string({self.value('int', depth, scope)})",
                f"{text}.find({other})",
                f"{self.value('optional(string)', depth, scope)}.orValue({other})",
                f"'%s is %d'.format([{text}, {self.value('int', depth, scope)}])",
            )
        )

    def number(self, depth: int, scope: dict[str, str]) -> str:
        """A whole number."""
        number = self.value("int", depth, scope)
        return self.rng.choice(
            (
                f"({number} + {self.value('int', depth, scope)})",
                f"{self.value('string', depth, scope)}.size()",
                f"size({self.value('list(string)', depth, scope)})",
                f"{self.value('list(int)', depth, scope)}.max()",
                f"{self.value('list(string)', depth, scope)}.indexOf({self.value('string', depth, scope)})",
                f"self.?i.optMap(o, o + {number}).orValue({number})",
            )
        )

    def strings(self, depth: int, scope: dict[str, str]) -> str:
        """A list of texts."""
        name = self.fresh()
        inner = {**scope, name: "string"}
        source = self.value("list(string)", depth, scope)
        return self.rng.choice(
            (
                f"{source}.filter({name}, {self.condition(depth, inner)})",
                f"{source}.map({name}, {self.value('string', depth, inner)})",
                f"{source}.map({name}, {self.condition(depth, inner)}, {self.value('string', depth, inner)})",
                f"({source} + {self.value('list(string)', depth, scope)})",
                f"[{self.value('string', depth, scope)}, {self.value('string', depth, scope)}]",
                f"{self.value('string', depth, scope)}.split({self.value('string', depth, scope)})",
                f"{source}.sortBy({name}, {self.value('int', depth, inner)})",
                f"{source}.distinct()",
                f"{source}.slice(0, 2)",
                f"{source}.transformList(i, {name}, {self.value('string', depth, inner)})",
            )
        )


_SWAPS: Final = ("==", "<", "+", "-", "*", "in", "&&", "||", "!=", "%", ".", "!", "?", ":", ",", "(", ")")


def mutated(rng: random.Random, rule: str) -> str:
    """A rule with one or two tokens lost, doubled, or replaced."""
    tokens = tokenize(rule)
    texts, kinds = tokens.texts[:-1], tokens.kinds[:-1]
    names = [text for text, kind in zip(texts, kinds, strict=True) if kind == "id"] or ["self"]
    for _ in range(rng.choice((1, 1, 1, 2))):
        at = rng.randrange(len(texts))
        choice = rng.random()
        if kinds[at] == "id" and choice < 0.7:
            texts[at] = rng.choice((*names, texts[at] + "x", "size", "exists", "1"))
        elif kinds[at] in ("string", "int") and choice < 0.7:
            texts[at] = rng.choice(("1", "'a'", "1.5", "null", "true", "[]", "dyn(1)"))
        elif choice < 0.8:
            texts[at] = rng.choice(_SWAPS)
        else:
            texts[at] = rng.choice(("", f"{texts[at]} {texts[at]}"))
    return " ".join(texts).strip() or "self"
