"""Many composites, and kill -9 of the composer in each kind of deletion: what is kept, and what goes."""

import itertools
import os
import threading
import time
from functools import partial

import pytest

from tests.benchmark.meter import peak_memory
from tests.cluster.composition.authoring import OWNER, Author, Definition
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy

COMPOSITES = int(os.environ.get("CRDKEEPER_DELETED_COMPOSITES", "600"))
KILLS = 3
"""While they are deleted."""


@pytest.mark.timeout(300 + COMPOSITES // 10)
async def test_many_composites(
    proxied_author: Author, proxied: Operator, proxy: FaultProxy, group: str
) -> None:
    author, thing = proxied_author, Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    names = [f"a{each:05}" for each in range(COMPOSITES)]
    began = time.monotonic()
    await author.make_composites(thing, names)
    print(f"{COMPOSITES} composites made in {time.monotonic() - began:.1f} s")
    most, log = 0, proxied.log_size()

    def kill() -> None:
        nonlocal most
        most = max(most, peak_memory(proxied.pid))
        proxied.kill()
        proxied.start()

    # Protect: whatever becomes of the composer, all of them stay.
    await author.delete(thing.path)
    kill()
    await author.says(thing, "Established", f"{COMPOSITES:,} composites")
    kill()
    assert await author.names(thing) == names

    # Orphan: the definition goes, and leaves all of them to the next one.
    began = time.monotonic()
    orphaned = (await author.get(thing.crd))["metadata"]["uid"]
    await author.apply(thing, deletion="Orphan")
    kill()
    await author.gone(thing.path)
    print(f"Orphan took {time.monotonic() - began:.1f} s with a kill")
    left = await author.get(thing.crd)
    assert left["metadata"]["uid"] == orphaned and OWNER not in (left["metadata"].get("annotations") or {})
    assert await author.names(thing) == names

    began = time.monotonic()
    await author.apply(thing, deletion="Cascade", metadata={"annotations": {"crdkeeper.dev/adopt": "true"}})
    kill()
    await author.ready(thing)

    async def counted() -> bool:
        return bool((await author.get(thing.path))["status"]["composites"] == COMPOSITES)

    await eventually(counted)
    assert (await author.get(thing.crd))["metadata"]["uid"] == orphaned
    print(f"adopted after {time.monotonic() - began:.1f} s with a kill")

    # Cascade: killed with requests under way, it goes on until all are gone.
    began = time.monotonic()
    for number in range(KILLS):
        others = some_of(thing, COMPOSITES // (KILLS + 1))
        proxy.faults.append(others)
        if number:
            proxied.start()
        else:
            await author.delete(thing.path)
        try:
            await eventually(partial(is_met, others))
            assert await author.names(thing)
            most = max(most, peak_memory(proxied.pid))
            proxied.kill()
        finally:
            proxy.faults.clear()
            assert others.held is not None
            others.held.set()
    proxied.start()
    await author.gone(thing.path, seconds=120)
    await author.gone(thing.crd)
    most = max(most, peak_memory(proxied.pid))
    print(f"Cascade of {COMPOSITES} took {time.monotonic() - began:.1f} s, {KILLS} kills; {most >> 20} MiB")
    assert "Traceback" not in proxied.log_since(log)


def some_of(thing: Definition, number: int) -> Fault:
    """So many composites are deleted; the requests for others are held."""
    arrived = itertools.count()
    path = rf"/{thing.plural}/"
    return Fault("DELETE", path, held=threading.Event(), chance=lambda: next(arrived) >= number)


async def is_met(held: Fault) -> bool:
    """Whether all requests that the composer sends at once are held."""
    return held.met >= 8
