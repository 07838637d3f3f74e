"""Transforms of Crossplane's function-patch-and-transform as expressions in CEL."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from crdkeeper.apiserver.cel.syntax.literaltext import literal_text
from crdkeeper.core.templates.texts import LONGEST_EXPRESSION

_VALUE: Final = "value"
_SIMPLE: Final = re.compile(r"[\w.]+")
_VERB: Final = re.compile(r"%(.)", re.DOTALL)
_VERBS: Final = {"v": "%s"} | {each: f"%{each}" for each in "sdfexob%"}
"""Of Go's fmt, in the notation of `format` in CEL."""
_CASES: Final = {"ToUpper": "upperAscii", "ToLower": "lowerAscii"}
_TYPES: Final = {
    "string": "string({})",
    "bool": "bool({})",
    "int": "int({})",
    "int64": "int({})",
    "float64": "double({})",
}
_QUANTITIES: Final = {
    "int": "quantity({}).asInteger()",
    "int64": "quantity({}).asInteger()",
    "float64": "quantity({}).asApproximateFloat()",
}
_NUMBERS: Final = {"Multiply": "multiply", "ClampMin": "clampMin", "ClampMax": "clampMax"}
_SCALARS: Final = (str, int, float, bool)


class NoCounterpart(ValueError):
    """A transform that CEL cannot express."""


def transformed(value: str, transforms: object) -> str:
    """The expression for a value after all transforms, in order. Raises NoCounterpart, naming what it is."""
    if not isinstance(transforms, Sequence) or isinstance(transforms, str):
        raise NoCounterpart("transforms must be a list")
    for each in transforms:
        kind = each.get("type") if isinstance(each, Mapping) else None
        write = _TRANSFORMS.get(str(kind))
        if write is None:
            raise NoCounterpart(f"a transform of the type {kind}")
        of = each.get(kind)
        # Crossplane's map transform has its pairs there directly.
        if not isinstance(of, Mapping):
            raise NoCounterpart(f"a transform of the type {kind} without its settings")
        value = write(value, of)
        if len(value) > LONGEST_EXPRESSION:
            raise NoCounterpart(f"transforms of more than {LONGEST_EXPRESSION:,} characters in CEL")
    return value


def formatted(values: Sequence[str], text: object) -> str:
    """The expression for a text of Go's fmt with values. Raises NoCounterpart."""
    if not isinstance(text, str):
        raise NoCounterpart("a format that is no text")

    def verb(found: re.Match[str]) -> str:
        if found[1] not in _VERBS:
            raise NoCounterpart(f"the format {found[0]}")
        return _VERBS[found[1]]

    made = _VERB.sub(verb, text)
    if len(_VERB.findall(text.replace("%%", ""))) != len(values):
        raise NoCounterpart("a format for another number of values")
    return f"{literal_text(made)}.format([{', '.join(_items(values))}])"


def _items(values: Sequence[str]) -> list[str]:
    # The types of the values are not known, and those of a list have to be the same.
    return list(values) if len(values) == 1 else [f"dyn({each})" for each in values]


def _often(value: str, write: Callable[[str], str]) -> str:
    """An expression that needs a value more than once, which is computed once."""
    if _SIMPLE.fullmatch(value):
        return write(value)
    return f"[{value}].map({_VALUE}, {write(_VALUE)})[0]"


def _map(value: str, pairs: Mapping[str, Any]) -> str:
    return f"{literal_text(dict(pairs))}[{value}]"


