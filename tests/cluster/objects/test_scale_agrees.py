"""We and the API server read the same /scale of an object, and writing it changes the object alike.

CRDKEEPER_SCALES sets how many requests are compared, CRDKEEPER_SEED selects others.
"""

import json
import os
import random
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest

from crdkeeper.apiserver.objects.scale import (
    ScaleError,
    ScalePaths,
    patch_scale,
    read_scale,
    replace_scale,
)
from crdkeeper.apiserver.objects.scalevalidation import check_scale
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness.waiting import eventually
from tests.controlplane.cluster import Cluster

Json = Any
COUNT = int(os.environ.get("CRDKEEPER_SCALES", "600"))
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
OBJECTS = 20
VERSIONS = 6
SHOWN = 15
TIMEOUT_SECONDS = 300 + COUNT // 20
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SPEC_PATHS = (".spec.replicas", ".spec.replicas", ".spec.a", ".spec.a.b", ".spec.a.c.d", ".spec.", ".spec.é")
STATUS_PATHS = (".status.replicas", ".status.replicas", ".status.a", ".status.a.b")
SELECTOR_PATHS = (None, "", ".status.selector", ".status.selector", ".spec.selector", ".status.a.b")
REPLICAS: tuple[Json, ...] = (
    0,
    1,
    5,
    5,
    7,
    2**31 - 1,
    2**31,
    2**40 + 3,
    -1,
    -(2**31),
    "3",
    1.5,
    1e9,
    None,
    True,
    {},
    [],
    [1],
    {"b": 4},
)
PARTS: tuple[Json, ...] = ({}, None, 5)
SENT = (0, 3, 3, 9, 2**31 - 1, -1, -(2**31), 2**31, 1.5, "3", None, True)


@dataclass(slots=True)
class Tally:
    """The counts of a run."""

    asked: int = 0
    failed: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.asked} requests: {self.failed} fail, {self.refused} refused by validation, "
            f"{len(self.wrong)} wrong"
        )


def _number(draw: random.Random) -> Json:
    return draw.choice(REPLICAS if draw.randrange(3) == 0 else (0, 1, 5))


def _part(draw: random.Random) -> Json:
    found: Json = {}
    for key in ("replicas", "a", "selector", "é", ""):
        if draw.randrange(3):
            found[key] = _number(draw)
    if draw.randrange(2):
        found["a"] = {key: _number(draw) for key in ("b", "c") if draw.randrange(4)}
    if draw.randrange(3):
        found["selector"] = draw.choice(("app=web", "", "no selector at all ("))
    if draw.randrange(2):
        found["replicas"] = draw.choice((0, 1, 5))
    return found


def _definition(draw: random.Random, group: str) -> Json:
    versions = []
    for i in range(VERSIONS):
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version: Json = {
            "name": f"v{i + 1}",
            "served": True,
            "storage": i == 0,
            "schema": {"openAPIV3Schema": schema},
        }
        # The first has no /scale, so that objects can be stored whose /scale cannot be read.
        if i:
            scale = {
                "specReplicasPath": draw.choice(SPEC_PATHS),
                "statusReplicasPath": draw.choice(STATUS_PATHS),
                "labelSelectorPath": draw.choice(SELECTOR_PATHS),
            }
            scale = {key: each for key, each in scale.items() if each is not None}
            version["subresources"] = {"scale": scale}
        versions.append(version)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"scaled.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "scaled", "kind": "Scaled"},
            "scope": "Namespaced",
            "versions": versions,
        },
    }


