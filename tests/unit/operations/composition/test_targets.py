"""Where the kinds of Compositions are found, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

import pytest

from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.operations.composition.targets import KindKey, TargetKinds
from tests import virtualtime

Json = Any
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGET = ("gadgets.example.com/v1", "Gadget")
CONFIG_MAP = ("v1", "ConfigMap")
INGRESS = ("networking.k8s.io/v1", "Ingress")


def gadgets(*versions: str, established: bool = True, **metadata: Any) -> Json:
    """A CRD with these versions."""
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "gadgets.gadgets.example.com",
            "uid": "u",
            "resourceVersion": "1",
            "generation": 1,
            **metadata,
        },
        "spec": {
            "group": "gadgets.example.com",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [
                {"name": each, "served": True, "storage": each == versions[0], "schema": schema}
                for each in versions
            ],
        },
        "status": {"conditions": [{"type": "Established", "status": str(established)}]},
    }


def document(group: str, version: str, kind: str) -> Json:
    """An OpenAPI v3 document with one kind."""
    marked = {"group": group, "version": version, "kind": kind}
    path = f"/apis/{group}/{version}/namespaces/{{namespace}}/things"
    schema = {"type": "object", "properties": {"data": {"type": "string"}}}
    return {
        "openapi": "3.0.0",
        "paths": {path: {"post": {"x-kubernetes-group-version-kind": marked}}},
        "components": {"schemas": {kind: {**schema, "x-kubernetes-group-version-kind": [marked]}}},
    }


class Api:
    """Answers by path, and counts."""

    def __init__(self, crd: Json = None) -> None:
        index = {
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=1"},
            "apis/networking.k8s.io/v1": {
                "serverRelativeURL": "/openapi/v3/apis/networking.k8s.io/v1?hash=1"
            },
        }
        self.answers: dict[str, Json] = {
            "/openapi/v3": {"paths": index},
            "/openapi/v3/api/v1?hash=1": document("", "v1", "ConfigMap"),
            "/openapi/v3/apis/networking.k8s.io/v1?hash=1": document("networking.k8s.io", "v1", "Ingress"),
            "/apis/networking.k8s.io/v1": {"resources": [{"name": "ingresses", "kind": "Ingress"}]},
        }
        if crd is not None:
            self.answers[f"{CRDS}/gadgets.gadgets.example.com"] = crd
            self.answers["/apis/gadgets.example.com/v1"] = {
                "resources": [
                    {"name": "gadgets/status", "kind": "Gadget"},
                    {"name": "gadgets", "kind": "Gadget"},
                ]
            }
        self.requests: list[str] = []

    async def request(self, method: str, path: str, *_: Any, **__: Any) -> Json:
        self.requests.append(path)
        found = self.answers.get(path)
        if isinstance(found, Exception):
            raise found
        if found is None:
            raise ApiError(404, {"message": "not found"})
        return found


def play(
    api: Api, act: Callable[[TargetKinds], Awaitable[None]], seen: Iterable[DefinitionFacts] = ()
) -> None:
    async def main() -> None:
        await act(TargetKinds(cast(Client, api), lambda: seen))

    virtualtime.run(main())


def found(api: Api, *wanted: KindKey, seen: Iterable[DefinitionFacts] = ()) -> set[KindKey]:
    """The kinds whose schemas are known."""
    known: set[KindKey] = set()

    async def act(kinds: TargetKinds) -> None:
        known.update((await kinds.read(await kinds.find(wanted))).keys() & {*wanted})

    play(api, act, seen)
    return known


def test_kinds_of_crds_and_of_documents() -> None:
    assert found(Api(gadgets("v1")), GADGET, CONFIG_MAP, INGRESS) == {GADGET, CONFIG_MAP, INGRESS}


def test_a_crd_that_is_seen_needs_no_discovery() -> None:
    api = Api(gadgets("v1"))
    del api.answers["/apis/gadgets.example.com/v1"]
    assert found(api, GADGET) == set()
    assert found(api, GADGET, seen=[definition_facts(gadgets("v1"))]) == {GADGET}


def test_another_crd_of_the_kind_does_not_matter() -> None:
    served, other = definition_facts(gadgets("v1")), gadgets("v1", established=False)
    other["metadata"]["name"] = "gadget.gadgets.example.com"
    other["spec"]["names"]["plural"] = "gadget"
    api = Api(gadgets("v1"))
    api.answers[f"{CRDS}/gadget.gadgets.example.com"] = other
    for seen in ([definition_facts(other), served], [served, definition_facts(other)]):
        assert found(api, GADGET, seen=seen) == {GADGET}


@pytest.mark.parametrize(
    "crd",
    [
        gadgets("v2"),
        gadgets("v1", established=False),
        gadgets("v1", deletionTimestamp="2026-01-01T00:00:00Z"),
        None,
    ],
    ids=["version", "not established", "terminating", "gone"],
)
def test_what_is_not_served_is_missing(crd: Json) -> None:
    seen = [definition_facts(gadgets("v1"))]
    assert found(Api(crd), GADGET, ("v1", "Nothing"), ("v9", "ConfigMap"), seen=seen) == set()


def test_who_has_made_the_crd() -> None:
    async def act(kinds: TargetKinds) -> None:
        owned.append((await kinds.find([GADGET])).belongs_to_definition(GADGET))

    owned: list[bool] = []
    play(Api(gadgets("v1")), act)
    play(Api(gadgets("v1", annotations={"crdkeeper.dev/definition-uid": "u"})), act)
    play(Api(), act)
    assert owned == [False, True, False]


def test_the_key_changes_with_a_schema() -> None:
    api = Api(gadgets("v1"))
    keys: list[object] = []

    async def act(kinds: TargetKinds) -> None:
        keys.append((await kinds.find([GADGET, CONFIG_MAP])).key)
        keys.append((await kinds.find([GADGET, CONFIG_MAP])).key)
        api.answers[f"{CRDS}/gadgets.gadgets.example.com"] = gadgets("v1", generation=2)
        keys.append((await kinds.find([GADGET, CONFIG_MAP])).key)
        index = {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=2"}}
        api.answers["/openapi/v3"] = {"paths": index}
        await asyncio.sleep(10.0)
        keys.append((await kinds.find([GADGET, CONFIG_MAP])).key)

    play(api, act)
    assert keys[0] == keys[1] != keys[2] != keys[3]


def test_documents_are_read_once_for_each_hash() -> None:
    api = Api()

    async def act(kinds: TargetKinds) -> None:
        for _ in range(5):
            await kinds.read(await kinds.find([CONFIG_MAP]))
            await asyncio.sleep(10.0)

    play(api, act)
    assert api.requests.count("/openapi/v3/api/v1?hash=1") == 1
    assert api.requests.count("/openapi/v3") == 5


def test_a_document_that_cannot_be_read_concerns_only_those_who_need_it() -> None:
    api = Api(gadgets("v1"))
    path = "/openapi/v3/apis/networking.k8s.io/v1?hash=1"
    api.answers[path] = ApiError(503, {"message": "down"})

    async def act(kinds: TargetKinds) -> None:
        for _ in range(3):
            with pytest.raises((ApiError, Unreachable), match="down"):
                await kinds.read(await kinds.find([INGRESS]))
        assert api.requests.count(path) == 1
        assert await kinds.read(await kinds.find([CONFIG_MAP, GADGET]))
        api.answers[path] = document("networking.k8s.io", "v1", "Ingress")
        await asyncio.sleep(30.0)
        assert INGRESS in await kinds.read(await kinds.find([INGRESS]))

    play(api, act)


def test_without_built_in_kinds_no_document_is_needed() -> None:
    api = Api(gadgets("v1"))
    api.answers["/openapi/v3"] = ApiError(503, {"message": "down"})
    assert found(api, GADGET) == {GADGET}
