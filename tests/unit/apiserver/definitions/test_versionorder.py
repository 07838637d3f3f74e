"""Which versions the API server prefers, and which names it considers versions."""

import pytest

from crdkeeper.apiserver.definitions.versionorder import preferred, priority

# The order of the example in the documentation of Kubernetes, "Version priority".
DOCUMENTED = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
LARGEST, TOO_LARGE = 2**63 - 1, 2**63


@pytest.mark.parametrize(
    "ordered",
    [
        DOCUMENTED,
        [f"v{LARGEST}", "v1", "v1alpha1", f"v{TOO_LARGE}"],
        ["v1beta1", f"v1alpha{LARGEST}", f"v1alpha{TOO_LARGE}", f"v{TOO_LARGE}"],
        ["v" + "0" * 40 + "2", "v1", "v0", "v0beta1", "v" + "9" * 5000],
    ],
)
def test_order(ordered: list[str]) -> None:
    for i, name in enumerate(ordered):
        assert preferred(reversed(ordered[i:]), str) == name


def test_none() -> None:
    assert preferred([], str) is None


@pytest.mark.parametrize("name", ["", "1", "v", "V1", "v1gamma1", "v1beta", "v1alpha1\n", "v٣"])
def test_other_forms(name: str) -> None:
    assert priority(name) is None
