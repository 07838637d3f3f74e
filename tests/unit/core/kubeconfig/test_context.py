"""Of several kubeconfigs, the current context is the one that kubectl takes."""

from typing import Any

import pytest

from crdkeeper.core.kubeconfig.context import current_context


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ([{"current-context": "a"}], "a"),
        ([{"current-context": "a"}, {"current-context": "b"}], "a"),
        ([{}, {"current-context": ""}, {"current-context": None}, {"current-context": "b"}], "b"),
        ([{"current-context": "a"}, {"current-context": ""}], "a"),
        ([{}, {"current-context": ""}], None),
        ([], None),
    ],
)
def test_the_first_that_is_named(files: list[dict[str, Any]], found: str | None) -> None:
    assert current_context(files) == found
