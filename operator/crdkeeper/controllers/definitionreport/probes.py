"""The slow part of the diagnosis: questions to the cluster, a few CRDs at a time, with cached answers.

Reports never wait for it, and it lets those of many new CRDs go first. A new answer triggers
another diagnosis of the CRD.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.diagnosis.assessment import Assessment
from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.facts import LiveFacts, SeenDefinition

_PAUSE_SECONDS = 0.2
_MOST_PAUSES = 50


@dataclass(frozen=True, slots=True)
class Subject:
    """What a probe asks about."""

    seen: SeenDefinition
    assessment: Assessment


@dataclass(frozen=True, slots=True)
class Probe:
    """A question to the cluster."""

    condition: ConditionType
    """The condition that depends on it. The answer is stored in its `fact`."""
    seconds: Callable[[Any], float]
    """How long the answer remains valid, in seconds."""
    about: Callable[[Subject], Hashable | None]
    """What the question depends on: when it changes, the probe is due at once. None: nothing to ask."""
    ask: Callable[[Subject, Any], Awaitable[Any]]
    """Returns the answer, given the previous one or None. A failed request is an answer, too."""

    @property
    def fact(self) -> str:
        """The field of LiveFacts for the answer."""
        return self.condition.fact


@dataclass(slots=True)
class _Answer:
    about: Hashable
    value: Any
    due: float
    """When it is due, in the event loop's time."""


def _now() -> float:
    return asyncio.get_running_loop().time()


class Probes:
    """The answers of all probes for all CRDs. Calls `on_answer` with the name of a CRD that has a new one."""

    def __init__(
        self,
        probes: Sequence[Probe],
        subject: Callable[[str], Subject | None],
        on_answer: Callable[[str], None],
        crowded: Callable[[], bool] = lambda: False,
        *,
        at_once: int = 4,
    ) -> None:
        self._probes = probes
        self._subject = subject
        self._on_answer = on_answer
        self._crowded = crowded
        self._answers: dict[str, dict[str, _Answer]] = {}
        self.queue = WorkQueue(self.probe, workers=at_once)

    def live(self, name: str, subject: Subject) -> LiveFacts:
        """The valid answers: without those to questions that have changed since."""
        known = self._answers.get(name, {})
        return replace(
            LiveFacts(),
            **{
                each.fact: known[each.fact].value
                for each in self._probes
                if each.fact in known and known[each.fact].about == each.about(subject)
            },
        )

    def pending(self, name: str, subject: Subject) -> frozenset[str]:
        """The conditions that wait for an answer. Starts the probes that are due."""
        known = self._answers.get(name, {})
        unanswered, due = set(), False
        now = _now()
        for each in self._probes:
            about = each.about(subject)
            if about is None:
                continue
            answer = known.get(each.fact)
            if answer is None or answer.about != about:
                unanswered.add(each.condition.type)
                due = True
            elif answer.due <= now:
                due = True
        if due:
            self.queue.add_within(name, 0.0)
        return frozenset(unanswered)

    def forget(self, name: str) -> None:
        """Drop everything about a deleted CRD."""
        self._answers.pop(name, None)

    async def _give_way(self) -> None:
        """Wait, but not for ever, while many CRDs have no report of their current state.

        The first question about objects of a CRD makes the API server build all that it needs to serve them.
        """
        for _ in range(_MOST_PAUSES):
            if not self._crowded():
                return
            await asyncio.sleep(_PAUSE_SECONDS)

    async def probe(self, name: str) -> None:
        """Run the due probes of a CRD, and schedule the next ones."""
        await self._give_way()
        for each in self._probes:
            subject = self._subject(name)
            if subject is None:
                self.forget(name)
                return
            about = each.about(subject)
            known = self._answers.setdefault(name, {})
            before = known.get(each.fact)
            if about is None:
                known.pop(each.fact, None)
                continue
            if before is not None and before.about == about and before.due > _now():
                continue
            value = await each.ask(subject, before.value if before is not None else None)
            known[each.fact] = _Answer(about, value, _now() + each.seconds(value))
            if before is None or before.value != value or before.about != about:
                self._on_answer(name)
        answers = self._answers.get(name, {})
        if answers:
            wait = min(each.due for each in answers.values()) - _now()
            self.queue.add_within(name, max(wait, 1.0))
