"""The fast path, which nearly all values take, gives the same result as the general one."""

from decimal import ROUND_DOWN, Decimal
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from crdkeeper.apiserver.cel.library.quantity import parse_quantity
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate
from crdkeeper.core.conversion import keptaside
from crdkeeper.core.conversion.values import INTEGER_LIMIT, QUANTITY_UNITS, Unconvertible, casting, quantities

SIZES = {
    unit: Decimal(found.number).scaleb(found.scale)
    for unit in QUANTITY_UNITS
    if (found := parse_quantity(f"1{unit}"))
}
TEXTS = st.from_regex(r"\A[-+]?[0-9]{0,20}(\.[0-9]{0,3})?([numkMGTPE]|[KMGTPE]i|e3)?\Z")
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


def _by_decimals(text: str, unit: str, type_: str) -> Any:
    try:
        found = parse_quantity(text)
    except (EvaluationError, Indeterminate):
        return None
    number = Decimal(found.number).scaleb(found.scale) / SIZES[unit]
    if type_ == "number":
        return float(number)
    whole = int(number.to_integral_value(ROUND_DOWN))
    return whole if -INTEGER_LIMIT <= whole < INTEGER_LIMIT else None


@given(TEXTS, st.sampled_from(QUANTITY_UNITS), st.sampled_from(["integer", "number"]))
@example("1536Mi", "Mi", "integer")
@example("1Gi", "Mi", "integer")
@example("1", "Mi", "integer")
@example("9223372036854775807", "", "integer")
@example("9223372036854775808", "", "integer")
@example("8Ei", "Mi", "integer")
@example("٣", "", "integer")
def test_quantities(text: str, unit: str, type_: str) -> None:
    try:
        made = quantities(unit, type_).to_hub(text)
    except Unconvertible:
        made = None
    assert (made, type(made)) == ((wanted := _by_decimals(text, unit, type_)), type(wanted))


@given(st.integers() | st.text(alphabet="-+0123456789.e٣ ", max_size=22))
@example("0042")
@example("-0")
@example(str(INTEGER_LIMIT))
def test_texts_and_integers(value: int | str) -> None:
    text = str(value)
    try:
        made = casting("integer", "string").to_hub(text)
    except Unconvertible:
        return
    assert made == int(Decimal(text)) and -INTEGER_LIMIT <= made < INTEGER_LIMIT


@given(VALUES, VALUES)
@example({"a": 1}, {"a": True})
@example({"a": 1}, {"a": 1.0})
@example([], {})
@example(10**30, 10**30)
def test_no_difference_is_overlooked(one: Any, other: Any) -> None:
    assert (not keptaside.differences(one, other, None)) == keptaside.same(one, other)
