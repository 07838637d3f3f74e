"""The kinds Composition and CompositionRevision on the API server: their rules, refused and accepted."""

import copy
from typing import Any

import pytest

from crdkeeper.api.composition import Composition
from crdkeeper.api.compositionrevision import CompositionRevision
from crdkeeper.cluster.transport.client import Client
from tests.cluster.composition.refusals import said
from tests.controlplane.cluster import Cluster

Json = Any
BASE = "/apis/crdkeeper.dev/v1alpha1"
COMPOSITIONS = f"{BASE}/compositions"
REVISIONS = f"{BASE}/compositionrevisions"
TYPE = {"apiVersion": "platform.example.com/v1", "kind": "Database"}
ONLY_READ = "an externalRef is only read: conflicts, deletion and recreate do not apply"


def template(name: str = "${composite.metadata.name}", **fields: Json) -> Json:
    """A ConfigMap with that name."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def resource(name: str = "settings", **fields: Json) -> Json:
    """A resource with a template, unless something else is given."""
    return {"name": name, **(fields if "externalRef" in fields else {"template": template(), **fields})}


ZONES = {"apiVersion": "v1", "kind": "ConfigMap", "name": "zones", "namespace": "platform"}


def composition(*resources: Json, **spec: Json) -> Json:
    """A Composition with these resources; by default with one."""
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "Composition",
        "metadata": {"name": "databases-small"},
        "spec": {"compositeTypeRef": TYPE, "resources": list(resources) or [resource()], **spec},
    }


WHOLE = composition(
    resource("settings", template=template(data={"engine": "${composite.spec.engine}"}), conflicts="Force"),
    resource(
        "server", recreate=True, readyWhen=["${server.status.availableReplicas == composite.spec.replicas}"]
    ),
    resource(
        "backup",
        includeWhen=["${composite.spec.backup.enabled}"],
        forEach=[{"schedule": "${composite.spec.backup.schedules}"}, {"zone": "${zones.data}"}],
        deletion="Orphan",
    ),
    resource("zones", externalRef=ZONES, readyWhen=["${has(zones.data)}"]),
    status={"address": "${server.metadata.name}", "replicas": "${server.status.replicas}", "list": [1, {}]},
    serviceAccountName="builder",
    serviceAccountNamespace="platform",
    revisionHistoryLimit=0,
)


@pytest.mark.parametrize(
    "value",
    [
        composition(),
        WHOLE,
        composition(*(resource(f"r{number}") for number in range(100))),
        composition(resource("x", externalRef={**ZONES, "name": "${composite.spec.zone}"})),
        composition(
            resource("x", externalRef={**ZONES, "namespace": "${composite.spec.zone}"}),
            serviceAccountName="builder",
        ),
        composition(resource("a1_b2")),
        composition(resource("the_string")),
    ],
)
async def test_a_good_composition_is_accepted(kinds_client: Client, value: Json) -> None:
    assert await said(kinds_client, COMPOSITIONS, value) == []
    Composition.model_validate(value)


IDENTIFIER = "must consist of letters, digits and _, and begin with a letter"
RESERVED = "composite, each, and the words and types of CEL are reserved"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (composition(compositeTypeRef={**TYPE, "apiVersion": "v1"}), "must be <group>/<version>"),
        (composition(compositeTypeRef={**TYPE, "apiVersion": "a/b/c"}), "must be <group>/<version>"),
        (composition(compositeTypeRef={**TYPE, "apiVersion": "/v1"}), "must be <group>/<version>"),
        (composition(compositeTypeRef={"apiVersion": "a/b"}), "Required value"),
        (composition(resources=[]), "should have at least 1 items"),
        (composition(*(resource(f"r{number}") for number in range(101))), "must have at most 100 items"),
        (composition(resource(), resource()), "Duplicate value"),
        (composition(resource("a-b")), IDENTIFIER),
        (composition(resource("1a")), IDENTIFIER),
        (composition(resource("_a")), IDENTIFIER),
        (composition(resource("a_")), IDENTIFIER),
        (composition(resource("composite")), RESERVED),
        (composition(resource("each")), RESERVED),
        (composition(resource("in")), RESERVED),
        (composition(resource("string")), RESERVED),
        (composition({"name": "a"}), "set either template or externalRef"),
        (
            composition({"name": "a", "template": template(), "externalRef": ZONES}),
            "set either template or externalRef",
        ),
        (composition(resource(externalRef=ZONES, conflicts="Force")), ONLY_READ),
        (composition(resource(externalRef=ZONES, deletion="Orphan")), ONLY_READ),
        (composition(resource(deletion="Orphan", recreate=True)), "set only one of them"),
        (composition(resource(externalRef=ZONES, recreate=True)), ONLY_READ),
        (composition(resource(conflicts="Never")), "Unsupported value"),
        (composition(resource(template={"kind": "A", "metadata": {"name": "a"}})), "Required value"),
        (composition(resource(template={"apiVersion": "v1", "kind": "A"})), "Required value"),
        (
            composition(resource(template={**template(), "metadata": {"generateName": "a-"}})),
            "Required value",
        ),
        (composition(resource(template=template(kind="${x}"))), "kind cannot contain expressions"),
        (
            composition(resource(template=template(apiVersion="${x}"))),
            "apiVersion cannot contain expressions",
        ),
        (
            composition(resource(externalRef={**ZONES, "kind": "${x}"})),
            "kind cannot contain expressions",
        ),
        (
            composition(resource("x", externalRef={**ZONES, "namespace": "a-${composite.spec.zone}"})),
            "an expression in externalRef.namespace needs serviceAccountName",
        ),
        (composition(resource(readyWhen=["a == b"])), "each condition must be one expression in ${…}"),
        (composition(resource(includeWhen=["if ${a}"])), "each condition must be one expression in ${…}"),
        (composition(resource(readyWhen=["${true}"] * 17)), "must have at most 16 items"),
        (composition(resource(readyWhen=["${" + "a" * 8192 + "}"])), "may not be more than 8192 bytes"),
        (composition(resource(forEach=[{"a": "b"}])), "each list of forEach must be one expression in ${…}"),
        (composition(resource(forEach=[{"a": "${b}", "c": "${d}"}])), "must have at most 1 item"),
        (composition(resource(forEach=[{}])), "should have at least 1 properties"),
        (composition(resource(forEach=[{f"a{n}": "${b}"} for n in range(11)])), "must have at most 10 items"),
        (composition(resource(forEach=[{"each": "${b}"}])), "variables of forEach must consist of letters"),
        (composition(resource(forEach=[{"a.b": "${b}"}])), "variables of forEach must consist of letters"),
        (
            composition(resource(forEach=[{"a": "${b}"}, {"a": "${c}"}])),
            "each variable of forEach needs a name of its own",
        ),
        (
            composition(resource("a"), resource("b", forEach=[{"a": "${c}"}])),
            "a variable of forEach must not have the name of a resource",
        ),
        (composition(serviceAccountName="Builder"), "should match"),
        (composition(serviceAccountName="${composite.spec.account}"), "should match"),
        (composition(serviceAccountNamespace="platform"), "serviceAccountNamespace needs serviceAccountName"),
        (composition(serviceAccountName="builder", serviceAccountNamespace="a.b"), "should match"),
        (composition(revisionHistoryLimit=-1), "should be greater than or equal to 0"),
    ],
)
async def test_a_bad_composition_is_refused(kinds_client: Client, value: Json, message: str) -> None:
    messages = await said(kinds_client, COMPOSITIONS, value)
    assert any(message in each for each in messages), messages


@pytest.mark.parametrize(
    "changed", [{**TYPE, "kind": "Databank"}, {**TYPE, "apiVersion": "platform.example.com/v2"}]
)
async def test_the_type_of_a_composition_is_immutable(kinds_client: Client, changed: Json) -> None:
    messages = await said(kinds_client, COMPOSITIONS, composition(compositeTypeRef=changed), composition())
    assert any("compositeTypeRef is immutable" in each for each in messages), messages
    assert await said(kinds_client, COMPOSITIONS, WHOLE, composition()) == []


def revision(**spec: Json) -> Json:
    """A revision of WHOLE."""
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "CompositionRevision",
        "metadata": {"name": "databases-small-1", "labels": {"crdkeeper.dev/composition-hash": "abc"}},
        "spec": {
            **copy.deepcopy(WHOLE["spec"]),
            "compositionRef": {"name": "databases-small"},
            "revision": 1,
            **spec,
        },
    }


async def test_a_revision_is_a_copy(kinds_client: Client) -> None:
    """Also of what has no schema."""
    made = await kinds_client.request("POST", COMPOSITIONS, WHOLE)
    copied = revision(**made["spec"])
    stored = await kinds_client.request("POST", REVISIONS, copied)
    await kinds_client.request("DELETE", f"{COMPOSITIONS}/databases-small")
    await kinds_client.request("DELETE", f"{REVISIONS}/databases-small-1")
    assert stored["spec"] == copied["spec"]
    CompositionRevision.model_validate(stored)


def _renamed() -> Json:
    """Another key with the same value: to the API server's CEL equal, in an object with a schema."""
    resources = copy.deepcopy(WHOLE["spec"]["resources"])
    data = resources[0]["template"].pop("data")
    resources[0]["template"]["binaryData"] = data
    return {"resources": resources}


