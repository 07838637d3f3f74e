"""Our claims about the paths of the scale subresource match what the API server does with values there."""

import json
import uuid
from typing import Any

from crdkeeper.apiserver.schema.scalepaths import SchemaSpot, scale_path_problems
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness.waiting import eventually
from tests.controlplane.cluster import Cluster

Json = Any
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KEPT = {"x-kubernetes-preserve-unknown-fields": True}
INTEGER, TEXT, NUMBER = {"type": "integer"}, {"type": "string"}, {"type": "number"}
EITHER = {"x-kubernetes-int-or-string": True}


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


SCHEMAS: tuple[tuple[str, Json], ...] = (
    ("n", _object(n=INTEGER)),
    ("n", _object(n={**INTEGER, "format": "int64", "nullable": True})),
    ("n", _object(n=TEXT)),
    ("n", _object(n=NUMBER)),
    ("n", _object(n=EITHER)),
    ("n", _object(n=_object())),
    ("n", _object(n={"type": "array", "items": INTEGER})),
    ("n", _object(n={"type": "boolean"})),
    ("n", _object(n=KEPT)),
    ("n", _object(n={"type": "object", **KEPT})),
    ("n", _object(m=INTEGER)),
    ("n", {**_object(m=INTEGER), **KEPT}),
    ("n", {**_object(n=TEXT), **KEPT}),
    ("n", {**_object(n=INTEGER), **KEPT}),
    ("a.n", {**_object(), **KEPT}),
    ("a.n", {**_object(a=_object(m=INTEGER)), **KEPT}),
    ("a.n", _object(a=KEPT)),
    ("a.n", _object(a={**_object(n=TEXT), **KEPT})),
    ("a.n", _object(a={"type": "object", "additionalProperties": INTEGER})),
    ("a.n", _object(a={"type": "object", "additionalProperties": TEXT})),
    ("a.n", _object(a={"type": "object", "additionalProperties": True})),
    ("a.n", _object(a={"type": "object", "x-kubernetes-embedded-resource": True, **KEPT})),
    ("a.kind", _object(a={"type": "object", "x-kubernetes-embedded-resource": True, **KEPT})),
    ("a.b.n", _object(a=_object(b=_object(n=INTEGER)))),
)
"""The path of replicas, and the schema of spec."""
REFUSED: dict[str, Json] = {
    "of type string": "x",
    "of type number": 1.5,
    "an integer or a string": "x",
    "of type object": {},
    "of type array": [1],
    "of type boolean": True,
}
"""A non-integer value of each type."""


def _definition(group: str) -> Json:
    def version(name: str, spec: Json, path: str) -> Json:
        schema = _object(spec=spec, status=_object(n=INTEGER))
        scale = {"specReplicasPath": f".spec.{path}", "statusReplicasPath": ".status.n"}
        return {
            "name": name,
            "served": True,
            "storage": False,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"scale": scale},
        }

    stored = version("v1", {"type": "object", **KEPT}, "n")
    stored["storage"] = True
    versions = [version(f"v{i + 2}", spec, path) for i, (path, spec) in enumerate(SCHEMAS)]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"judged.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "judged", "kind": "Judged"},
            "scope": "Cluster",
            "versions": [stored, *versions],
        },
    }


def _at(path: str, value: Json, schema: Json) -> Json:
    name, _, rest = path.partition(".")
    below = (schema.get("properties") or {}).get(name) or {}
    found = {name: _at(rest, value, below) if rest else value}
    if schema.get("x-kubernetes-embedded-resource"):
        found = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}} | found
    return found


async def _judge(client: Client, group: str, version: Json, path: str) -> str:
    """The error in our result for a version; empty if it is right."""
    scale = version["subresources"]["scale"]
    schema = version["schema"]["openAPIV3Schema"]
    problems = scale_path_problems(scale, SchemaSpot(schema))
    base, name = f"/apis/{group}/{version['name']}/judged", f"o-{version['name']}"
    instead = problems[0].instead if problems else ""
    obj = {
        "apiVersion": f"{group}/{version['name']}",
        "kind": "Judged",
        "metadata": {"name": name},
        "spec": _at(path, REFUSED[instead] if instead else 3, schema["properties"]["spec"]),
    }
    answer = await client.send("POST", base, content=json.dumps(obj).encode())
    if instead:
        said = answer.json().get("message", "")
        is_refused = answer.code == 422 and "accessor error" in said
        return "" if is_refused else f"{path} {schema}: said {instead}, but {answer.code} {said}"
    if answer.code != 201:
        return f"{path} {schema}: {answer.code} {answer.content.decode()}"
    read = await client.send("GET", f"{base}/{name}/scale")
    if problems:
        lost = read.code == 500 and "does not exist" in read.json()["message"]
        return "" if lost else f"{path} {schema}: said to be pruned, but {read.code} {read.content.decode()}"
    shown = read.code == 200 and read.json()["spec"] == {"replicas": 3}
    return "" if shown else f"{path} {schema}: nothing said, but {read.code} {read.content.decode()}"


async def test_paths_judged(plane: Cluster) -> None:
    group = f"judged-{uuid.uuid4().hex[:8]}.example.com"
    definition = _definition(group)
    versions = definition["spec"]["versions"][1:]
    async with Client(Connection(plane.kubeconfig)) as client:
        await client.request("POST", CRDS, definition)

        async def served() -> bool:
            answers = [await client.send("GET", f"/apis/{group}/{each['name']}/judged") for each in versions]
            return all(each.code == 200 for each in answers)

        await eventually(served, otherwise=lambda: f"{group} is not served")
        wrong = [
            said
            for (path, _), version in zip(SCHEMAS, versions, strict=True)
            if (said := await _judge(client, group, version, path))
        ]
        await client.send("DELETE", f"{CRDS}/judged.{group}")
    assert not wrong, f"{len(wrong)} of {len(SCHEMAS)}:\n" + "\n".join(wrong)
