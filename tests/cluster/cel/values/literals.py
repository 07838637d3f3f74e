"""Values of CEL as expressions, so that a rule can state the expected value."""

import math

from crdkeeper.apiserver.cel.values.containers import NONE, CelMap, OptionalValue
from crdkeeper.apiserver.cel.values.times import Duration, Timestamp
from crdkeeper.apiserver.cel.values.values import CelType, Uint, Value, elements_of, is_list, type_name


class Unwritable(Exception):
    """No expression gives the value."""


def quoted(text: str) -> str:
    return '"' + "".join(_char(each) for each in text) + '"'


def _char(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isascii() and char.isprintable():
        return char
    return f"\\U{ord(char):08x}"


def literal(value: Value) -> str:
    """An expression with this value."""
    kind = type(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if kind is Uint:
        return f"{int(value)}u"
    if kind is float:
        if math.isnan(value) or math.isinf(value):
            return f'double("{value}")'
        return repr(value) if "." in repr(value) or "e" in repr(value) else f"{value!r}.0"
    if kind is str:
        return quoted(value)
    if kind is bytes:
        return "b'" + "".join(f"\\x{each:02x}" for each in value) + "'"
    if kind is Duration:
        return f'duration("{value.order}ns")'
    if kind is Timestamp:
        return f'timestamp("{value.text()}")'
    if kind is CelType:
        return str(value.name)
    if kind is OptionalValue:
        return "optional.none()" if value is NONE else f"optional.of(dyn({literal(value.value)}))"
    if is_list(value):
        return f"[{', '.join(f'dyn({literal(each)})' for each in elements_of(value))}]"
    if kind is CelMap:
        pairs = ", ".join(f"dyn({literal(key)}): dyn({literal(each)})" for key, each in value.items())
        return f"{{{pairs}}}"
    if hasattr(value, "text") and type_name(value) in ("net.IP", "net.CIDR"):
        return f"{'ip' if type_name(value) == 'net.IP' else 'cidr'}({quoted(value.text())})"
    raise Unwritable(type_name(value))
