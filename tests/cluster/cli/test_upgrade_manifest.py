"""What `crdkeeper upgrade-manifest` makes of CRDs of v1beta1 is accepted by the API server."""

import asyncio
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.upgrade.manifest import upgrade
from tests.cluster.definitions.lint.agreement import ask
from tests.cluster.definitions.lint.variants import BASES
from tests.cluster.harness import eventually
from tests.cluster.harness.admin import CRDS
from tests.controlplane.cluster import Cluster

PRESERVE = "x-kubernetes-preserve-unknown-fields"
LOOSE: dict[str, Any] = {
    "properties": {
        "metadata": {"type": "object", "required": ["name"], "properties": {"labels": {"type": "object"}}},
        "spec": {
            "required": ["image"],
            "properties": {
                "image": {"minLength": 1},
                "port": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                "anything": {"description": "whatever there is"},
                "list": {"type": "array"},
                "settings": {"additionalProperties": {"enum": ["on", "off"]}},
                "mode": {"anyOf": [{"type": "boolean"}, {"type": "string", "title": "a word"}]},
            },
            "oneOf": [
                {"required": ["url"], "properties": {"url": {"format": "uri"}}},
                {"required": ["port"]},
            ],
            "not": {"properties": {"settings": {"type": "object"}}},
        },
    },
    "additionalProperties": {"type": "string"},
}


def old(schema: dict[str, Any] | None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.upgrade.example.com", "creationTimestamp": None},
        "spec": {
            "group": "upgrade.example.com",
            "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
            "version": "v1",
            **({"validation": {"openAPIV3Schema": schema}} if schema is not None else {}),
            **spec,
        },
        "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": []},
    }


OLD: dict[str, dict[str, Any]] = {
    "no schema": old(None),
    "no types": old(LOOSE),
    "pruned": old(LOOSE, preserveUnknownFields=False, scope="Cluster"),
    "several versions, a webhook and a scale": old(
        LOOSE,
        version=None,
        versions=[
            {"name": "v1", "served": True, "storage": True},
            {"name": "v1beta1", "served": True, "storage": False},
        ],
        conversion={
            "strategy": "Webhook",
            "webhookClientConfig": {"service": {"namespace": "default", "name": "conversion", "path": "/"}},
        },
        preserveUnknownFields=False,
        subresources={
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        additionalPrinterColumns=[{"name": "Image", "type": "string", "JSONPath": ".spec.image"}],
    ),
}


@pytest.mark.parametrize("document", OLD.values(), ids=OLD)
async def test_the_api_server_takes_the_result(plane: Cluster, document: dict[str, Any]) -> None:
    async with Client(Connection(plane.kubeconfig)) as client:
        refused = await ask(client, document)
        assert refused.code == 400, "the manifest of v1beta1 is no trouble to begin with"
        verdict = await ask(client, upgrade(document).definition)
    assert verdict.code == 201, verdict.message


async def test_nothing_that_v1beta1_kept_is_lost(plane: Cluster) -> None:
    inner = {"properties": {"a": {"type": "string"}}}
    schema = {
        "properties": {
            "spec": {
                "properties": {
                    "known": inner,
                    "empty": {"type": "object"},
                    "open": {"type": "object", "additionalProperties": True},
                    "list": {"items": inner},
                    "map": {"additionalProperties": inner},
                    "maps": {"additionalProperties": {"additionalProperties": inner}},
                    "either": {"oneOf": [{"required": ["x"]}, {"required": ["y"]}], **inner},
                }
            }
        }
    }
    definition = upgrade(old(schema)).definition
    stray = {"a": "a", "stray": {"deep": [{"er": 1}]}}
    spec = {
        "stray": 1,
        "known": stray,
        "empty": stray,
        "open": {"x": stray},
        "list": [stray, {}],
        "map": {"x": stray},
        "maps": {"x": {"y": stray}},
        "either": {"x": stray, "a": "a"},
    }
    name = definition["metadata"]["name"]
    written = {
        "apiVersion": "upgrade.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "x"},
        "spec": spec,
        "stray": stray,
    }
    objects = "/apis/upgrade.example.com/v1/namespaces/default/widgets"
    async with Client(Connection(plane.kubeconfig)) as client:
        try:
            await client.request("POST", CRDS, definition)
            created = await eventually(lambda: _created(client, objects, written))
            read = await client.request("GET", f"{objects}/{created['metadata']['name']}")
        finally:
            await client.send("DELETE", f"{CRDS}/{name}")
    assert (read["spec"], read["stray"]) == (spec, stray)


async def _created(client: Client, path: str, body: Any) -> Any:
    try:
        return await client.request("POST", path, body)
    except ApiError:
        return None  # the kind is not served yet


def without_types(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: without_types(each)
            for key, each in value.items()
            if key not in ("type", "x-kubernetes-validations") or not isinstance(each, str | list)
        }
    return [without_types(each) for each in value] if isinstance(value, list) else value


async def test_also_of_schemas_that_have_lost_their_types(plane: Cluster) -> None:
    documents = []
    for i, base in enumerate(BASES):
        schema = base["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        documents.append(old(without_types(schema), subresources={"status": {}}, scope="Cluster"))
        documents[-1]["metadata"]["name"] = f"widgets{i}.upgrade.example.com"
        documents[-1]["spec"]["names"] |= {"plural": f"widgets{i}"}
    async with Client(Connection(plane.kubeconfig)) as client:
        verdicts = await asyncio.gather(*(ask(client, upgrade(each).definition) for each in documents))
    assert [each.message for each in verdicts if each.code != 201] == []
