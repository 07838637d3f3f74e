"""Of several kubeconfigs, those count that kubectl takes, and the current context is that of kubectl."""

from typing import Any

import pytest

from crdkeeper.core.kubeconfig.context import current_context, has_content


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (b"", False),
        (b" \r\n\n", False),
        (b"# users: []\n--- # none\n", False),
        (b"# none\nusers: []  # none", True),
        (b"{}", True),
    ],
)
def test_comments_are_no_content(written: bytes, found: bool) -> None:
    assert has_content(written) == found


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
