"""What the worker process says before it has examined a change."""

import io
import json
from collections.abc import Callable
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from crdkeeper.core.changes.examination import Examination
from crdkeeper.webhook.changes import workerprocess
from crdkeeper.webhook.changes.workerprocess import _Worker
from crdkeeper.webhook.timelimit import OutOfTime
from tests.unit.core.changes.builders import ADDRESS, definition, policy, review, widget, without


def told(bundle: bytes) -> bytes:
    """What the worker gets of a CRD's rules."""
    return json.dumps({"rules": len(bundle), "address": asdict(ADDRESS)}).encode() + b"\n" + bundle


class Over(BaseException):
    """The time that the API server waits is over."""


def test_a_change_that_was_not_compared_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def compare(_: Examination) -> None:
        raise Over

    monkeypatch.setattr(Examination, "compare", compare)
    body, policies = review(definition(), definition(without("note"))), json.dumps([policy().to_object()])
    job = {"body": len(body), "policies": len(policies), "seconds": 60.0}
    target = io.BytesIO()
    source = io.BytesIO(json.dumps(job).encode() + b"\n" + body + policies.encode() + told(b""))
    with pytest.raises(Over):
        _Worker(source, target).run()
    said = [json.loads(each) for each in target.getvalue().splitlines()]
    assert said[-1]["collection"] == "/apis/example.com/v1/widgets"
    assert not any(each.get("answer") for each in said)


class Slow:
    """A TimeLimit under which reading the change takes as long as said, and all else longer than it may."""

    def __init__(self, reading: float) -> None:
        self.now = 100.0
        self._reading = reading

    def run(self, seconds: float, work: Callable[..., Any], *args: Any) -> Any:
        if args:
            self.now += self._reading
            return work(*args)
        self.now += seconds
        raise OutOfTime


class Times(io.BytesIO):
    """Output whose lines have the time when they were written."""

    def __init__(self, clock: Slow) -> None:
        super().__init__()
        self._clock = clock
        self.said: list[tuple[float, Any]] = []

    def write(self, line: Any) -> int:
        self.said.append((self._clock.now, json.loads(line)))
        return len(line)


@pytest.mark.parametrize(("reading", "seconds"), [(0.0, 1.5), (0.3, 1.5), (0.05, 0.3)])
def test_something_is_told_in_time_however_long_all_takes(
    reading: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Slow(reading)
    target = Times(clock)
    monkeypatch.setattr(workerprocess, "time", SimpleNamespace(monotonic=lambda: clock.now))
    body, policies = review(definition(), definition(without("note"))), json.dumps([policy().to_object()])
    job = {"body": len(body), "policies": len(policies), "seconds": seconds}
    source = io.BytesIO(json.dumps(job).encode() + b"\n" + body + policies.encode() + told(b"rules"))
    worker = _Worker(source, target)
    monkeypatch.setattr(worker, "_limit", clock)
    worker.run()
    at, last = target.said[-1]
    assert last["done"]
    assert "the CRDs are too large to compare in time: `crdkeeper diff -f FILE` compares them" in str(last)
    assert at <= 100 + seconds - 0.14


class Second:
    """A TimeLimit under which all takes a second, and ends, and which notes how long it might have taken."""

    def __init__(self) -> None:
        self.now = 100.0
        self.left: list[float] = []

    def run(self, seconds: float, work: Callable[..., Any], *args: Any) -> Any:
        self.left.append(seconds)
        self.now += 1.0
        return work(*args)


def following(page: bytes, report: bytes) -> bytes:
    """What the worker gets next of the objects: without a page, there are no more."""
    head = {"page": len(page), "report": len(report), "unreported": "", "why": "", "seconds": 10.0}
    return json.dumps(head).encode() + b"\n" + page + report


def test_until_objects_are_examined_it_is_told_that_none_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their list may not come in time, and the process may be killed."""
    clock, target = Second(), io.BytesIO()
    monkeypatch.setattr(workerprocess, "time", SimpleNamespace(monotonic=lambda: clock.now))
    body, policies = review(definition(), definition(without("note"))), json.dumps([policy().to_object()])
    job = {"body": len(body), "policies": len(policies), "seconds": 60.0}
    objects = {"apiVersion": "example.com/v1", "kind": "WidgetList", "items": [widget(1, note="x")]}
    page, report = json.dumps({**objects, "metadata": {}}).encode(), json.dumps({"metadata": {}}).encode()
    pages = following(page, report) + following(b"", b"")
    source = io.BytesIO(json.dumps(job).encode() + b"\n" + body + policies.encode() + told(b"") + pages)
    worker = _Worker(source, target)
    monkeypatch.setattr(worker, "_limit", clock)
    worker.run()
    said = [json.loads(each) for each in target.getvalue().splitlines()]
    first, *_, last = [each["answer"]["response"]["warnings"] for each in said if each.get("answer")]
    assert first[-1] == "no live object was examined: there was no time"
    assert last[0].startswith("1 of 1 Widget objects would lose spec.note")
    assert "no live object" not in str(last)
    # To read the report and the page, and to judge the objects, there is the time of one page together.
    assert clock.left[-3:] == [10.0, 9.0, 8.0]