def _swapped() -> Json:
    first, second, *rest = copy.deepcopy(WHOLE["spec"]["resources"])
    return {"resources": [second, first, *rest]}


@pytest.mark.parametrize(
    "change",
    [
        {"revision": 2},
        {"compositionRef": {"name": "other"}},
        {"serviceAccountName": "other"},
        {"serviceAccountNamespace": "other"},
        {"revisionHistoryLimit": 1},
        {"status": None},
        {"status": {"address": "x"}},
        {"resources": [resource("only")]},
        _renamed(),
        _swapped(),
    ],
)
async def test_a_revision_is_immutable(kinds_client: Client, change: Json) -> None:
    messages = await said(kinds_client, REVISIONS, revision(**change), revision())
    assert any("a CompositionRevision is immutable" in each for each in messages), messages


async def test_labels_of_a_revision_can_change(kinds_client: Client) -> None:
    changed = revision()
    changed["metadata"]["labels"]["channel"] = "stable"
    assert await said(kinds_client, REVISIONS, changed, revision()) == []


async def test_the_columns(composite_kinds: Cluster, kinds_client: Client) -> None:
    await kinds_client.request("POST", COMPOSITIONS, composition())
    await kinds_client.request("POST", REVISIONS, revision())
    shown = composite_kinds.kubectl("get", "comp", "databases-small", "--output=wide")
    revisions = composite_kinds.kubectl("get", "comprev", "databases-small-1", "--output=wide")
    await kinds_client.request("DELETE", f"{COMPOSITIONS}/databases-small")
    await kinds_client.request("DELETE", f"{REVISIONS}/databases-small-1")
    header, row = shown.splitlines()
    columns = "NAME COMPOSITE VERSION READY REASON REVISION MESSAGE AGE"
    assert header.split() == columns.split()
    assert row.split()[:3] == ["databases-small", "Database", "platform.example.com/v1"]
    header, row = revisions.splitlines()
    assert header.split() == ["NAME", "COMPOSITION", "REVISION", "HASH", "AGE"]
    assert row.split()[:-1] == ["databases-small-1", "databases-small", "1", "abc"]
