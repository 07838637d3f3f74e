"""Numbers as the API server's decoder makes them."""

import math

import pytest

from crdkeeper.apiserver.objects.jsonvalue import same, stored


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**63 - 1, 2**63 - 1),
        (2**63, 2.0**63),
        (-(2**63) - 1, -(2.0**63)),
        (10**308, 1e308),
        (10**309, math.inf),
        (-(10**400), -math.inf),
    ],
)
def test_integers_of_any_size(value: int, expected: float) -> None:
    assert same(stored(value), expected)
