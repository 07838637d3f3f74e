"""Conversions of single values: pairs of functions, one for each direction.

They raise `Unconvertible` for a value without counterpart. A function that is not the exact inverse of the
other loses nothing in the end: what a round trip would change is kept aside (see `keptaside`).
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any, Final

from crdkeeper.apiserver.cel.library.quantity import parse_quantity
from crdkeeper.apiserver.cel.values.times import parse_duration
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate
from crdkeeper.apiserver.golang.durations import shown as shown_duration
from crdkeeper.core.conversion.nesting import Deep

Convert = Callable[[Any], Any]

INTEGER_LIMIT: Final = 2**63
_LONGEST: Final = 64
"""Characters of a quantity or duration at most; real ones have a dozen."""


class Unconvertible(ValueError):
    """A value has no counterpart in the other version.

    The text names the field and the type of the value, never the value: it is copied to status, Events and
    logs.
    """


class Refused(Unconvertible):
    """The rules request an error for such a value instead of a stand-in: the object is not converted."""


def kind_of(value: Any) -> str:
    """The JSON type of a value, for people."""
    if isinstance(value, bool):
        return "a boolean"
    names = (
        (str, "a string"),
        (int, "an integer"),
        (float, "a number"),
        (list, "a list"),
        (dict, "an object"),
        (Deep, "a list or an object far down"),
    )
    return next((name for type_, name in names if isinstance(value, type_)), "null")


@dataclass(frozen=True, slots=True)
class Converter:
    """Both directions of a rule. `exact`: they are each other's inverse for all that the schemas allow."""

    to_hub: Convert
    to_spoke: Convert
    exact: bool = False
    forgive: Callable[[str, Any, Any], Any] | None = None
    """What a value of a side may have been, given its result after a round trip (`Scope.forgiven`)."""

    def swapped(self) -> "Converter":
        """The converter with hub and spoke exchanged."""
        return Converter(self.to_spoke, self.to_hub, self.exact)


def same(value: Any) -> Any:
    """The value itself."""
    return value


MOVE: Final = Converter(same, same, exact=True)


def strictly(value: Any) -> Any:
    """A value as a dictionary key, for which 1, 1.0 and true are different."""
    if isinstance(value, list):
        return ("list", tuple(map(strictly, value)))
    if isinstance(value, dict):
        return ("dict", frozenset((key, strictly(each)) for key, each in value.items()))
    return (type(value), value)


def renaming(pairs: Sequence[tuple[Any, Any]], *, exact: bool) -> Converter:
    """(hub, spoke) pairs. The first pair of a value counts, so that several may become one."""

    def table(turned: Sequence[tuple[Any, Any]]) -> Convert:
        known: dict[Any, Any] = {}
        for before, after in turned:
            known.setdefault(strictly(before), after)

        def convert(value: Any) -> Any:
            try:
                return known[strictly(value)]
            except (KeyError, TypeError):
                raise Unconvertible(f"{kind_of(value)} that is none of the rule's values") from None

        return convert

    return Converter(table([(spoke, hub) for hub, spoke in pairs]), table(pairs), exact)


def _number(value: Decimal, type_: str) -> int | float:
    if type_ == "integer":
        whole = int(value.to_integral_value(ROUND_DOWN))
        if not -INTEGER_LIMIT <= whole < INTEGER_LIMIT:
            raise Unconvertible("a number that is too large for an integer")
        return whole
    number = float(value)
    if not math.isfinite(number):
        raise Unconvertible("a number that is too large")
    return number


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unconvertible(f"{kind_of(value)}, and no number")
    return Decimal(str(value))


def scaling(hub: int, spoke: int, hub_type: str, spoke_type: str) -> Converter:
    """`hub` units are `spoke` units. Truncates what an integer cannot hold."""
    return Converter(
        lambda value: _number(_decimal(value) * hub / spoke, hub_type),
        lambda value: _number(_decimal(value) * spoke / hub, spoke_type),
    )


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return repr(value)
    raise Unconvertible(f"{kind_of(value)}, and no scalar")


_PLAIN = re.compile(r"-?[0-9]{1,18}")
_WHOLE = re.compile(r"[+-]?\d{1,19}")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")


def _to_number(type_: str) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, bool):
            return int(value)
        if type_ == "integer" and isinstance(value, str) and _PLAIN.fullmatch(value):
            return int(value)
        if (
            isinstance(value, str)
            and len(value) <= 400
            and (_WHOLE if type_ == "integer" else _DECIMAL).fullmatch(value)
        ):
            return _number(Decimal(value), type_)
        if isinstance(value, int | float):
            return _number(_decimal(value), type_)
        raise Unconvertible(f"{kind_of(value)} that is no {type_}")

    return convert


def _to_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    raise Unconvertible(f"{kind_of(value)} that is neither true nor false")


def _caster(type_: str) -> Convert:
    if type_ == "string":
        return _to_text
    return _to_boolean if type_ == "boolean" else _to_number(type_)


def casting(hub_type: str, spoke_type: str) -> Converter:
    """Scalars of two types."""
    return Converter(_caster(hub_type), _caster(spoke_type))


