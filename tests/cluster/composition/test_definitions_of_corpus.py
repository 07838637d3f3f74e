"""The CRDs of real projects, each as a CompositeResourceDefinition: what it makes of them is the same API.

CRDKEEPER_CORPUS names the directory of the CRDs. What their schemas do to objects, another file compares.
CRDKEEPER_COMPOSED sets how many of them a composer makes.
"""

import copy
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Any

import orjson
import pytest

from crdkeeper.cluster.transport.client import JSON_PATCH, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.composer.fence import fencing
from crdkeeper.core.composition.acceptance import accept, with_server_errors
from crdkeeper.core.composition.problem import CompositeProblem
from tests.cluster.composition.composerscene import CRDS, PATH, ROLES, apply, get, gone, grant, ready
from tests.cluster.definitions.lint.variants import corpus
from tests.cluster.harness import eventually
from tests.controlplane.cluster import Cluster

COMPOSED = int(os.environ.get("CRDKEEPER_COMPOSED", "60"))
"""How many of the CRDs, at regular distances, a composer makes."""
AT_ONCE = 10
OWN_COLUMNS = {"ready", "synced", "composition", "age"}

Json = Any

COUNTS = re.compile(r"versions\[(\d+)\].schema.openAPIV3Schema.properties\[(spec|status)\].(\w+)$")
WRITTEN = re.compile(r'instead, write in x-kubernetes-validations: rule: "(.*)"$')

pytestmark = pytest.mark.skipif(not corpus(None), reason="CRDKEEPER_CORPUS names no folder of CRDs")


@pytest.fixture
async def any_rights(client: Client) -> AsyncIterator[None]:
    """The composer may count, watch and delete all objects."""
    await grant(client, "composer-corpus", ["list", "watch", "delete"], "*")
    yield
    await client.request("DELETE", f"{ROLES}/composer-corpus")


def in_another_group(crd: Json, test: str) -> Json:
    """The CRD in a group that no project uses, so that neither approval nor another test's CRD matters.

    An API server may take five minutes to delete a CRD, so that no test waits for those of another one.
    """
    found = copy.deepcopy(crd)
    group = f"{found['spec']['group'].replace('.', '-')}.{test}.example.com"
    found["metadata"] = {"name": f"{found['spec']['names']['plural']}.{group}"}
    found["spec"]["group"] = group
    return found


def as_definition(crd: Json) -> Json:
    """The CompositeResourceDefinition that a person would write for the CRD's API."""
    spec = crd["spec"]
    versions = []
    for each in spec["versions"]:
        version = {
            key: each[key]
            for key in (
                "name",
                "served",
                "deprecated",
                "deprecationWarning",
                "schema",
                "additionalPrinterColumns",
                "selectableFields",
            )
            if key in each
        }
        version["referenceable"] = each["storage"]
        if "scale" in (each.get("subresources") or {}):
            version["subresources"] = {"scale": each["subresources"]["scale"]}
        versions.append(version)
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": crd["metadata"]["name"]},
        "spec": {
            "group": spec["group"],
            "scope": spec["scope"],
            "names": spec["names"],
            "versions": versions,
        },
    }


def as_advised(definition: Json, problems: Iterable[CompositeProblem]) -> Json:
    """The definition with the rules that the findings propose in place of keywords."""
    found = copy.deepcopy(definition)
    for each in problems:
        if each.refused:
            at, written = COUNTS.search(str(each.path)), WRITTEN.search(each.message)
            assert at is not None and written is not None, (definition["metadata"]["name"], str(each))
            schema = found["spec"]["versions"][int(at[1])]["schema"]["openAPIV3Schema"]["properties"][at[2]]
            del schema[at[3]]
            schema.setdefault("x-kubernetes-validations", []).append({"rule": written[1]})
    return found


def api_of(crd: Json) -> Json:
    """What users see of a CRD besides its schemas, without what every composite has."""
    spec = crd["spec"]
    names = {**spec["names"]}
    names["categories"] = sorted(set(names.get("categories") or ()) - {"composite"})
    names.setdefault("listKind", f"{names['kind']}List")
    names.setdefault("singular", names["kind"].lower())
    versions = []
    for each in spec["versions"]:
        columns = each.get("additionalPrinterColumns") or ()
        versions.append(
            {
                "name": each["name"],
                "served": each["served"],
                "storage": each["storage"],
                "deprecated": each.get("deprecated", False),
                "warning": each.get("deprecationWarning"),
                "columns": [column for column in columns if column["name"].lower() not in OWN_COLUMNS],
                "selectable": each.get("selectableFields") or [],
                "scale": (each.get("subresources") or {}).get("scale"),
            }
        )
    return {"scope": spec["scope"], "names": names, "versions": versions}


async def _established(client: Client, path: str) -> Json:
    """The CRD once the API server serves it, or has refused its names."""
    crd = await client.request("GET", path)
    conditions = {each["type"]: each["status"] for each in (crd["status"].get("conditions") or ())}
    assert conditions.get("NonStructuralSchema") != "True", crd["metadata"]["name"]
    assert conditions.get("NamesAccepted") != "False", crd["metadata"]["name"]
    return crd if conditions.get("Established") == "True" else None


@pytest.mark.timeout(600)
async def test_every_crd_has_a_definition_that_makes_the_same_api(plane: Cluster) -> None:
    counted: Counter[str] = Counter()
    async with Client(Connection(plane.kubeconfig)) as client:
        for original in corpus(None):
            crd = in_another_group(original, "made")
            name = crd["metadata"]["name"]
            definition = as_definition(crd)
            judged = accept(definition)
            if judged.refused:
                counted["rewritten as advised"] += 1
                judged = accept(as_advised(definition, judged.problems))
            judged = with_server_errors(judged)
            assert not judged.refused, (name, [str(each) for each in judged.problems if each.refused])
            assert judged.crd is not None
            answer = await client.send("POST", CRDS, content=orjson.dumps(judged.crd))
            assert answer.code == 201, (name, answer.content.decode()[:1000])
            path = f"{CRDS}/{name}"
            live = await eventually(lambda path=path: _established(client, path))  # type: ignore[misc]
            assert api_of(live) == api_of(crd), name
            # What the composer does before it deletes a CRD must be valid for each of them.
            await client.request("PATCH", f"{path}?dryRun=All", fencing(live), content_type=JSON_PATCH)
            await client.send("DELETE", path)
            counted["made"] += 1
            counted["versions"] += len(crd["spec"]["versions"])
    print(dict(counted))


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("any_rights")
async def test_the_composer_makes_the_same_api(client: Client) -> None:
    """Definitions of real projects, some at once, under the composer's own account."""
    known = list(corpus(None))
    chosen = [in_another_group(each, "composed") for each in known[:: max(1, len(known) // COMPOSED)]]
    for start in range(0, len(chosen), AT_ONCE):
        part = {each["metadata"]["name"]: each for each in chosen[start : start + AT_ONCE]}
        for crd in part.values():
            definition = as_definition(crd)
            definition = as_advised(definition, accept(definition).problems)
            # Between versions that differ, nothing converts here.
            definition["spec"] |= {"breakingChanges": "Allow", "deletion": "Cascade"}
            await apply(client, definition)
        for name, crd in part.items():
            await ready(client, "True", "WatchingCompositeResource", name)
            assert api_of(await get(client, f"{CRDS}/{name}")) == api_of(crd), name
        for name in part:
            await client.request("DELETE", f"{PATH}/{name}")
        for name in part:
            await gone(client, f"{PATH}/{name}")
    print(f"{len(chosen)} of {len(known)} CRDs")
