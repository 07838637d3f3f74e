"""One migration of many objects, followed to its end; its process is killed on the way, several times.

The kills are at even parts of the first half, each up to two seconds later, so that they have no fixed place
between the checkpoints. The second half is one process's: its memory shows whether something grows.
"""

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from crdkeeper.api.meta import GROUP as OUR_GROUP
from crdkeeper.api.meta import VERSION, find_condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.objects import PAGE
from crdkeeper.core.migration.counts import format_duration
from tests.benchmark.command import tell
from tests.benchmark.largecontestants import Contestant
from tests.benchmark.meter import peak_memory, proportional_memory, resident_memory
from tests.benchmark.server import Server
from tests.benchmark.subject import GROUP, PLURAL, Subject, WrongResult
from tests.cluster.harness.requestcounts import counted
from tests.controlplane.etcd import Etcd, Size

_POLL_SECONDS = 0.5
_SAMPLE_SECONDS = 10.0
_LATER_SECONDS = 2.0
"""Checkpoints are so far apart."""
_STILL_SECONDS = 0.5
"""What was sent before a kill is answered by then."""
_NO_NEWS_SECONDS = 600.0
PARTS: Final = 10


@dataclass(frozen=True, slots=True)
class Requests:
    """For the objects, by anyone, as the API server counts them."""

    patches: int
    written: int
    """Patches that were accepted."""
    lists: int

    def since(self, before: "Requests") -> "Requests":
        """Those after the others."""
        return Requests(
            self.patches - before.patches, self.written - before.written, self.lists - before.lists
        )


