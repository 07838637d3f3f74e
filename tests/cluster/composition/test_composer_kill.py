"""kill -9 of the composer at random instants, while definitions are made, changed, and deleted."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson
import pytest

from tests.cluster.composition.authoring import (
    ACCOUNT,
    FINALIZER,
    OWNER,
    Author,
    Definition,
    Json,
    author_of,
)
from tests.cluster.harness import Operator, eventually
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed

KILLS = int(os.environ.get("CRDKEEPER_KILLS", "12"))
DEFINITIONS = 6


@dataclass
class Expected:
    """What must come of a definition, after what its users did."""

    definition: Definition
    exists: bool = False
    deleted: bool = False
    policy: str = "Protect"
    fields: list[str] = field(default_factory=list)
    uid: str = ""
    kept: set[str] = field(default_factory=set)
    """Composites that nobody may lose."""
    orphan: str = ""
    """The uid of a CRD that a deletion left, or that somebody else made."""


class Users:
    """They do random things, and know what must come of it."""

    def __init__(self, author: Author, group: str, dice: random.Random) -> None:
        self._author = author
        self._dice = dice
        self._numbers = iter(range(1_000_000))
        self.all = [Expected(Definition(group, f"thing{each}")) for each in range(DEFINITIONS)]
        self.done: Counter[str] = Counter()

    async def act(self) -> None:
        """Do one thing."""
        each = self._dice.choice(self.all)
        if each.deleted:
            await self._look_whether_gone(each)
            return
        actions = (
            [self._make]
            if not each.exists
            else [self._change, self._change, self._add, self._edit, self._delete]
        )
        action = self._dice.choice(actions)
        await action(each)
        self.done[action.__name__.strip("_")] += 1

    async def _make(self, each: Expected) -> None:
        each.policy = self._dice.choice(["Protect", "Cascade", "Orphan"])
        if not each.orphan:
            # Whoever takes a CRD over keeps its fields: without them, it is a breaking change and refused.
            each.fields = []
        if each.policy == "Cascade":
            each.kept = set()
        made = await self._author.apply(
            each.definition, *each.fields, deletion=each.policy, **self._adopting(each)
        )
        each.exists, each.uid = True, made["metadata"]["uid"]

    def _adopting(self, each: Expected) -> Json:
        return {"metadata": {"annotations": {"crdkeeper.dev/adopt": "true"}}} if each.orphan else {}

    async def _change(self, each: Expected) -> None:
        each.fields = [*each.fields, f"field{next(self._numbers)}"]
        await self._author.apply(each.definition, *each.fields, deletion=each.policy, **self._adopting(each))

    async def _add(self, each: Expected) -> None:
        """A composite, if the API is served by now."""
        name = f"a{next(self._numbers)}"
        answer = await self._author.client.send(
            "POST",
            each.definition.objects,
            content=orjson.dumps(each.definition.composite(name)),
        )
        if answer.code < 400 and each.policy != "Cascade":
            each.kept.add(name)

    async def _edit(self, each: Expected) -> None:
        """Of the CRD, behind the definition's back."""
        await self._author.client.send(
            "PATCH",
            each.definition.crd,
            content=orjson.dumps({"spec": {"names": {"categories": ["other"]}}}),
            content_type="application/merge-patch+json",
        )

    async def _delete(self, each: Expected) -> None:
        await self._author.delete(each.definition.path)
        each.deleted = True

    async def _look_whether_gone(self, each: Expected) -> None:
        found = await self._author.get(each.definition.path)
        if found is None:
            await self._is_gone(each)

    async def _is_gone(self, each: Expected) -> None:
        """The definition is gone: what it leaves must be as its policy says."""
        crd = await self._author.get(each.definition.crd)
        uid = crd["metadata"]["uid"] if crd is not None else ""
        owned = crd is not None and OWNER in (crd["metadata"].get("annotations") or {})
        never_adopted = uid == each.orphan and not owned
        if each.policy == "Orphan" or (uid and never_adopted):
            names = await self._author.names(each.definition)
            assert each.kept <= set(names), f"{each.definition.name} lost composites"
            assert not owned
            each.orphan = uid
        else:
            assert not each.kept, f"{each.definition.name} went with composites that Protect keeps"
            # Its deletion ends by itself.
            await self._author.gone(each.definition.crd)
            each.orphan = ""
        each.exists = each.deleted = False

    async def settle(self, each: Expected) -> None:
        """Returns once what must come of it has come."""
        author, definition = self._author, each.definition
        if each.deleted:
            if each.policy == "Protect":
                assert each.kept <= set(await author.names(definition))
                for name in each.kept:
                    await author.delete(f"{definition.objects}/{name}")
                each.kept = set()
            await author.gone(definition.path)
            await self._is_gone(each)
        elif each.exists:
            found = await author.ready(definition)
            assert FINALIZER in found["metadata"]["finalizers"]

            async def applied() -> bool:
                # What somebody has edited last is put back without a change of the definition.
                names = ((await author.get(definition.crd)) or {"spec": {"names": {}}})["spec"]["names"]
                fields = await author.fields(definition)
                return fields == sorted(each.fields) and names.get("categories") == ["composite"]

            await eventually(applied)
            crd = await author.get(definition.crd)
            assert crd["metadata"]["annotations"][OWNER] == each.uid == found["metadata"]["uid"]
            assert each.kept <= set(await author.names(definition)), f"{definition.name} lost composites"


@pytest.mark.timeout(300 + 10 * KILLS)
async def test_kills_at_random_instants(
    plane: Cluster, composer: Operator, start_operator: Callable[..., Operator], group: str
) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS}")
    dice = random.Random(seed)
    composer.stop()
    async with author_of(plane, group) as author:
        users = Users(author, group, dice)
        foreign = Definition(group, "foreign")
        await _make_foreign(author, foreign)
        before = await author.get(foreign.crd)
        operator = start_operator(
            plane, identity="composer", account=ACCOUNT, command=("compose", "run"), wait=False
        )
        for _ in range(KILLS):
            for _ in range(dice.randrange(1, 6)):
                await users.act()
                await asyncio.sleep(dice.uniform(0.0, 0.3))
            # Half of the time it is still starting.
            if dice.random() < 0.5:
                operator.wait_ready()
                await users.act()
                await asyncio.sleep(dice.uniform(0.0, 0.2))
            operator.kill()
            operator.start(wait=False)
        operator.wait_ready()
        for each in users.all:
            await users.settle(each)
        await author.ready(foreign, "False", "NotOurs")
        assert await author.get(foreign.crd) == before
        print(f"{KILLS} kills; {dict(users.done)}")
        assert "Traceback" not in operator.log_since()
        operator.stop()
    composer.start()


async def _make_foreign(author: Author, foreign: Definition) -> None:
    """A CRD that somebody else has made, and a definition of its name."""
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": foreign.name},
        "spec": {
            "group": foreign.group,
            "scope": "Cluster",
            "names": {"kind": foreign.kind, "plural": foreign.plural, "singular": foreign.kind.lower()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    await author.put(foreign.crd, crd)

    async def established() -> bool:
        found = await author.get(foreign.crd)
        conditions = {each["type"]: each["status"] for each in found["status"].get("conditions") or ()}
        return conditions.get("Established") == "True" and bool(found["status"].get("storedVersions"))

    await eventually(established)
    await author.apply(foreign)
