"""Composites whose requests meet faults, each its own, and what has to be true of all all the time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from tests.cluster.composition.authoring import condition
from tests.cluster.composition.composing import CONFIG_MAPS, FINALIZER, Composing, config_map
from tests.cluster.harness.faultproxy import Fault, FaultProxy
from tests.cluster.harness.waiting import TIMEOUT_SECONDS

Json = Any
COMPOSITE_LABEL: Final = "crdkeeper.dev/composite-uid"
TIMES: Final = 2
"""How often each fault happens in each phase of a life."""
FAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "409": {"code": 409},
    "429": {"code": 429, "retry_after": 1},
    "500": {"code": 500},
    "503": {"code": 503},
    "lost": {"after": True},
    "cut": {},
}
"""An answer is lost after the request was carried out, or the connection is cut before."""
REQUESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "read": ("GET", r"/things/{name}([?]|$)"),
    "status": ("PATCH", r"/things/{name}/status[?]"),
    "finalizer": ("PATCH", r"/things/{name}[?]"),
    "look": ("GET", r"/configmaps/{name}-[ab]([?]|$)"),
    "apply-a": ("PATCH", r"/configmaps/{name}-a[?]"),
    "apply-b": ("PATCH", r"/configmaps/{name}-b[?]"),
    "delete": ("DELETE", r"/configmaps/{name}-[ab]([?]|$)"),
}
"""What a composer asks for one composite: method, and pattern of the path."""
RESOURCES: Final = (
    config_map("a", engine="${composite.spec.engine}"),
    config_map("b", engine="${composite.spec.engine}", of="${a.metadata.name}"),
)


class Lives:
    """Composites with an object a, and b that refers to it: created, changed, put back and deleted."""

    requests = REQUESTS
    parts: Sequence[str] = ("a", "b")
    """The first one is there as long as any other is."""

    def __init__(self, composing: Composing, proxy: FaultProxy, names: list[str]) -> None:
        self.composing = composing
        self.names = names
        self._proxy = proxy
        self._uids: dict[str, str] = {}

    async def prepare(self) -> None:
        """Create them, as ones that the composer leaves alone for now."""
        for name in self.names:
            await self.make(name, {"crdkeeper.dev/paused": "true"})

    async def make(self, name: str, annotations: Json) -> None:
        """Create one of them."""
        made = await self.composing.create(name, {"annotations": annotations})
        self._uids[name] = made["metadata"]["uid"]

    def meet(self, times: int = TIMES, **happens: Any) -> list[Fault]:
        """Let the requests of each composite that is named after a kind of request and a fault meet that.

        `happens` is what happens to requests if the name has no known fault.
        """
        self._proxy.faults.clear()
        for name in self.names:
            request, _, fault = name.partition(".")
            if request in self.requests:
                method, *patterns = self.requests[request]
                of, body = (each.format(name=name.replace(".", "[.]")) for each in (*patterns, "")[:2])
                self._proxy.faults.append(
                    Fault(method, of, body=body, times=times, **FAULTS.get(fault, happens))
                )
        return list(self._proxy.faults)

    async def set(self, engine: str) -> None:
        """Change them all; they are not paused any more."""
        wanted = {"metadata": {"annotations": {"crdkeeper.dev/paused": None}}, "spec": {"engine": engine}}
        for name in self.names:
            await self.composing.patch(self.composing.path(name), wanted)

    async def ready(self, name: str, seconds: float = TIMEOUT_SECONDS) -> None:
        """Return once a composite says that all is as it is wanted now."""
        wanted = (await self.composing.author.get(self.composing.path(name)))["spec"]["engine"]
        await self.composing.says(name, "Ready", "True", "Available", seconds=seconds)
        assert await self.composing.data(f"{name}-b") == {"engine": wanted, "of": f"{name}-a"}

    async def all_ready(self, seconds: float = TIMEOUT_SECONDS) -> None:
        """Return once all are."""
        await asyncio.gather(*(self.ready(each, seconds) for each in self.names))

    async def turn(self, engine: str) -> None:
        """Change them all, and return once all are as it is wanted then."""
        await self.set(engine)
        await self.all_ready()

    async def drift(self) -> None:
        """Somebody changes an object of each; return once all are put back."""
        for name in self.names:
            await self.composing.patch(f"{CONFIG_MAPS}/{name}-b", {"data": {"engine": "theirs"}})
        for name in self.names:
            await self.composing.has(f"{name}-b", engine="MySQL", of=f"{name}-a")

    async def delete(self) -> None:
        """Delete all, and return once they are gone; nothing of them is left."""
        for name in self.names:
            await self.composing.delete(name)
        for name in self.names:
            await self.composing.author.gone(self.composing.path(name))
        assert not await self._objects()

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """In the block, look all the time whether what is said and done is in order."""
        looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        if not looking.cancelled() and (error := looking.exception()) is not None:
            raise error

    async def _look(self) -> None:
        while True:
            before = await self._objects()
            items = (await self.composing.author.get(self.composing.definition.objects))["items"]
            after = await self._objects()
            for each in items:
                self._check(each, before, after)
            await asyncio.sleep(0.2)

    def _check(self, composite: Json, before: Mapping[str, Json], after: Mapping[str, Json]) -> None:
        metadata, status = composite["metadata"], composite.get("status") or {}
        name = metadata["name"]
        first, *later = (f"{name}-{each}" for each in self.parts)
        both = [each for each in (first, *later) if each in before and each in after]
        listed = (status.get("crdkeeper") or {}).get("resources") or ()
        assert {each["object"]["name"] for each in listed} >= set(both), f"{name}: not in the inventory"
        assert not both or FINALIZER in metadata["finalizers"], f"{name} is not held"
        for found in (before, after):
            assert first in found or not found.keys() & set(later), f"{name}: out of order"
        says = [condition(composite, each)[:2] for each in ("Ready", "Synced")]
        current = status.get("observedGeneration") == metadata["generation"]
        if current and says == [("True", "Available"), ("True", "ReconcileSuccess")]:
            assert "deletionTimestamp" not in metadata, f"{name} says that it is ready in its deletion"
            found = after.get(f"{name}-b") or before[f"{name}-b"]
            assert found["engine"] in (composite["spec"]["engine"], "theirs", "MySQL"), f"{name} is not ready"

    async def _objects(self) -> dict[str, Json]:
        """The data of all objects of the composites, by name."""
        items = (await self.composing.author.get(CONFIG_MAPS))["items"]
        labels = ((each, (each["metadata"].get("labels") or {}).get(COMPOSITE_LABEL)) for each in items)
        return {each["metadata"]["name"]: each["data"] for each, of in labels if of in self._uids.values()}


async def live(lives: Lives) -> list[str]:
    """Lead all through their lives; the faults happen in each phase. Returns those that never did."""
    await lives.prepare()
    async with lives.watched():
        steps = partial(lives.turn, "Postgres"), partial(lives.turn, "MySQL"), lives.drift, lives.delete
        return await met_in_each(lives, *steps)


async def met_in_each(lives: Lives, *steps: Callable[[], Awaitable[None]]) -> list[str]:
    """Take the steps; the faults happen in each. Returns those that never did."""
    met: dict[tuple[str, int, bool], int] = {}
    for step in steps:
        faults = lives.meet()
        await step()
        for each in faults:
            key = f"{each.method} {each.pattern} {each.body}", each.code, each.after
            met[key] = met.get(key, 0) + each.met
    return [" ".join(map(str, key)) for key, number in met.items() if not number]