_NONE = Requests(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Resume:
    """What one kill has cost."""

    at: int
    """Objects that had been written."""
    read_again: int
    """How many of them the next process listed again: those after the saved position."""
    seconds: float
    """From the kill to the next write."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one process at one time."""

    process: int
    """How many were killed before it."""
    at: float
    resident: int
    proportional: int


@dataclass(slots=True)
class Turn:
    """What was seen of one migration so far."""

    title: str
    objects: int
    kills: int
    began: float = 0.0
    """When all API servers had seen the storage version (Settled)."""
    rewritten: float = 0.0
    ended: float = 0.0
    progress: list[tuple[float, int]] = field(default_factory=list)
    """Objects done in the first pass, by time."""
    resumes: list[Resume] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    peaks: dict[int, int] = field(default_factory=dict)
    """Bytes, of each process as in `Memory`."""
    sizes: list[Size] = field(default_factory=list)
    requests: "Requests | None" = None
    written_again: int | None = None
    """Objects that were written more than once."""

    @property
    def done(self) -> int:
        """Objects done."""
        return self.progress[-1][1] if self.progress else 0

    @property
    def rate(self) -> float | None:
        """Objects a second from Settled to Rewritten, with the restarts."""
        return self.objects / (self.rewritten - self.began) if self.rewritten else None

    @property
    def stopped(self) -> float:
        """Seconds without a write because of kills."""
        return sum(each.seconds for each in self.resumes)

    def parts(self) -> list[float]:
        """Objects a second in each tenth of the objects that has passed, with the restarts in it."""
        times = [self._time_of(number * self.objects / PARTS) for number in range(PARTS + 1)]
        known = [each for each in times if each is not None]
        return [self.objects / PARTS / (end - start) for start, end in pairwise(known)]

    def _time_of(self, objects: float) -> float | None:
        """When so many were done, between two looks."""
        before = (self.began, 0)
        for at, done in self.progress:
            if done >= objects and done > before[1]:
                share = (objects - before[1]) / (done - before[1])
                return before[0] + share * (at - before[0])
            before = (at, done)
        return None

    def last_process(self) -> list[Memory]:
        """What was sampled of the last one, without its first samples."""
        mine = [each for each in self.memory if each.process == len(self.resumes)]
        return mine[2:]

    def to_object(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "by": self.title,
            "objects": self.objects,
            "done": self.done,
            "seconds": self.rewritten - self.began if self.rewritten else None,
            "secondsWithVerify": self.ended - self.began if self.ended else None,
            "objectsPerSecondInEachTenth": self.parts(),
            "resumes": [
                {"at": each.at, "readAgain": each.read_again, "seconds": each.seconds}
                for each in self.resumes
            ],
            "memory": [
                {
                    "process": each.process,
                    "at": each.at - self.began,
                    "residentBytes": each.resident,
                    "proportionalBytes": each.proportional,
                }
                for each in self.memory
            ],
            "peakMemoryBytes": list(self.peaks.values()),
            "etcd": [{"fileBytes": each.file, "usedBytes": each.used} for each in self.sizes],
            "patches": self.requests and self.requests.patches,
            "refusedPatches": self.requests and self.requests.patches - self.requests.written,
            "lists": self.requests and self.requests.lists,
            "writtenAgain": self.written_again,
        }


@dataclass(slots=True)
class Following:
    """Follows one migration and fills in `turn`."""

    turn: Turn
    contestant: Contestant
    server: Server
    etcd: Etcd
    subject: Subject
    name: str
    dice: random.Random
    _sampled: float = field(default=0.0, init=False)
    _before: Requests = field(default=_NONE, init=False)

    def run(self) -> None:
        """Returns when it has succeeded. Raises WrongResult."""
        turn, contestant = self.turn, self.contestant
        self._before = self._requests()
        written = self.subject.writes()
        thresholds = [(number + 1) * turn.objects // (2 * turn.kills) for number in range(turn.kills)]
        try:
            contestant.begin(self.name)
            self._follow(thresholds)
            self._end()
        finally:
            contestant.end()
        turn.written_again = _sum(self.subject.writes()) - _sum(written) - turn.objects

    def _follow(self, thresholds: list[int]) -> None:
        news, last = time.monotonic(), None
        while not self.turn.ended:
            migration = self._look()
            now = time.monotonic()
            if migration is not None:
                if last != migration.metadata.resource_version:
                    news, last = now, migration.metadata.resource_version
                self._take(migration, now)
            if now - news > _NO_NEWS_SECONDS:
                raise WrongResult(f"{self.name} has not moved for {_NO_NEWS_SECONDS:.0f} s")
            if thresholds and thresholds[0] <= self.turn.done and not self.turn.rewritten:
                thresholds.pop(0)
                self._kill()
            elif not self.turn.ended:
                self._watch_over(now)
                time.sleep(_POLL_SECONDS)

    def _look(self) -> StorageMigration | None:
        path = f"/apis/{OUR_GROUP}/{VERSION}/{StorageMigration.plural}"
        found = self.server.send("GET", f"{path}?fieldSelector=metadata.name%3D{self.name}")["items"]
        return StorageMigration.model_validate(found[0]) if found else None

    def _take(self, migration: StorageMigration, now: float) -> None:
        turn, status = self.turn, migration.status
        true = _true(migration)
        succeeded = find_condition(status.conditions, "Succeeded")
        if succeeded is not None and succeeded.status == "False":
            raise WrongResult(f"migration {self.name} fails: {succeeded.message}")
        if "Settled" in true and not turn.began:
            turn.began = now
            turn.sizes.append(self.etcd.size())
        progress = status.progress
        done = progress.rewritten + progress.current + progress.gone
        if turn.began and not turn.rewritten and done > turn.done:
            turn.progress.append((now, done))
        if "Rewritten" in true and not turn.rewritten:
            turn.rewritten = now
        if "Succeeded" in true:
            turn.ended = now

    def _watch_over(self, now: float) -> None:
        """Sample the memory and say how far it is, every ten seconds."""
        memory = self._memory(now)
        if memory is None:
            process = self.contestant.process
            if process.exit_status:
                words = process.log.read_text(errors="replace")[-2000:]
                raise WrongResult(f"the {self.turn.title} has ended by itself: {words}")
            return  # the command has ended well: the next look shows it
        if now - self._sampled < _SAMPLE_SECONDS or not self.turn.began:
            return
        self._sampled = now
        self.turn.memory.append(memory)
        size = self.etcd.size()
        self.turn.sizes.append(size)
        tell(self._line(memory, size, now))

    def _memory(self, now: float) -> Memory | None:
        """None if the process has ended."""
        pid, number = self.contestant.process.pid, len(self.turn.resumes)
        try:
            self.turn.peaks[number] = peak_memory(pid)
            return Memory(number, now, resident_memory(pid), proportional_memory(pid))
        except (ProcessLookupError, FileNotFoundError):
            return None

    def _line(self, memory: Memory, size: Size, now: float) -> str:
        turn = self.turn
        back = next((each for each in turn.progress if now - each[0] < 30), None)
        rate = (turn.done - back[1]) / (now - back[0]) if back and now > back[0] else 0.0
        left = f", {format_duration((turn.objects - turn.done) / rate)} left" if rate else ""
        phase = f"{turn.done:,} of {turn.objects:,}, {rate:.0f}/s{left}"
        return (
            f"  {turn.title}: {'second pass' if turn.rewritten else phase}; "
            f"{memory.resident / 2**20:.0f} MiB; "
            f"etcd {size.used / 2**30:.2f} of {size.file / 2**30:.2f} GiB; "
            f"killed {len(turn.resumes)} of {turn.kills} times"
        )

    def _kill(self) -> None:
        time.sleep(self.dice.uniform(0.0, _LATER_SECONDS))
        if self._memory(time.monotonic()) is None:
            return
        self.contestant.kill()
        killed = time.monotonic()
        requests = self._still()
        done = min(requests.written, self.turn.objects)
        migration = self._look()
        sweep = migration.status.sweep if migration is not None else None
        saved = sweep.scanned if sweep is not None and sweep.type == "Rewrite" else done
        self.contestant.resume()
        while self._requests().written == requests.written:
            if time.monotonic() - killed > _NO_NEWS_SECONDS:
                raise WrongResult(f"after a kill, the {self.turn.title} does not write again")
            migration = self._look()
            if migration is not None and "Rewritten" in _true(migration):
                break  # it was the last page
            time.sleep(_POLL_SECONDS / 2)
        seconds = time.monotonic() - killed
        self.turn.resumes.append(Resume(done, max(0, done - saved), seconds))
        resume = self.turn.resumes[-1]
        tell(
            f"  {self.turn.title}: killed at {done:,}; {resume.read_again:,} objects to list again; wrote "
            f"again after {seconds:.1f} s"
        )

    def _still(self) -> Requests:
        """The requests so far, when those that were on their way have been answered."""
        last = None
        while (now := self._requests()) != last:
            last = now
            time.sleep(_STILL_SECONDS)
        return now

    def _requests(self) -> Requests:
        """Those since the beginning."""
        metrics = self.server.raw("/metrics").decode()
        return Requests(
            counted(metrics, GROUP, PLURAL, "PATCH"),
            counted(metrics, GROUP, PLURAL, "PATCH", code="200"),
            counted(metrics, GROUP, PLURAL, "LIST"),
        ).since(self._before)

    def _end(self) -> None:
        turn = self.turn
        turn.sizes.append(self.etcd.size())
        turn.requests = self._requests()


def _true(migration: StorageMigration) -> set[str]:
    return {each.type for each in migration.status.conditions if each.status == "True"}


def _sum(writes: Counter[int]) -> int:
    return sum(times * keys for times, keys in writes.items())


def least_lists(objects: int) -> int:
    """The pages of both passes, and the request for the separator."""
    return 2 * -(-objects // PAGE) + 1
