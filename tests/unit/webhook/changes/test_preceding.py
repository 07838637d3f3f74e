"""Whether a change is refused because of protection, however long that decision and its examination take."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from crdkeeper.core.conversion.review import BadReview
from crdkeeper.webhook.changes import judging
from crdkeeper.webhook.changes.worker import ChangeWorker, Crowded
from tests import virtualtime

BODY = b'{"request":{"operation":"UPDATE"}}'
REFUSED = {"response": {"allowed": False, "by": "decision"}}
PASSED = {"response": {"allowed": True, "by": "decision"}}
EXAMINED = {"response": {"allowed": True, "by": "examination"}}


@dataclass
class Worker:
    """Answers like this after some seconds, or raises it; Crowded when the time is over."""

    after: float
    result: dict[str, Any] | Exception
    waiting: int = 0
    most_waiting: int = 100
    asked: list[float] = field(default_factory=list)

    async def examine(self, body: bytes, policies: bytes, seconds: float) -> dict[str, Any]:
        self.asked.append(seconds)
        await asyncio.sleep(min(self.after, seconds))
        if self.after > seconds:
            raise Crowded
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def judged(monkeypatch: pytest.MonkeyPatch, decides: Worker, examines: Worker) -> dict[str, Any]:
    monkeypatch.setattr(judging, "time", SimpleNamespace(monotonic=virtualtime.now))
    found = judging.ChangeJudging.__new__(judging.ChangeJudging)
    found.policies = cast(Any, SimpleNamespace(content=b"[]", judging=True, protecting=True))
    found._decisions = judging._Queue(cast(ChangeWorker, decides), 1000)
    found._changes = judging._Queue(cast(ChangeWorker, examines), 1000)

    async def main() -> dict[str, Any]:
        return await found._judged(BODY, virtualtime.now())

    return virtualtime.run(main())


def test_a_refusal_needs_no_examination(monkeypatch: pytest.MonkeyPatch) -> None:
    examines = Worker(0.1, EXAMINED)
    assert judged(monkeypatch, Worker(0.1, REFUSED), examines) == REFUSED
    assert examines.asked == []


def test_a_refusal_that_comes_late_counts_if_there_was_no_time_for_the_examination(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert judged(monkeypatch, Worker(0.9, REFUSED), Worker(9.0, EXAMINED)) == REFUSED
    with pytest.raises(Crowded):
        judged(monkeypatch, Worker(0.9, PASSED), Worker(9.0, EXAMINED))
    with pytest.raises(Crowded):
        judged(monkeypatch, Worker(9.0, REFUSED), Worker(9.0, EXAMINED))


@pytest.mark.parametrize(
    "decides",
    [Worker(0.1, PASSED), Worker(0.1, BadReview("it takes too long")), Worker(9.0, REFUSED)],
    ids=["passed", "unreadable", "late"],
)
def test_otherwise_the_examination_answers(decides: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows of the protection, too."""
    examines = Worker(0.5, EXAMINED)
    assert judged(monkeypatch, decides, examines) == EXAMINED
    assert 0.7 < examines.asked[0] < 1.5


def test_deletions_have_the_other_half_of_the_places(monkeypatch: pytest.MonkeyPatch) -> None:
    decides = Worker(0.1, REFUSED, waiting=50)
    assert judged(monkeypatch, decides, Worker(0.5, EXAMINED)) == EXAMINED
    assert decides.asked == []
