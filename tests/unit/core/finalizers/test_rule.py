"""Whether a finalizer is released from one object, and which never are."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crdkeeper.core.finalizers.holding import Held, held
from crdkeeper.core.finalizers.rule import Release, decide, parse_after, why_never

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def metadata(*times: str | None, deleted: str = "2026-01-02T10:00:00Z", **others: Any) -> dict[str, Any]:
    entries = [{"manager": f"m{at}", "time": time} for at, time in enumerate(times)]
    return {
        "name": "n",
        "namespace": "s",
        "uid": "u",
        "resourceVersion": "7",
        "deletionTimestamp": deleted,
        "finalizers": ["a/b"],
        "managedFields": entries,
        **others,
    }


def found(*times: str | None, **others: Any) -> Held:
    one = held(metadata(*times, **others), NOW)
    assert one is not None
    return one


@pytest.mark.parametrize(
    ("times", "writer", "written"),
    [
        ((), "", None),
        ((None,), "", None),
        (("2026-01-02T09:00:00Z", "2026-01-02T11:00:00Z"), "m1", NOW - HOUR),
        (("2026-01-02T11:00:00Z", "2026-01-02T09:00:00Z"), "m0", NOW - HOUR),
        (("2026-01-02T11:00:00Z", "2026-01-02T11:00:00Z"), "m1", NOW - HOUR),
        (("9000-01-01T00:00:00Z",), "m0", NOW),
        (("0000-01-01T00:00:00Z",), "m0", NOW),
        (("10000-01-01T00:00:00Z", "2026-01-02T11:00:00Z"), "m0", NOW),
    ],
)
def test_the_last_write(times: tuple[str | None, ...], writer: str, written: datetime | None) -> None:
    assert (found(*times).writer, found(*times).written) == (writer, written)


def test_what_nothing_holds() -> None:
    assert held(metadata(finalizers=[]), NOW) is None
    assert held({key: each for key, each in metadata().items() if key != "finalizers"}, NOW) is None
    assert held({key: each for key, each in metadata().items() if key != "deletionTimestamp"}, NOW) is None
    assert held({key: each for key, each in metadata().items() if key != "managedFields"}, NOW) is not None


@pytest.mark.parametrize(
    ("times", "deleted", "after", "expected"),
    [
        ((), "2026-01-02T10:00:00Z", HOUR, Release.DUE),
        ((), "2026-01-02T11:30:00Z", HOUR, Release.WAITING),
        # Written before its deletion: only the deletion counts.
        (("2026-01-02T09:59:00Z",), "2026-01-02T10:00:00Z", HOUR, Release.DUE),
        (("2026-01-02T11:29:00Z",), "2026-01-02T11:30:00Z", HOUR, Release.WAITING),
        # Written in deletion, long ago and lately.
        (("2026-01-02T10:30:00Z",), "2026-01-02T10:00:00Z", HOUR, Release.DUE),
        (("2026-01-02T11:30:00Z",), "2026-01-02T10:00:00Z", HOUR, Release.WRITTEN),
        (("2026-01-02T11:30:00Z", "2020-01-01T00:00:00Z"), "2026-01-02T10:00:00Z", HOUR, Release.WRITTEN),
        (("9000-01-01T00:00:00Z",), "2026-01-02T10:00:00Z", HOUR, Release.WRITTEN),
        # Times are truncated: what seems an hour ago may be a second less.
        ((), "2026-01-02T11:00:00Z", HOUR, Release.WAITING),
        ((), "2026-01-02T10:59:59Z", HOUR, Release.DUE),
        # A clock that is behind.
        ((), "2026-01-02T13:00:00Z", timedelta(seconds=1), Release.WAITING),
    ],
)
def test_decisions(times: tuple[str, ...], deleted: str, after: timedelta, expected: Release) -> None:
    decision = decide(found(*times, deleted=deleted), after, NOW)
    assert decision.release is expected
    assert (decision.due <= NOW) == (expected is Release.DUE)


@pytest.mark.parametrize(
    "name",
    [
        *("foregroundDeletion", "orphan", "kubernetes", "customresourcecleanup.apiextensions.k8s.io"),
        *("crdkeeper.dev/composites", "crdkeeper.dev", "x.crdkeeper.dev/y"),
    ],
)
def test_what_is_never_released(name: str) -> None:
    assert name in why_never(name)


@pytest.mark.parametrize("name", ["a.example.com/x", "kubernetes.io/pvc-protection", "notcrdkeeper.dev/x"])
def test_what_may_be_released(name: str) -> None:
    assert why_never(name) == ""


def test_durations() -> None:
    assert parse_after("24h") == timedelta(days=1)
    assert parse_after("1h30m") == timedelta(minutes=90)
    for text in ("", "soon", "1d", "0s", "-1h", "999ms", "999999h999999h"):
        with pytest.raises(ValueError, match=r"duration|between"):
            parse_after(text)
