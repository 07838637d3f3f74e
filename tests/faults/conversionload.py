"""Constant reads and writes of CronTabs at all versions, each of which needs the conversion webhook.

It runs on an event loop in a separate thread, so that tests can start and stop processes meanwhile.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import orjson

from crdkeeper.cluster.transport.client import MERGE_PATCH, Client, Unreachable

_T = TypeVar("_T")
SCHEDULE: Final = {"v1": "schedule", "v1beta1": "cronSpec", "v1alpha1": "cronSpec"}
VERSIONS: Final = tuple(SCHEDULE)
_OBJECTS: Final = 3
_PAUSE_SECONDS: Final = 0.004
_MOST_TRIES: Final = 60


class Background:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self._cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _cancel_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def run(self, work: Coroutine[Any, Any, _T], seconds: float = 120.0) -> _T:
        """The result of a coroutine on that loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(seconds)

    def until(self, holds: Callable[[], bool], seconds: float = 120.0) -> None:
        """Return once that is true."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "it never came to be"
            time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that was not answered correctly."""

    time: float
    what: str
    message: str


@dataclass
class Load:
    """Some clients, each with its own objects, whose content it knows."""

    client: Client
    group: str
    clients: int = 6
    seed: int = 1
    reads: float = 0.45
    """The share of reads of one object; most of the other requests are writes."""
    answered: int = 0
    repeated: int = 0
    """Requests that the API server asked to repeat."""
    failures: list[Failure] = field(default_factory=list)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        self._tasks = [asyncio.create_task(self._work(number)) for number in range(self.clients)]

    async def stop(self) -> None:
        """End after the requests in progress. Raises a client's exception."""
        tasks, self._tasks = self._tasks, []
        await asyncio.gather(*tasks)

    def path(self, version: str, name: str = "") -> str:
        base = f"/apis/{self.group}/{version}/namespaces/default/crontabs"
        return f"{base}/{name}" if name else base

    async def _work(self, number: int) -> None:
        random = Random(self.seed * 1000 + number)
        known: dict[str, str] = {}
        while self._tasks:
            name = f"load-{number}-{random.randrange(_OBJECTS)}"
            version = random.choice(VERSIONS)
            value = f"{random.randrange(10**9)} * * * *"
            spec = {SCHEDULE[version]: value}
            if name not in known:
                body = {
                    "apiVersion": f"{self.group}/{version}",
                    "kind": "CronTab",
                    "metadata": {"name": name},
                    "spec": spec,
                }
                if await self._send("POST", self.path(version), body) is not None:
                    known[name] = value
                elif await self._exists(name):
                    known[name] = ""
                continue
            others = (random.random() - self.reads) / (1 - self.reads)
            if others < 0:
                found = await self._send("GET", self.path(version, name))
                self._compare(found, version, known, name)
            elif others < 0.73:
                found = await self._send("PATCH", self.path(version, name), {"spec": spec})
                # The effect of a write without an answer is unknown.
                known[name] = "" if found is None else value
                self._compare(found, version, known, name)
            elif others < 0.91:
                found = await self._send("GET", f"{self.path(version)}?limit=100")
                for each in (found or {}).get("items", ()):
                    if each["metadata"]["name"] in known:
                        self._compare(each, version, known, each["metadata"]["name"])
            else:
                await self._send("DELETE", self.path(version, name))
                if not await self._exists(name):
                    del known[name]
            await asyncio.sleep(_PAUSE_SECONDS)

    def _compare(self, found: dict[str, Any] | None, version: str, known: dict[str, str], name: str) -> None:
        if found is not None and known[name]:
            assert found["spec"][SCHEDULE[version]] == known[name], (name, version)

    async def _exists(self, name: str) -> bool:
        """Whether it exists. A preceding request may have failed, or only its answer."""
        while True:
            answer = await self.client.send("GET", self.path("v1", name))
            if answer.code in (200, 404):
                return answer.code == 200
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _send(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """The answer; None for a failure, which is recorded.

        Like kubectl and everything built on client-go, it retries when the server says so. The API server
        does so after each change of a CRD: it rebuilds the storage, and requests that were slow to start get
        503 "apiserver is shutting down" (crdHandler.tearDown). Failed conversions never say so.
        """
        began = time.monotonic()
        content = None if body is None else orjson.dumps(body)
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        for _ in range(_MOST_TRIES):
            try:
                answer = await self.client.send(method, path, content=content, content_type=kind)
            except Unreachable as error:
                self.failures.append(Failure(began, f"{method} {path}", str(error)))
                return None
            if answer.code < 400:
                self.answered += 1
                return answer.json()
            said = f"{answer.code}: {answer.json().get('message')}"
            if answer.retry_after is None or "conversion webhook" in said:
                break
            self.repeated += 1
            await asyncio.sleep(answer.retry_after)
        self.failures.append(Failure(began, f"{method} {path}", said))
        return None