@dataclass(slots=True)
class _Comparison:
    client: Client
    draw: random.Random
    path: str
    scale: Json
    tally: Tally

    async def read(self, name: str) -> None:
        """GET of /scale."""
        obj = (await self.client.send("GET", f"{self.path}/{name}")).json()
        answer = await self.client.send("GET", f"{self.path}/{name}/scale")
        try:
            ours: tuple[int, Json] = (200, read_scale(obj, ScalePaths.of(self.scale)))
        except ScaleError as error:
            ours = (error.code, error.message)
        said = answer.json()
        self._judge("GET", ours, (answer.code, said if answer.code == 200 else said["message"]), obj)

    async def write(self, name: str) -> None:
        """PUT or PATCH of /scale."""
        obj = (await self.client.send("GET", f"{self.path}/{name}")).json()
        patch = self.draw.randrange(2) == 0
        body = self._body(obj, patch)
        content_type = "application/merge-patch+json" if patch else "application/json"
        answer = await self.client.send(
            "PATCH" if patch else "PUT",
            f"{self.path}/{name}/scale",
            content=json.dumps(body).encode(),
            content_type=content_type,
        )
        said = answer.json()
        after = (await self.client.send("GET", f"{self.path}/{name}")).json()
        theirs: Json = (after.get("spec"), after.get("status"))
        if answer.code == 422:
            causes = sorted((each["field"], each["message"]) for each in said["details"]["causes"])
            undecodable = causes[0][0] == "patch"
            theirs = "" if undecodable else causes
        elif answer.code >= 400:
            theirs = said["message"] if answer.code == 500 or "cannot be empty" in said["message"] else ""
        function = patch_scale if patch else replace_scale
        ours: tuple[int, Json]
        try:
            new = function(obj, ScalePaths.of(self.scale), body)
            violations = check_scale(new, self.scale)
            if violations:
                ours = (422, sorted((str(each.path), each.message) for each in violations))
            else:
                ours = (200, (new.get("spec"), new.get("status")))
        except ScaleError as error:
            known = error.code == 500 or "cannot be empty" in error.message
            ours = (error.code, error.message if known else "")
        if ours[0] == 200 == answer.code:
            read = read_scale(after, ScalePaths.of(self.scale))
            self._judge("answer", (200, read), (200, {**said, "metadata": _known(said["metadata"])}), obj)
        self._judge(
            f"{'PATCH' if patch else 'PUT'} {json.dumps(body)[:300]}", ours, (answer.code, theirs), obj
        )

    def _body(self, obj: Json, patch: bool) -> Json:
        draw = self.draw
        body: Json = {}
        if draw.randrange(6):
            body["spec"] = {"replicas": draw.choice(SENT)} if draw.randrange(6) else draw.choice(PARTS)
        if draw.randrange(6) == 0:
            body["status"] = draw.choice(({"replicas": 77, "selector": "x"}, {"replicas": "x"}, None))
        metadata: Json = {}
        if draw.randrange(6) == 0:
            metadata["resourceVersion"] = draw.choice((obj["metadata"]["resourceVersion"], "1"))
        if draw.randrange(8) == 0:
            metadata["uid"] = draw.choice((obj["metadata"]["uid"], "other"))
        if draw.randrange(8) == 0:
            metadata["labels"] = {"ignored": "yes"}
        if patch:
            return {**body, **({"metadata": metadata} if metadata else {})}
        metadata["name"] = obj["metadata"]["name"] if draw.randrange(12) else draw.choice(("other", ""))
        head = {"apiVersion": "autoscaling/v1", "kind": "Scale"} if draw.randrange(4) else {}
        return {**head, **body, "metadata": metadata}

    def _judge(self, what: str, ours: tuple[int, Json], theirs: tuple[int, Json], obj: Json) -> None:
        self.tally.asked += what != "answer"
        self.tally.failed += theirs[0] >= 400
        self.tally.refused += theirs[0] == 422
        if ours != theirs:
            shown = json.dumps({key: obj.get(key) for key in ("spec", "status")})[:600]
            self.tally.wrong.append(f"{what}\n {self.scale}\n {shown}\n ours   {ours}\n theirs {theirs}")


def _known(metadata: Json) -> Json:
    """Without the metadata that a Scale has after a write in addition to the object's."""
    return {key: each for key, each in metadata.items() if key != "managedFields"}


async def _round(client: Client, number: int, tally: Tally) -> None:
    draw = random.Random(SEED * 1_000_003 + number)
    group = f"scales-{uuid.uuid4().hex[:8]}.example.com"
    definition = _definition(draw, group)
    await client.request("POST", CRDS, definition)
    versions = definition["spec"]["versions"]
    base = f"/apis/{group}/{{}}/namespaces/default/scaled"
    try:

        async def served() -> bool:
            answers = [await client.send("GET", base.format(each["name"])) for each in versions]
            return all(each.code == 200 for each in answers)

        await eventually(served, otherwise=lambda: f"{group} is not served")
        for i in range(OBJECTS):
            obj = {"apiVersion": f"{group}/v1", "kind": "Scaled", "metadata": {"name": f"o{i}"}}
            obj |= {key: _part(draw) for key in ("spec", "status") if draw.randrange(12)}
            answer = await client.send("POST", base.format("v1"), content=json.dumps(obj).encode())
            assert answer.code == 201, answer.content
        for version in versions[1:]:
            scale = version["subresources"]["scale"]
            compare = _Comparison(client, draw, base.format(version["name"]), scale, tally)
            for i in range(OBJECTS):
                await compare.read(f"o{i}")
                await compare.write(f"o{i}")
    finally:
        await client.send("DELETE", f"{CRDS}/scaled.{group}")


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_same_scale(plane: Cluster) -> None:
    tally = Tally()
    number = 0
    async with Client(Connection(plane.kubeconfig)) as client:
        while tally.asked < COUNT:
            await _round(client, number, tally)
            number += 1
    print(tally)
    assert not tally.wrong, f"{tally}\n" + "\n".join(tally.wrong[:SHOWN])
    assert tally.asked * 0.1 < tally.failed < tally.asked * 0.9, tally
