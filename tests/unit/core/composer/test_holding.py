"""Who holds up a deletion, as a message says it."""

from typing import Any

import pytest

from crdkeeper.core.composer.holding import Waiting, holds_crd, waiting_among, waits
from crdkeeper.core.diagnosis.deletion import CLEANUP

Json = Any


def composite(name: str, *finalizers: str, going: bool = True, namespace: str = "team") -> Json:
    """The metadata of one."""
    when = {"deletionTimestamp": "2026-01-02T03:04:05Z"} if going else {}
    return {"name": name, "namespace": namespace, "finalizers": list(finalizers), **when}


def test_those_that_nobody_deleted_or_holds_are_not_named() -> None:
    found = waiting_among(
        [
            composite("a", "example.com/bill"),
            composite("b", "example.com/bill", going=False),
            composite("c"),
            {"name": "d", "deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["x"]},
        ]
    )
    assert found == Waiting(2, ("team/a (example.com/bill)", "d (x)"), 4)


@pytest.mark.parametrize(
    ("number", "composites", "said"),
    [
        (0, 3, ""),
        (1, 1, "1 composite waits for its finalizers: team/a0 (x)."),
        (2, None, "2 composites wait for their finalizers: team/a0 (x), team/a1 (x)."),
        (
            7,
            9,
            "Of the first 7, 7 composites wait for their finalizers: team/a0 (x), team/a1 (x), team/a2 (x), "
            "team/a3 (x), team/a4 (x) and 2 more.",
        ),
    ],
)
def test_the_first_are_named(number: int, composites: int | None, said: str) -> None:
    assert waits(waiting_among(composite(f"a{each}", "x") for each in range(number)), composites) == said


def test_the_message_is_short_whatever_is_stored() -> None:
    many = [f"example.com/{each}" for each in range(5_000)]
    found = waiting_among(composite(f"a{each}", *many) for each in range(500))
    assert len(waits(found, 500)) < 1_000
    assert "example.com/2 and 4,997 more" in waits(found, 500)


def test_the_finalizers_of_others_on_the_crd() -> None:
    said = "The CRD itself has the finalizers example.com/audit."
    audited = [CLEANUP, "example.com/audit"]
    assert holds_crd({"metadata": composite("a", *audited)}) == said
    assert holds_crd({"metadata": composite("a", *audited, going=False)}) == ""
    assert holds_crd({"metadata": composite("a", CLEANUP)}) == ""
    assert holds_crd({"metadata": {}}) == ""
