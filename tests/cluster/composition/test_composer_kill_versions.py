"""kill -9 of the composer at random instants, while composites move from one version to the next.

The operator and its webhook run beside it: the composer only decides what they work on.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable

import orjson
import pytest

from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH
from crdkeeper.core.composition.acceptance import accept
from tests.cluster.composition.authoring import (
    ACCOUNT,
    Author,
    Definition,
    Json,
    author_of,
    condition,
    opted_in,
    spec_with,
)
from tests.cluster.harness import Operator, eventually
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed
from tests.unit.core.composition.documents import schema, version

KILLS = int(os.environ.get("CRDKEEPER_KILLS", "6"))
STEPS = ("add", "move", "deprecate", "unserve", "drop")
OURS = "/apis/crdkeeper.dev/v1alpha1"
QUICK = {"settleSeconds": 0, "apiServerLeases": "Ignore"}


def versions(*of: str, stored: str, **old: Json) -> list[Json]:
    """These versions, of which v2 has a field more; `old` is what else is said of v1."""
    known = {
        "v1": version("v1", schema(spec_with()), referenceable=stored == "v1", **old),
        "v2": version("v2", schema(spec_with("size")), referenceable=stored == "v2"),
    }
    return [known[each] for each in of]


class Users:
    """They write composites at both versions, and know what must be read of each."""

    def __init__(self, author: Author, thing: Definition) -> None:
        self._author = author
        self.thing = thing
        self.written: dict[str, str | None] = {}
        """The size of each composite."""

    def _objects(self, at: str) -> str:
        return self.thing.objects.replace("/v1/", f"/{at}/")

    async def write(self, at: str) -> None:
        """Create a composite, if the version is served."""
        name = f"a{len(self.written)}"
        size = f"size of {name}" if at == "v2" else None
        value = self.thing.composite(name)
        value["apiVersion"] = f"{self.thing.group}/{at}"
        value["spec"] |= {"size": size} if size else {}
        path = f"{self._objects(at)}/{name}?fieldManager=user"
        answer = await self._author.client.send(
            "PATCH", path, content=orjson.dumps(value), content_type=APPLY_PATCH
        )
        # API servers begin to serve a version with 429.
        assert answer.code in (201, 404, 429), answer.content
        if answer.code == 201:
            self.written[name] = size

    async def read(self, at: str) -> None:
        """Checks all composites, if the version is served."""
        found = await self._author.get(f"{self._objects(at)}?limit=1000")
        if found is not None:
            sizes = {each["metadata"]["name"]: each["spec"].get("size") for each in found["items"]}
            assert sizes == {name: size if at == "v2" else None for name, size in self.written.items()}


class Killed:
    """The composer, which is killed at each step of its users, at some more often."""

    def __init__(self, operator: Operator, users: Users, dice: random.Random) -> None:
        self._operator = operator
        self._users = users
        self._dice = dice
        self.kills = Counter([*STEPS, *(dice.choice(STEPS) for _ in range(KILLS))][:KILLS])

    async def meanwhile(self, step: str, *writes: str) -> None:
        """Kill it so many times, and start it again; users write at these versions."""
        for number in range(self.kills[step]):
            if number and self._dice.random() < 0.5:
                await asyncio.to_thread(self._operator.wait_ready)
            await asyncio.sleep(self._dice.uniform(0.0, 0.7))
            self._operator.kill()
            await self._users.write(self._dice.choice(writes))
            self._operator.start(wait=False)
            for each in ("v1", "v2"):
                await self._users.read(each)


async def migrations(author: Author, thing: Definition) -> list[str]:
    """The paths of the definition's StorageMigrations."""
    uid = (await author.get(thing.path))["metadata"]["uid"]
    found = (await author.get(f"{OURS}/storagemigrations"))["items"]
    ours = [each for each in found if each["metadata"].get("ownerReferences", [{}])[0].get("uid") == uid]
    return [f"{OURS}/storagemigrations/{each['metadata']['name']}" for each in ours]


async def hasten(author: Author, thing: Definition) -> None:
    """Let the migration not wait for other API servers: there are none."""

    async def made() -> list[str]:
        return await migrations(author, thing)

    (path,) = await eventually(made)
    await author.client.request("PATCH", path, {"spec": QUICK}, content_type=MERGE_PATCH)


