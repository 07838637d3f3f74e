"""Updates that are tried on composites, or not seen by the composer yet: no reader takes one for done."""

import threading

import pytest

from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import Author, Definition
from tests.cluster.harness import eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy
from tests.unit.core.composition.documents import SPEC, schema, version

FIRST_PAGES = r"\?limit=(50|12|3|1)$"
"""Of the composites, for a rehearsal, which requests fewer if the API server fails."""
WHOLE = "^application/json$"
"""What a rehearsal accepts. Whoever counts the composites needs only their metadata."""


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer behind the proxy."""
    return proxied_author


async def works(observer: Observer, thing: Definition) -> None:
    """Waits until the definition is as it should be."""
    await observer.sees(thing, "Ready", "True", "WatchingCompositeResource", judged="Current")


async def test_a_definition_that_the_composer_has_not_seen(
    author: Author, observer: Observer, proxy: FaultProxy, group: str
) -> None:
    thing = Definition(group, "thing")
    held = threading.Event()
    # Also what the composer sends again because it has no answer.
    proxy.faults.append(Fault("GET", rf"^{thing.crd}$", held=held))
    try:
        await author.apply(thing)
        await observer.is_behind(thing)
        held.set()
        await works(observer, thing)
        held = threading.Event()
        proxy.faults[:] = [Fault("GET", rf"^{thing.crd}$", held=held)]
        await author.apply(thing, "more")
        await observer.is_behind(thing)
    finally:
        held.set()
    await works(observer, thing)


async def test_an_update_while_it_is_tried(
    author: Author, observer: Observer, proxy: FaultProxy, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    before = await author.get(thing.crd)
    held = threading.Event()
    page = rf"/{thing.plural}{FIRST_PAGES}"
    proxy.faults.append(Fault("GET", page, held=held, accept=WHOLE))

    async def apply(*engines: str) -> None:
        fewer = {"properties": {**SPEC["properties"], "engine": {"type": "string", "enum": [*engines]}}}
        await author.apply(thing, versions=[version(of=schema({**SPEC, **fewer}))])

    try:
        await apply("Postgres")
        said = "The change is tried on 1 composite."
        seen = await observer.sees(thing, "Accepted", "Unknown", "Rehearsing", said, judged="InProgress")
        # On a busy machine, there may have been an attempt without an answer by now.
        assert seen.startswith(said)
        await observer.sees(thing, "Established", "True", "WatchingCompositeResource", judged="InProgress")
    finally:
        held.set()
    await observer.sees(thing, "Accepted", "False", "BreakingChanges", judged="Failed")

    # An attempt that fails is said, with what anybody can do meanwhile.
    proxy.faults[:] = [Fault("GET", page, 503, accept=WHOLE)]
    await apply("Postgres", "Other")
    await observer.sees(
        thing,
        "Accepted",
        "Unknown",
        "Rehearsing",
        "The change is tried on 1 composite. The attempt at ",
        " UTC failed: a fault of the test. The next one begins after ",
        "Or set spec.breakingChanges to Allow.",
        judged="InProgress",
    )
    assert await author.get(thing.crd) == before
    proxy.faults.clear()
    await observer.sees(thing, "Accepted", "False", "BreakingChanges", "(default/a)", judged="Failed")
    await author.delete(f"{thing.objects}/a")
    await works(observer, thing)


async def test_a_version_is_added_and_stored_in_one_step(author: Author, group: str) -> None:
    """Although each composite has the default of a field, which both versions have."""
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    await author.make_composites(thing, ["a", "b"])

    async def counted() -> bool:
        return bool((await author.get(thing.path))["status"]["composites"] == 2)

    await eventually(counted)
    both = [version("v1", schema(SPEC), referenceable=False), version("v2", schema(SPEC))]
    await author.put(thing.path, thing.document(versions=both))
    await author.ready(thing)
    crd = await author.get(thing.crd)
    assert [each["name"] for each in crd["spec"]["versions"] if each["storage"]] == ["v2"]
