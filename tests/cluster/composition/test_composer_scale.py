"""Many definitions, and hostile ones: the composer keeps its Lease and its memory, and nobody waits."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import orjson
import pytest
import yaml

from crdkeeper.cluster.transport.client import APPLY_PATCH
from tests.benchmark.meter import cpu_seconds, peak_memory
from tests.cluster.composition.authoring import (
    Author,
    Definition,
    Json,
    author_of,
    condition,
    spec_with,
)
from tests.cluster.harness import Operator, each_of, eventually
from tests.cluster.harness.installation import MANIFESTS
from tests.cluster.harness.operator import SHIPPED_LEASE
from tests.controlplane.cluster import Cluster
from tests.unit.core.composition.documents import SPEC, schema, version

DEFINITIONS = 100
LONGEST_PAUSE = 5.0
"""CPU seconds of the event loop; the Lease must be renewed within ten."""


@dataclass
class Pauses:
    """What a process did until it answered its liveness probe, in CPU seconds: others may be at work, too."""

    longest: float = 0.0
    probes: int = 0


@contextmanager
def pauses(operator: Operator) -> Iterator[Pauses]:
    """Measures until the end of the block."""
    found, ended = Pauses(), threading.Event()

    def probe() -> None:
        while not ended.is_set():
            began = cpu_seconds(operator.pid)
            operator.probe("/healthz")
            found.longest = max(found.longest, cpu_seconds(operator.pid) - began)
            found.probes += 1
            time.sleep(0.02)

    thread = threading.Thread(target=probe, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def check(found: Pauses, composer: Operator) -> None:
    """The composer has not been away for long, and has never taken more memory than its manifest gives it."""
    most = peak_memory(composer.pid)
    print(f"longest pause {found.longest:.2f} s of {found.probes} probes; {most >> 20} MiB")
    assert found.longest < LONGEST_PAUSE
    deployments = yaml.safe_load_all((MANIFESTS / "composer" / "deployment.yaml").read_text())
    (container,) = next(each for each in deployments if each["kind"] == "Deployment")["spec"]["template"][
        "spec"
    ]["containers"]
    limit = container["resources"]["limits"]["memory"]
    assert limit.endswith("Mi")
    assert most < int(limit[:-2]) << 20


@pytest.fixture(scope="module")
def lease() -> Mapping[str, str]:
    """It is renewed in time however much there is to do: with the times of the manifests."""
    return SHIPPED_LEASE


@pytest.fixture
async def author(composer: Operator, plane: Cluster, group: str) -> AsyncIterator[Author]:
    async with author_of(plane, group) as author:
        yield author
    assert composer.log_since().count("Lost leadership") == 0


async def test_many_definitions_at_once(author: Author, composer: Operator, group: str) -> None:
    """At the same time some are created, others are changed, and others are deleted."""
    all_ = [Definition(group, f"thing{each}") for each in range(DEFINITIONS)]
    new, changed, unwanted = (all_[each::3] for each in range(3))
    broken = Definition(group, "broken")
    wrong = [version(of=schema({"type": "array"}))]
    pid, began = composer.pid, time.monotonic()
    with pauses(composer) as found:
        await author.apply(broken, versions=wrong)
        await each_of([*changed, *unwanted], author.apply)
        for each in [*changed, *unwanted]:
            await author.ready(each, seconds=120)
        print(f"{len(changed) + len(unwanted)} definitions ready after {time.monotonic() - began:.1f} s")
        await author.ready(broken, "False", "Invalid")

        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(each_of(new, author.apply))
            tasks.create_task(each_of(changed, lambda each: author.apply(each, "more", deletion="Cascade")))
            tasks.create_task(each_of(unwanted, lambda each: author.delete(each.path)))
        for each in [*new, *changed]:
            await author.ready(each, seconds=120)
        for each in unwanted:
            await author.gone(each.path, seconds=120)
            await author.gone(each.crd)
        print(f"all as wanted after {time.monotonic() - began:.1f} s")
        for each in changed:

            async def applied(each: Definition = each) -> bool:
                return await author.fields(each) == ["more"]

            await eventually(applied)
        assert all([await author.get(each.crd) for each in new])

        began = time.monotonic()
        await each_of([*new, *changed, broken], lambda each: author.delete(each.path))
        for each in [*new, *changed, broken]:
            await author.gone(each.path, seconds=120)
            await author.gone(each.crd)
        print(f"deleted after {time.monotonic() - began:.1f} s")
    assert composer.pid == pid
    check(found, composer)


def with_schema(definition: Definition, *spec_schemas: Json) -> Json:
    """The definition with a version for each of these schemas of spec."""
    value = definition.document()
    value["spec"]["versions"] = [
        version(f"v{number}", schema(each), referenceable=number == 1)
        for number, each in enumerate(spec_schemas, 1)
    ]
    return value


def large(fields: int, prefix: str = "field") -> Json:
    return spec_with(*(f"{prefix}{each}" for each in range(fields)))


def nested(definition: Definition, levels: int) -> bytes:
    """The definition with a schema of so many levels, more than most can read or write."""
    marked = {**SPEC, "properties": {**SPEC["properties"], "deep": {"type": "MARK"}}}
    inner = b'{"type":"object","properties":{"a":' * levels + b'{"type":"string"}' + b"}}" * levels
    return orjson.dumps(with_schema(definition, marked)).replace(b'{"type":"MARK"}', inner)


HOSTILE: dict[str, Callable[[Definition], Json | bytes]] = {
    "2,000 fields": lambda each: with_schema(each, large(2_000)),
    "64 versions": lambda each: with_schema(each, *(large(350, f"v{number}x") for number in range(64))),
    "deep": lambda each: nested(each, 50),
    "deeper": lambda each: nested(each, 2_000),
    "patterns": lambda each: with_schema(
        each,
        {
            **SPEC,
            "properties": {
                **SPEC["properties"],
                **{
                    f"p{number}": {"type": "string", "pattern": "^(((a*)*)*)*$", "default": "a" * 200 + "!"}
                    for number in range(500)
                },
            },
        },
    ),
    "rules": lambda each: with_schema(
        each,
        {
            **SPEC,
            "x-kubernetes-validations": [
                {"rule": " && ".join([f"self.engine != '{number}'"] * 40), "message": "no"}
                for number in range(300)
            ],
        },
    ),
    "escapes": lambda each: with_schema(
        each,
        {
            **SPEC,
            "properties": {**SPEC["properties"], "\x1b]0;owned\x07\u202e": {"type": "\x1b[31mno"}},
        },
    ),
}


async def test_hostile_definitions_delay_nobody(author: Author, composer: Operator, group: str) -> None:
    hostile = {name: Definition(group, f"hostile{number}") for number, name in enumerate(HOSTILE)}
    log = composer.log_size()
    with pauses(composer) as found:
        for name, each in hostile.items():
            value = HOSTILE[name](each)
            content = value if isinstance(value, bytes) else orjson.dumps(value)
            answer = await author.client.send(
                "PATCH", f"{each.path}?fieldManager=user", content=content, content_type=APPLY_PATCH
            )
            assert answer.code < 400, (name, answer.content[:500])
        began = time.monotonic()
        well = Definition(group, "well")
        await author.apply(well)
        await author.ready(well)
        print(f"a good one was ready after {time.monotonic() - began:.1f} s")
        for name, each in hostile.items():
            began = time.monotonic()

            async def said(each: Definition = each) -> Json:
                now = await author.get(each.path)
                said = condition(now, "Ready")
                return said if said[0] in ("True", "False") else None

            print(f"{name}: {await eventually(said, seconds=120)}"[:300], f"{time.monotonic() - began:.1f} s")
    check(found, composer)
    await author.ready(hostile["2,000 fields"], seconds=120)
    assert len(await author.fields(hostile["2,000 fields"])) == 2_000
    for each in hostile.values():
        now = await author.get(each.path)
        for each_said in now["status"]["conditions"]:
            assert not set(each_said["message"]) & {"\x1b", "\x07", "\u202e"}
    written = composer.log_since(log)
    assert not set(written) & {"\x1b", "\x07", "\u202e"}
    assert "Traceback" not in written


async def test_two_thousand_fields(author: Author, composer: Operator, group: str) -> None:
    thing = Definition(group, "thing")
    value = with_schema(thing, large(2_000))
    value["spec"]["deletion"] = "Cascade"
    with pauses(composer) as found:
        began = time.monotonic()
        await author.put(thing.path, value)
        await author.ready(thing, seconds=120)
        assert len(await author.fields(thing)) == 2_000
        print(f"created after {time.monotonic() - began:.1f} s")
        await author.make_composites(thing, ["a", "b"])

        began = time.monotonic()
        root = value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        properties = root["properties"]["spec"]["properties"]
        properties["more"] = {"type": "string"}
        await author.put(thing.path, value)
        await author.ready(thing, seconds=120)
        assert len(await author.fields(thing)) == 2_001
        print(f"changed after {time.monotonic() - began:.1f} s")

        # A change that hurts is found among so many, and refused.
        began = time.monotonic()
        properties["field1999"] = {"type": "string", "minLength": 2}
        await author.put(thing.path, value)
        await author.ready(thing, "False", "BreakingChanges", seconds=120)
        await author.says(thing, "Accepted", "spec.field1999")
        assert len(await author.fields(thing)) == 2_001
        print(f"refused after {time.monotonic() - began:.1f} s")

        began = time.monotonic()
        value["spec"]["breakingChanges"] = "Allow"
        await author.put(thing.path, value)
        await author.ready(thing, seconds=120)
        crd = await author.get(thing.crd)
        live = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        assert live["field1999"] == properties["field1999"]
        print(f"allowed after {time.monotonic() - began:.1f} s")

        began = time.monotonic()
        await author.delete(thing.path)
        await author.gone(thing.path)
        await author.gone(thing.crd)
        print(f"deleted after {time.monotonic() - began:.1f} s")
    check(found, composer)
