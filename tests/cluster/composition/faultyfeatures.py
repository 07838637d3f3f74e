"""Composites with pins, and with resources that stay, are created again or are only read, under faults."""

import asyncio
from typing import Any, Final

from tests.cluster.composition.composing import CONFIG_MAPS, config_map, pinned, replaced
from tests.cluster.composition.faultycomposing import COMPOSITE_LABEL, Lives
from tests.cluster.harness.waiting import TIMEOUT_SECONDS

Json = Any
REQUESTS: Final = {
    "pin": ("PATCH", r"/things/{name}[?]", "compositionRevisionRef"),
    "external": ("GET", r"/configmaps/{name}-zones([?]|$)"),
    "try": ("POST", r"/configmaps[?]dryRun=All", r'"{name}-again"'),
    "recreate": ("DELETE", r"/configmaps/{name}-again([?]|$)"),
    "create": ("PATCH", r"/configmaps/{name}-again[?]"),
    "release": ("PATCH", r"/configmaps/{name}-kept[?]", r'"crdkeeper[.]dev/outlives": ?null'),
}
"""What only these features ask for."""
MANUAL: Final = {"compositionUpdatePolicy": "Manual"}


def resources(version: str) -> list[Json]:
    """A Composition; composites that stay at one revision have its version."""
    of_a = "${a.metadata.name}"
    return [
        {
            "name": "zones",
            "externalRef": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "${composite.metadata.name}-zones",
            },
        },
        config_map("a", zone="${zones.data.zone}", version=version),
        config_map("b", engine="${composite.spec.engine}", of=of_a),
        config_map("kept", of=of_a, Deletion="Orphan"),
        replaced("again", engine="${composite.spec.engine}", of=of_a),
    ]


class FeatureLives(Lives):
    """Composites with Manual of this Composition, each with a ConfigMap of somebody else that it reads.

    What stays is adopted again by a composite of the same name.
    """

    requests = REQUESTS
    parts = ("a", "b", "kept", "again")

    async def prepare(self) -> None:
        """Create what they read, then them."""
        await self.zone("north")
        await super().prepare()

    async def make(self, name: str, annotations: Json) -> None:
        """Create one."""
        await super().make(name, {**annotations, "crdkeeper.dev/adopt": "kept"})
        await self.composing.patch(self.composing.path(name), {"spec": {"crdkeeper": MANUAL}}, "user")

    async def zone(self, zone: str) -> None:
        """Somebody else writes what they read."""
        for name in self.names:
            value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-zones"}}
            await self.composing.author.put(f"{CONFIG_MAPS}/{name}-zones", {**value, "data": {"zone": zone}})

    async def move(self, zone: str) -> None:
        """The same, and return once all have it."""
        await self.zone(zone)
        for name in self.names:
            await self.composing.has(f"{name}-a", zone=zone, version="1")
        await self.all_ready()

    async def ready(self, name: str, seconds: float = TIMEOUT_SECONDS) -> None:
        """Return once a composite says that all is as it is wanted now; it stays at its revision."""
        await super().ready(name, seconds)
        engine = (await self.composing.data(f"{name}-b"))["engine"]
        assert await self.composing.data(f"{name}-again") == {"engine": engine, "of": f"{name}-a"}
        assert (await self.composing.data(f"{name}-a"))["version"] == "1"
        found = await self.composing.author.get(self.composing.path(name))
        assert pinned(found) == f"{self.composing.designer.name('main')}-1"

    async def kept(self) -> dict[str, tuple[str, str]]:
        """What stays: by name, its uid and the composite whose it is."""
        paths = [f"{CONFIG_MAPS}/{name}-kept" for name in self.names]
        found = [await self.composing.author.get(each) for each in paths]
        metadata = [each["metadata"] for each in found if each is not None]
        return {
            each["name"]: (each["uid"], (each.get("labels") or {}).get(COMPOSITE_LABEL, ""))
            for each in metadata
        }

    async def delete(self) -> None:
        """Delete all; what stays is nobody's then."""
        before = await self.kept()
        await super().delete()
        assert await self.kept() == {name: (uid, "") for name, (uid, _) in before.items()}
        await asyncio.gather(
            *(
                self.composing.author.delete(f"{CONFIG_MAPS}/{name}-{each}")
                for name in self.names
                for each in ("kept", "zones")
            )
        )