async def stored(author: Author, thing: Definition) -> None:
    """Returns once all composites are stored in the referenceable version."""

    async def look() -> bool:
        found = await author.get(thing.path)
        return condition(found, "StorageCurrent")[:2] == ("True", "Current")

    await eventually(look)


def conversion(thing: Definition) -> Json:
    """The rules for the field that only v2 has."""
    rules = [{"hub": "spec.size", "aside": True}]
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "VersionConversion",
        "metadata": {"name": thing.name},
        "spec": {
            "resource": {"group": thing.group, "resource": thing.plural},
            "hub": "v2",
            "spokes": [{"version": "v1", "rules": rules}],
        },
    }


async def as_the_definition_says(author: Author, thing: Definition, **spec: Json) -> None:
    """Checks that to apply the CRD of the definition would change nothing."""
    made = accept(thing.document(**spec)).crd
    assert made is not None
    live = await author.get(thing.crd)
    path = f"{thing.crd}?fieldManager={FIELD_MANAGER}&force=true&dryRun=All"
    applied = await author.client.request("PATCH", path, made, content_type=APPLY_PATCH)
    assert applied["spec"] == live["spec"]
    assert [each["name"] for each in live["spec"]["versions"]] == ["v2"]
    assert live["status"]["storedVersions"] == ["v2"]


async def move_to_v2(author: Author, users: Users, killed: Killed) -> None:
    """From a definition with one version to one with the next."""
    thing = users.thing

    async def apply(*of: str, stored: str, **old: Json) -> None:
        await author.apply(thing, versions=versions(*of, stored=stored, **old), deletion="Cascade")

    await author.put(f"{OURS}/versionconversions/{thing.name}", conversion(thing))
    await apply("v1", "v2", stored="v1")
    await killed.meanwhile("add", "v1", "v2")
    await author.ready(thing)
    await users.write("v2")
    await users.read("v2")

    await apply("v1", "v2", stored="v2")
    hastened = asyncio.create_task(hasten(author, thing))
    # Whoever writes at v1 from now on would have to migrate once more.
    await killed.meanwhile("move", "v2")
    await hastened
    await author.ready(thing)
    await stored(author, thing)

    for step, old in (("deprecate", {}), ("unserve", {"served": False})):
        await apply("v1", "v2", stored="v2", deprecated=True, **old)
        await killed.meanwhile(step, "v2")
        await author.ready(thing)
    await apply("v2", stored="v2")
    await killed.meanwhile("drop", "v2")
    await author.ready(thing)
    await stored(author, thing)


@pytest.mark.timeout(300 + 10 * KILLS)
async def test_versions_that_come_and_go_under_a_composer_that_is_killed(
    plane: Cluster, composer: Operator, keeper: Operator, start_operator: Callable[..., Operator], group: str
) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS}")
    dice = random.Random(seed)
    composer.stop()
    operator = start_operator(plane, identity="composer", account=ACCOUNT, command=("compose", "run"))
    thing = Definition(group, "thing")
    async with author_of(plane, group) as author, opted_in(author, thing, "reader", "rewriter", "converter"):
        users = Users(author, thing)
        killed = Killed(operator, users, dice)
        await author.apply(thing, versions=versions("v1", stored="v1"), deletion="Cascade")
        await author.ready(thing)
        for _ in range(10):
            await users.write("v1")
        await move_to_v2(author, users, killed)

        print(f"kills: {dict(killed.kills)}; {len(users.written)} composites")
        await users.read("v2")
        assert dict(plane.etcd.stored_versions(group, thing.plural)) == {f"{group}/v2": len(users.written)}
        await as_the_definition_says(author, thing, versions=versions("v2", stored="v2"), deletion="Cascade")
        assert len(await migrations(author, thing)) == 1
        assert "Traceback" not in operator.log_since()

        await author.delete(thing.path)
        await author.gone(thing.crd)
        rules = f"{OURS}/versionconversions/{thing.name}"

        async def unused() -> bool:
            return condition(await author.get(rules), "InUse")[0] == "False"

        await eventually(unused)
        await author.delete(rules)
        await author.gone(rules)
    operator.stop()
    composer.start()
