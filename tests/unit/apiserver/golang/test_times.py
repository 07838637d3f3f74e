"""Times that anybody may write into an object."""

from datetime import UTC, datetime

import pytest

from crdkeeper.apiserver.golang.times import moment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-23T12:00:00Z", datetime(2026, 11, 23, 12, tzinfo=UTC)),
        ("2026-11-23T12:00:00.000001Z", datetime(2026, 11, 23, 12, 0, 0, 1, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("0000-12-31T23:59:59Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_times(text: str, expected: datetime) -> None:
    assert moment(text) == expected
