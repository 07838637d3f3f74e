"""A CRD with objects and a command line, for rehearsals."""

import copy
import uuid
from collections.abc import Container
from pathlib import Path
from typing import Any

import yaml

from crdkeeper.cli.rehearse.output import document
from crdkeeper.cluster.resources.definitions import get_definition_object, list_definition_objects
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.rehearsal.shadow import LABEL
from crdkeeper.operations.rehearsal.proof import ShadowUse
from crdkeeper.operations.rehearsal.run import Conversions, rehearse
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.rehearsal.scene import Scene
from tests.controlplane.cluster import Cluster

Json = Any
SPEC: Json = {
    "type": "object",
    "properties": {
        "host": {"type": "string"},
        "port": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
NUMBER = 7


def crd(group: str, spec: Json = SPEC, **fields: Any) -> Json:
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **fields}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def with_spec(**properties: Json) -> Json:
    """The schema with some other fields; without those that are None."""
    found = {**copy.deepcopy(SPEC["properties"]), **properties}
    return {"type": "object", "properties": {name: each for name, each in found.items() if each is not None}}


def widgets(group: str) -> list[Json]:
    return [
        {
            "apiVersion": f"{group}/v1",
            "kind": "Widget",
            "metadata": {"name": f"w{i}", "namespace": "default"},
            "spec": {"host": "h" * i, "port": i, "tags": ["a", "a"] if i == 5 else ["a"]},
        }
        for i in range(NUMBER)
    ]


MAIL = with_spec(host={"type": "string", "format": "email"})


def undecided(group: str) -> Json:
    """A widget of which the engine does not decide whether its host is a mail address, as MAIL wants it."""
    return {
        "apiVersion": f"{group}/v1",
        "kind": "Widget",
        "metadata": {"name": "mail", "namespace": "default"},
        "spec": {"host": "Bob <bob@example.com>"},
    }


class Stage:
    """A CRD with objects, and a command line."""

    def __init__(self, plane: Cluster, client: Client, shell: CommandLine, directory: Path) -> None:
        self.plane = plane
        self.client = client
        self.shell = shell
        self.group = f"rehearse-{uuid.uuid4().hex[:8]}.example.com"
        self.scene = Scene(client, crd(self.group))
        self._directory = directory

    @property
    def name(self) -> str:
        return self.scene.name

    async def set_up(self) -> None:
        definition = crd(self.group)
        assert await self.scene.put(self.scene.marked(definition)) is None
        await self.scene.create(definition, widgets(self.group))
        assert len(self.scene.objects) == NUMBER

    def file(self, name: str, *documents: Json) -> str:
        path = self._directory / name
        path.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
        return str(path)

    async def shadows(self) -> list[Json]:
        """The shadows of our CRD that are not being deleted."""
        return await self.shadows_of({self.name})

    async def shadows_of(self, names: Container[str]) -> list[Json]:
        """The shadows of some CRDs that are not being deleted."""
        found = await list_definition_objects(self.client, LABEL)
        return [
            each
            for each in found
            if each["metadata"]["annotations"][LABEL] in names and "deletionTimestamp" not in each["metadata"]
        ]

    async def state(self) -> Json:
        """All our objects in the cluster."""
        listed = await self.client.request("GET", f"/apis/{self.group}/v1/widgets")
        return [listed["items"], await get_definition_object(self.client, self.name)]

    async def rehearse(
        self, definition: Json, conversions: Conversions | None = None, use: ShadowUse = ShadowUse.ALWAYS
    ) -> Json:
        """The report, by a rehearsal in this process; proved by the API server if not said otherwise."""
        report = await rehearse(self.client, definition, conversions or Conversions(), use=use)
        return document([report])["items"][0]
