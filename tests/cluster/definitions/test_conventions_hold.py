"""What the conventions say about the API server is true: each problem is provoked and observed."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import uuid4

import orjson
import pytest
import pytest_asyncio

from crdkeeper.apiserver.definitions.create import decode
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.cluster.transport.client import MERGE_PATCH, Answer, ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.lint.check import check_conventions
from tests.cluster.harness import eventually
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError

Json = dict[str, Any]
GROUP = f"conventions-hold-{uuid4().hex[:8]}.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BASE = f"/apis/{GROUP}/v1"
BETA = f"/apis/{GROUP}/v1beta1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

TEXT = {"type": "string"}
OBJECT = {"type": "object"}
SPEC: Json = {
    "type": "object",
    "properties": {
        "marker": OBJECT,
        "template": {
            "type": "object",
            "properties": {"metadata": OBJECT, "spec": {**OBJECT, "properties": {"a": TEXT}}},
        },
        "impossible": {**OBJECT, "properties": {"a": TEXT}, "required": ["b"]},
        "alternatives": {**OBJECT, "properties": {"a": TEXT}, "anyOf": [{"required": ["b"]}]},
        "narrow": {"type": "string", "minLength": 5, "maxLength": 3},
        "loose": {"type": "string", "pattern": "[a-z]+"},
        "unexplained": {**OBJECT, "properties": {"a": TEXT}, "allOf": [{"properties": {"a": {}}}]},
        "unseen": {**OBJECT, "properties": {"a": TEXT}, "nullable": True},
        "ends": {"type": "string", "pattern": "^a|b$"},
        "whole": {"type": "string", "pattern": "^(a|b)$"},
        "host": {"type": "string", "format": "hostport"},
        "number": {"type": "integer", "maxLength": 1, "pattern": "^a$"},
        "fixed": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
        },
        "silent": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'"}]},
        "list": {"type": "array", "items": TEXT},
        "replicas": {"type": "string"},
        "timeout": TEXT,
    },
}
STATUS = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
COLUMNS = [
    {"name": "Nowhere", "type": "string", "jsonPath": ".spec.nowhere"},
    {"name": "Wrong", "type": "integer", "jsonPath": ".spec.loose"},
    {"name": "Right", "type": "string", "jsonPath": ".spec.number"},
    {"name": "First", "type": "string", "jsonPath": ".spec.list[*]"},
    {"name": "Stamp", "type": "string", "jsonPath": ".metadata.creationTimestamp"},
]


def _version(name: str, schema: Json, **fields: Any) -> Json:
    content = {"openAPIV3Schema": schema}
    return {"name": name, "served": True, "storage": False, "schema": content, **fields}


def _schema(spec: Json, **root: Any) -> Json:
    return {"type": "object", "properties": {"spec": spec, "status": STATUS}, **root}


def _definition(kind: str, *versions: Json, group: str = GROUP) -> Json:
    names = {"plural": f"{kind.lower()}s", "kind": kind, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": list(versions)},
    }


_NEWER = {**SPEC, "properties": {**SPEC["properties"], "extra": TEXT}}
_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
DEFINITIONS = (
    _definition(
        "Trap",
        _version(
            "v1",
            _schema(SPEC),
            storage=True,
            additionalPrinterColumns=COLUMNS,
            subresources={"status": {}, "scale": _SCALE},
        ),
        _version("v1beta1", _schema(_NEWER), subresources={"status": {}}),
    ),
    _definition(
        "Doomed",
        _version("v1", _schema(OBJECT, required=["status"]), storage=True, subresources={"status": {}}),
    ),
    _definition(
        "Silent",
        _version(
            "v1", {"type": "object", "properties": {"spec": SPEC}}, storage=True, subresources={"status": {}}
        ),
    ),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(plane: Cluster) -> AsyncIterator[Client]:
    """The definitions exist and are served."""
    async with Client(Connection(plane.kubeconfig)) as opened:
        for each in DEFINITIONS:
            await opened.request("POST", CRDS, each)

        async def served() -> bool:
            paths = [f"{BASE}/{each['spec']['names']['plural']}" for each in DEFINITIONS]
            return {(await opened.send("GET", path)).code for path in paths} == {200}

        await eventually(served, otherwise=lambda: "they are not served")
        yield opened
        for each in DEFINITIONS:
            await opened.send("DELETE", f"{CRDS}/{each['metadata']['name']}")


in_one_loop = pytest.mark.asyncio(loop_scope="module")


async def _create(
    client: Client, name: str, spec: Json, *, base: str = BASE, kind: str = "Trap", **fields: Any
) -> Answer:
    body = {
        "apiVersion": base.removeprefix("/apis/"),
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
        **fields,
    }
    return await client.send("POST", f"{base}/{kind.lower()}s", content=orjson.dumps(body))


def _found(index: int) -> set[str]:
    decoded = decode(DEFINITIONS[index], Report())
    assert decoded is not None
    return {each.rule.id for each in check_conventions(decoded, DEFINITIONS[index])}


@pytest.mark.parametrize(
    ("id", "spec", "stored"),
    [
        ("empty-object", {"marker": {"a": 1}}, {"marker": {}}),
        (
            "template-metadata",
            {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"a": "b"}}},
            {"template": {"metadata": {}, "spec": {"a": "b"}}},
        ),
        ("pattern-anchors", {"loose": "!!a!!"}, {"loose": "!!a!!"}),
        ("pattern-alternation", {"ends": "anything"}, {"ends": "anything"}),
        ("format-unknown", {"host": "no host at all"}, {"host": "no host at all"}),
        ("keyword-type", {"number": 12345}, {"number": 12345}),
        ("duration-text", {"timeout": "soon"}, {"timeout": "soon"}),
    ],
)
@in_one_loop
async def test_what_is_accepted(client: Client, id: str, spec: Json, stored: Json) -> None:
    assert id in _found(0)
    answer = await _create(client, id, spec)
    assert answer.code == 201, answer.content
    assert answer.json()["spec"] == stored


@pytest.mark.parametrize(
    ("id", "spec", "said"),
    [
        ("required-undefined", {"impossible": {"a": "x", "b": "x"}}, "spec.impossible.b: Required value"),
        ("required-undefined", {"alternatives": {"a": "x", "b": "x"}}, "must validate at least one schema"),
        ("bounds", {"narrow": "four"}, "spec.narrow"),
        ("rule-message", {"silent": "bad"}, "failed rule: self != 'bad'"),
        ("pattern-alternation", {"whole": "anything"}, "should match"),
    ],
)
@in_one_loop
async def test_what_is_refused(client: Client, id: str, spec: Json, said: str) -> None:
    assert id in _found(0)
    answer = await _create(client, f"{id}-refused", spec)
    assert answer.code == 422
    assert said in answer.json()["message"]


@in_one_loop
async def test_conversion_loss(client: Client) -> None:
    assert "conversion-loss" in _found(0)
    answer = await _create(client, "lost", {"extra": "x", "timeout": "1s"}, base=BETA)
    assert answer.code == 201
    read = await client.request("GET", f"{BETA}/traps/lost")
    assert read["spec"] == {"timeout": "1s"}


@in_one_loop
async def test_immutable_bypass(client: Client) -> None:
    assert "immutable-bypass" in _found(0)
    await _create(client, "fixed", {"fixed": "a"})

    async def patch(value: str | None) -> None:
        body = {"spec": {"fixed": value}}
        await client.request("PATCH", f"{BASE}/traps/fixed", body, content_type=MERGE_PATCH)

    with pytest.raises(ApiError, match="fixed is immutable"):
        await patch("b")
    await patch(None)
    await patch("b")


@in_one_loop
async def test_columns(client: Client) -> None:
    assert {"column-target", "column-type", "column-list", "column-date"} <= _found(0)
    await _create(client, "columns", {"loose": "a", "number": 5, "list": ["one", "two"]})
    table = await client.request("GET", f"{BASE}/traps/columns", accept=TABLE)
    name, nowhere, wrong, right, first, stamp = table["rows"][0]["cells"]
    assert (name, nowhere, wrong, right, first) == ("columns", None, None, "5", "one")
    assert stamp.endswith("Z"), "an age would be shown for type date"


@in_one_loop
async def test_scale_target(client: Client) -> None:
    assert {"scale-target", "scale-selector"} <= _found(0)
    refused = await _create(client, "scaled", {"replicas": "3"})
    assert refused.code == 422, refused.content
    await _create(client, "scaled", {})
    answer = await client.send("GET", f"{BASE}/traps/scaled/scale")
    assert answer.code == 500


@in_one_loop
async def test_status_required(client: Client) -> None:
    assert "status-required" in _found(1)
    answer = await _create(client, "doomed", {}, kind="Doomed", status={"replicas": 1})
    assert answer.code == 422
    assert "status: Required value" in answer.json()["message"]


@in_one_loop
async def test_status_schema(client: Client) -> None:
    assert "status-schema" in _found(2)
    await _create(client, "silent", {}, kind="Silent")
    patch = {"status": {"ready": True}}
    path = f"{BASE}/silents/silent/status"
    patched = await client.request("PATCH", path, patch, content_type=MERGE_PATCH)
    assert "ready" not in (patched.get("status") or {})


def _sized(description: str) -> Json:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "description": description}}}
    return _definition("Big", _version("v1", schema, storage=True), group=f"big.{GROUP}")


def _is_too_big(crd: Mapping[str, Any]) -> bool:
    decoded = decode(crd, Report())
    assert decoded is not None
    return "apply-size" in {each.rule.id for each in check_conventions(decoded, crd)}


@pytest.mark.parametrize("annotations", [{}, {"note": "x" * 1000}])
def test_apply_size_to_the_byte(plane: Cluster, annotations: dict[str, str]) -> None:
    def sized(length: int) -> Json:
        crd = _sized("<ä&>" + "x" * length)
        return {
            **crd,
            "metadata": {**crd["metadata"], **({"annotations": annotations} if annotations else {})},
        }

    low, high = 250_000, 262_144
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_too_big(sized(middle)) else (middle, high)
    for length, refused in ((low, False), (high, True)):
        text = orjson.dumps(sized(length)).decode()
        said = plane.kubectl("apply", "--dry-run=server", "-f", "-", input=text, check=False)
        assert ("metadata.annotations: Too long" in said) is refused, said[-500:]


@in_one_loop
async def test_openapi_v2(client: Client) -> None:
    assert "openapi-v2" in _found(0)
    kind = ".".join((*reversed(GROUP.split(".")), "v1", "Trap"))

    async def published() -> Json | None:
        answer = await client.request("GET", "/openapi/v2")
        found: Json | None = answer["definitions"].get(kind)
        return found

    schema = await eventually(published, seconds=120.0)
    assert schema["properties"]["spec"]["properties"]["unseen"] == {}


@in_one_loop
async def test_explain_fails(client: Client, plane: Cluster) -> None:
    assert "explain-fails" in _found(0)

    async def published() -> bool:
        # kubectl begins with the index.
        index = await client.request("GET", "/openapi/v3")
        listed = BASE.removeprefix("/") in index["paths"]
        return listed and (await client.send("GET", f"/openapi/v3{BASE}")).code == 200

    await eventually(published, seconds=120.0)
    explain = ("explain", f"--api-version={GROUP}/v1")
    assert "unexplained" in plane.kubectl(*explain, "traps.spec")
    for failing in (("traps.spec.unexplained",), ("traps", "--recursive")):
        with pytest.raises(KubectlError, match="expected schema argument"):
            plane.kubectl(*explain, *failing)
