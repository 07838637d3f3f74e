"""The functions on optionals (cel/library.go of cel-go), except or and orValue, whose arguments are lazy."""

import math
from typing import Final

from crdkeeper.apiserver.cel.values.containers import NONE, CelMap, OptionalValue
from crdkeeper.apiserver.cel.values.display import displayed
from crdkeeper.apiserver.cel.values.overloads import Overload, Table
from crdkeeper.apiserver.cel.values.times import MIN_SECONDS, SECOND, Duration, Timestamp
from crdkeeper.apiserver.cel.values.values import EvaluationError, Uint, Value, elements_of, read


def _is_zero(value: Value) -> bool:
    """Whether a value is its type's zero value; data bound to a schema never is (traits.Zeroer)."""
    kind = type(value)
    if value is None:
        return True
    if kind in (int, Uint, float, bool):
        return bool(value == 0) and not math.isnan(value)
    if kind in (str, bytes, list, CelMap):
        return len(value) == 0
    if kind is Duration:
        return bool(value.order == 0)
    return kind is Timestamp and bool(value.order == MIN_SECONDS * SECOND)


def _of_non_zero(value: Value) -> OptionalValue:
    return NONE if _is_zero(value) else OptionalValue(value)


def _unwrap(values: Value) -> list[Value]:
    present = []
    for each in elements_of(values):
        value = read(each)
        if type(value) is not OptionalValue:
            raise EvaluationError(f"value {displayed(value)} is not optional")
        if value is not NONE:
            present.append(value.value)
    return present


_O: Final = OptionalValue.type_name

MEMBERS: Final[Table] = {
    "value": (Overload((_O,), OptionalValue.dereference),),
    "hasValue": (Overload((_O,), lambda value: value is not NONE),),
    "unwrapOpt": (Overload((f"list({_O})",), _unwrap),),
}
GLOBALS: Final[Table] = {
    "optional.of": (Overload(("any",), OptionalValue),),
    "optional.ofNonZeroValue": (Overload(("any",), _of_non_zero),),
    "optional.none": (Overload((), lambda: NONE),),
    "optional.unwrap": (Overload((f"list({_O})",), _unwrap),),
}