def _match(value: str, of: Mapping[str, Any]) -> str:
    patterns = of.get("patterns") or ()
    if of.get("fallbackTo", "Value") not in ("Value", "Input") or not isinstance(patterns, list):
        raise NoCounterpart("a match transform of this form")
    results = [each.get("result") for each in patterns if isinstance(each, Mapping)]
    back = of.get("fallbackValue")
    as_input = of.get("fallbackTo") == "Input"
    mixed = as_input or len({type(each) for each in (*results, back)}) > 1

    def result(known: Any) -> str:
        text = literal_text(known)
        return f"dyn({text})" if mixed or not isinstance(known, _SCALARS) else text

    def write(name: str) -> str:
        tests = [_test(name, each) for each in patterns]
        last = f"dyn({name})" if as_input else result(back)
        pairs = zip(tests, map(result, results), strict=True)
        return "".join(f"{test} ? {then} : " for test, then in pairs) + last

    return f"({_often(value, write)})" if patterns else write(value)


def _test(name: str, pattern: object) -> str:
    if isinstance(pattern, Mapping) and pattern.get("type", "literal") == "literal":
        return f"{name} == {literal_text(str(pattern.get('literal', '')))}"
    if isinstance(pattern, Mapping) and pattern.get("type") == "regexp":
        return f"{name}.matches({literal_text(str(pattern.get('regexp', '')))})"
    raise NoCounterpart("a match transform of this form")


def _math(value: str, of: Mapping[str, Any]) -> str:
    kind = of.get("type", "Multiply")
    number = of.get(_NUMBERS.get(str(kind), ""))
    if not isinstance(number, int) or isinstance(number, bool):
        raise NoCounterpart(f"a math transform of the type {kind}")
    if kind == "Multiply":
        return f"({value} * {number})"
    sign = "<" if kind == "ClampMin" else ">"
    return f"({_often(value, lambda name: f'{name} {sign} {number} ? {number} : {name}')})"


def _string(value: str, of: Mapping[str, Any]) -> str:
    kind = of.get("type", "Format")
    if kind == "Format":
        return formatted([value], of.get("fmt"))
    if kind == "Convert" and of.get("convert") in _CASES:
        return f"{_receiver(value)}.{_CASES[of['convert']]}()"
    if kind in ("TrimPrefix", "TrimSuffix"):
        return _trimmed(value, str(of.get("trim", "")), prefix=kind == "TrimPrefix")
    if kind == "Regexp":
        found = of.get("regexp")
        if isinstance(found, Mapping) and not found.get("group"):
            return f"{_receiver(value)}.find({literal_text(str(found.get('match', '')))})"
        raise NoCounterpart("a group of a regular expression")
    if kind == "Join" and isinstance(of.get("join"), Mapping):
        return f"{_receiver(value)}.join({literal_text(str(of['join'].get('separator', '')))})"
    if kind == "Replace" and isinstance(of.get("replace"), Mapping):
        search, replace = (literal_text(str(of["replace"].get(each, ""))) for each in ("search", "replace"))
        return f"{_receiver(value)}.replace({search}, {replace})"
    raise NoCounterpart(f"a string transform of the type {of.get('convert') if kind == 'Convert' else kind}")


def _trimmed(value: str, text: str, *, prefix: bool) -> str:
    trim, size = literal_text(text), len(text)

    def write(name: str) -> str:
        if prefix:
            return f"{name}.startsWith({trim}) ? {name}.substring({size}) : {name}"
        return f"{name}.endsWith({trim}) ? {name}.substring(0, {name}.size() - {size}) : {name}"

    return f"({_often(value, write)})"


def _convert(value: str, of: Mapping[str, Any]) -> str:
    kind, form = str(of.get("toType")), of.get("format") or "none"
    known = {"none": _TYPES, "quantity": _QUANTITIES}.get(str(form), {})
    if kind not in known:
        raise NoCounterpart(f"a conversion to {kind}{'' if form == 'none' else f' by {form}'}")
    return known[kind].format(value)


def _receiver(value: str) -> str:
    """What a method can be called on."""
    return value if _SIMPLE.fullmatch(value) or value.endswith((")", "]")) else f"({value})"


_TRANSFORMS: Final[dict[str, Callable[[str, Mapping[str, Any]], str]]] = {
    "map": _map,
    "match": _match,
    "math": _math,
    "string": _string,
    "convert": _convert,
}
