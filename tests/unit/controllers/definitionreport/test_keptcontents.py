"""What is kept of CRDs that wait for their assessment, and that it takes a bounded amount of memory."""

import random
from typing import Any

import orjson
import pytest

from crdkeeper.controllers.definitionreport.keptcontents import KeptContents

CRD = {"metadata": {"name": "widgets.example.com"}, "spec": {"text": "never null, but: null"}}


def test_what_is_kept_is_taken_once() -> None:
    kept = KeptContents()
    kept.keep("one", "1", CRD)
    content = kept.take("one")
    assert content is not None
    assert orjson.loads(content) == CRD
    assert kept.take("one") is None


def test_a_newer_revision_replaces_an_older_one() -> None:
    kept = KeptContents()
    kept.keep("one", "1", {"is": "old"})
    kept.keep("one", "2", {"is": "new"})
    content = kept.take("one")
    assert content is not None
    assert orjson.loads(content) == {"is": "new"}


def test_one_that_cannot_be_kept_leaves_nothing_of_the_former_revision() -> None:
    kept = KeptContents()
    kept.keep("one", "1", CRD)
    kept.keep("one", "2", {"default": None})
    assert kept.take("one") is None


@pytest.mark.parametrize(
    "value",
    [
        {"default": None},
        {"enum": [None, "a"]},
        {"enum": ["a", None]},
        {"maximum": 1 << 70},
        {"description": "\ud800"},
    ],
    ids=["null", "first null", "another null", "a number", "a text"],
)
def test_what_may_differ_from_the_api_servers_is_read_again(value: dict[str, Any]) -> None:
    """A watch by Kopf has null in place of what is nested too deep."""
    kept = KeptContents()
    kept.keep("one", "1", value)
    assert kept.take("one") is None


def test_thousands_of_large_ones_take_bounded_memory() -> None:
    chance = random.Random(1)
    kept = KeptContents(most_bytes=100_000)
    for number in range(300):
        kept.keep(str(number), "1", {"spec": chance.randbytes(5_000).hex()})
    some = [each for each in range(300) if kept.take(str(each)) is not None]
    assert 10 < len(some) < 30
    kept.keep("another", "1", CRD)
    assert kept.take("another") is not None, "there is room again"


def test_room_is_not_lost_by_what_is_dropped_or_replaced() -> None:
    chance = random.Random(1)
    kept = KeptContents(most_bytes=20_000)
    for number in range(100):
        kept.keep("one", str(number), {"spec": chance.randbytes(5_000).hex()})
    kept.drop("one")
    kept.drop("one")
    kept.keep("two", "1", {"spec": chance.randbytes(7_000).hex()})
    assert kept.take("two") is not None
