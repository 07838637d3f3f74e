"""Values of fields as the API server's decoder makes them."""

from typing import Any

import pytest

from crdkeeper.apiserver.objects.jsonvalue import same
from crdkeeper.apiserver.schema.decoding import Anything, FieldType, Time
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.violation import Report


def decoded(kind: FieldType, raw: Any) -> Any:
    report = Report()
    found = kind.decode(raw, root("a"), report)
    assert report == Report()
    return found


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (2**63 - 1, 2**63 - 1),
        (2**63, 2.0**63),
        (-(2**63) - 1, -(2.0**63)),
        ({"a": [{"b": 2**64}, 1, 1.0, True, None, "x"]}, {"a": [{"b": 2.0**64}, 1, 1.0, True, None, "x"]}),
    ],
)
def test_integers_beyond_64_bits_are_floats(raw: Any, value: Any) -> None:
    assert same(decoded(Anything(), raw), value)


def test_what_has_no_such_integer_is_not_copied() -> None:
    raw = {"a": [1, {"b": "x"}]}
    assert decoded(Anything(), raw) is raw


def test_the_document_stays_as_it_is() -> None:
    raw = {"a": [{"b": 2**64}]}
    decoded(Anything(), raw)
    assert same(raw, {"a": [{"b": 2**64}]})


def test_values_of_any_depth_are_decoded() -> None:
    deep: Any = 2**63
    for _ in range(5_000):
        deep = [deep]
    found = decoded(Anything(), deep)
    while isinstance(found, list):
        (found,) = found
    assert same(found, 2.0**63)


@pytest.mark.parametrize("offset", ["Z", "+00:00", "-24:00", "+02:60"])
def test_offsets_of_times(offset: str) -> None:
    raw = f"2026-11-23T12:00:00{offset}"
    assert decoded(Time(), raw) == raw


@pytest.mark.parametrize("offset", ["", "+25:00", "+02:61", "+2:00"])
def test_what_is_no_offset(offset: str) -> None:
    report = Report()
    Time().decode(f"2026-11-23T12:00:00{offset}", root("a"), report)
    assert len(report.violations) == 1