_SUFFIXES: Final = {
    **{name: Decimal(1024) ** (i + 1) for i, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
    **{name: Decimal(1000) ** (i + 1) for i, name in enumerate(("k", "M", "G", "T", "P", "E"))},
    "": Decimal(1),
    "m": Decimal("1e-3"),
    "u": Decimal("1e-6"),
    "n": Decimal("1e-9"),
}
_PLAIN_QUANTITY: Final = re.compile(r"([0-9]{1,18})([KMGTPE]i|[kMGTPE]?)")
QUANTITY_UNITS: Final = tuple(_SUFFIXES)


def quantities(unit: str, number_type: str) -> Converter:
    """To the hub: a quantity becomes a number of `unit`s (resource.Quantity of apimachinery)."""
    size = _SUFFIXES[unit]
    whole_size = int(size)

    def parse(value: Any) -> Any:
        plain = _PLAIN_QUANTITY.fullmatch(value) if whole_size and isinstance(value, str) else None
        if plain is not None:
            # The common case, without decimals, which take many times as long.
            amount = int(plain[1]) * int(_SUFFIXES[plain[2]])
            number, left = divmod(amount, whole_size)
            if not left and amount < INTEGER_LIMIT:
                return number if number_type == "integer" else float(number)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _number(_decimal(value) / size, number_type)
        try:
            found = parse_quantity(value if isinstance(value, str) and len(value) <= _LONGEST else "")
        except (EvaluationError, Indeterminate):
            raise Unconvertible(f"{kind_of(value)} that is no quantity") from None
        return _number(Decimal(found.number).scaleb(found.scale) / size, number_type)

    def write(value: Any) -> Any:
        if type(value) is int:
            return f"{value}{unit}"
        number = _decimal(value)
        if number == number.to_integral_value():
            return f"{int(number)}{unit}"
        # Quantities are exact to at least a thousandth: write it in thousandths of the plain unit.
        return f"{int((number * size * 1000).to_integral_value(ROUND_DOWN))}m"

    return Converter(parse, write)


_DURATIONS: Final = {
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
DURATION_UNITS: Final = tuple(_DURATIONS)


def durations(unit: str, number_type: str) -> Converter:
    """To the hub: a duration becomes a number of `unit`s (Go's time.ParseDuration)."""
    size = _DURATIONS[unit]

    def parse(value: Any) -> Any:
        found = parse_duration(value) if isinstance(value, str) and len(value) <= _LONGEST else None
        if found is None:
            raise Unconvertible(f"{kind_of(value)} that is no duration")
        return _number(Decimal(found.order) / size, number_type)

    def write(value: Any) -> Any:
        nanoseconds = int((_decimal(value) * size).to_integral_value(ROUND_DOWN))
        if abs(nanoseconds) >= INTEGER_LIMIT:
            raise Unconvertible("a number that is too large for a duration")
        return shown_duration(nanoseconds)

    return Converter(parse, write)


def separating(separator: str, item_type: str) -> Converter:
    """To the hub: a list of scalars becomes a string. To the spoke: an empty string gives an empty list."""
    items = casting(item_type, "string")

    def join(value: Any) -> Any:
        if not isinstance(value, list):
            raise Unconvertible(f"{kind_of(value)}, and no list")
        return separator.join(map(items.to_spoke, value))

    def split(value: Any) -> Any:
        if not isinstance(value, str):
            raise Unconvertible(f"{kind_of(value)}, and no string")
        return list(map(items.to_hub, value.split(separator))) if value else []

    return Converter(join, split)


def wrapping(item: Converter = MOVE) -> Converter:
    """To the hub: the first item of a list; to the spoke: a list of one. Further items are kept aside."""

    def unwrap(value: Any) -> Any:
        if not isinstance(value, list):
            raise Unconvertible(f"{kind_of(value)}, and no list")
        if not value:
            raise _Nothing
        return item.to_hub(value[0])

    return Converter(unwrap, lambda value: [item.to_spoke(value)])


class _Nothing(Exception):
    """The other version has no value for this one: the field remains unset."""


NOTHING: Final = _Nothing


def keying(key: str, items: Converter, nameless: Callable[[Unconvertible], None]) -> Converter:
    """To the hub: a list of objects becomes a map by their field `key`. To the spoke: sorted by it.

    The API server does not preserve a map's order, so another order of the list is kept aside; so is an item
    for which the map has no value, or a second one with the same key. `nameless` is called for an item
    without a key, and may raise the error; otherwise the item is left out, too.
    """

    def to_map(value: Any) -> Any:
        found: dict[str, Any] = {}
        for each in value if isinstance(value, list) else _refuse(value, "list"):
            if not isinstance(each, dict) or not isinstance(each.get(key), str):
                nameless(Unconvertible(f"an item has no {key}"))
                continue
            if each[key] in found:
                continue
            try:
                found[each[key]] = items.to_hub({name: part for name, part in each.items() if name != key})
            except NOTHING:
                continue
        return found

    def to_list(value: Any) -> Any:
        if not isinstance(value, dict):
            _refuse(value, "map")
        return [{key: name, **items.to_spoke(each)} for name, each in sorted(value.items())]

    return Converter(to_map, to_list)


def _refuse(value: Any, what: str) -> Any:
    raise Unconvertible(f"{kind_of(value)}, and no {what}")
