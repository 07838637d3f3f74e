"""What Crossplane's documentation shows of definitions, imported and applied: each becomes an API that works.

The definitions are written for these tests, with the fields of the documented ones. What the command prints
is applied as it is.
"""

import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from crdkeeper.cli import main
from crdkeeper.cluster.transport.client import MERGE_PATCH, ApiError, Client
from tests.cluster.composition.composerscene import (
    CRDS,
    LABEL,
    PATH,
    clean_up,
    conditions,
    delete,
    gone,
    has,
    ready,
)
from tests.cluster.harness import Operator, eventually
from tests.controlplane.cluster import Cluster
from tests.unit.core.importing.crossplanes import A_FIELD_MORE, EXAMPLES

Json = Any
NAME = "stores.example.org"
NO_COUNTERPART = {
    "v1, with claims and connection secrets": [
        "spec.scope: LegacyCluster becomes Cluster",
        "spec.claimNames: dropped: crdkeeper has no claims",
        "spec.connectionSecretKeys: dropped: crdkeeper makes no connection secrets",
    ],
    "a webhook converts": ["spec.conversion: dropped"],
    "LegacyCluster of v2": [
        "spec.scope: LegacyCluster becomes Cluster",
        "spec.connectionSecretKeys: dropped: crdkeeper makes no connection secrets",
    ],
}
"""Of each example, what a user must decide."""
OWNER = {"team": "search", "desk": "4b"}
CHANGES = {"rules": {"size": "L"}}
"""Of a composite, where the region cannot be changed."""
REFUSED = {"rules": ({"region": "south"}, "failed rule: self.spec.region == oldSelf.spec.region")}
"""A change of a composite that its own rules refuse."""
CHOICES = (
    "defaultCompositionRef",
    "defaultCompositionUpdatePolicy",
    "defaultCompositionRevisionSelector",
    "enforcedCompositionRef",
)
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "compose-stores", "labels": {LABEL: "true"}},
    "rules": [{"apiGroups": ["example.org"], "resources": ["stores"], "verbs": ["list", "watch", "delete"]}],
}
AGGREGATED = ("get", "clusterrole/crdkeeper-composites", "--output=jsonpath={.rules[*].resources[*]}")


@pytest.fixture(scope="module")
def rights_on_stores(composer: Operator, plane: Cluster) -> Iterator[None]:
    """The composer may count, watch and delete stores."""
    role = json.dumps(ROLE)
    plane.kubectl("apply", "--server-side", "--filename=-", input=role)
    deadline = time.monotonic() + 120
    while "stores" not in plane.kubectl(*AGGREGATED).split():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    yield
    plane.kubectl("delete", "--filename=-", input=role)


@pytest.fixture
async def client(client: Client) -> AsyncIterator[Client]:
    """An admin; a test that failed leaves nothing of the API that all tests have in common."""
    yield client
    await clean_up(client, NAME)


def imported(folder: Path, example: Json) -> Result:
    """`crdkeeper compose import FILE`."""
    file = folder / "crossplane.yaml"
    file.write_text(yaml.safe_dump(example, sort_keys=False))
    return CliRunner().invoke(main, ["compose", "import", str(file)])


def store(definition: Json) -> tuple[str, Json]:
    """The collection of its referenceable version, and a composite for it."""
    spec = definition["spec"]
    (version,) = (each for each in spec["versions"] if each["referenceable"])
    root = f"/apis/{spec['group']}/{version['name']}"
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    value = {
        "apiVersion": f"{spec['group']}/{version['name']}",
        "kind": spec["names"]["kind"],
        "metadata": {"name": "books"},
        "spec": {"region": "north", **({"owner": OWNER} if "owner" in fields else {})},
    }
    return f"{root}/stores" if spec["scope"] == "Cluster" else f"{root}/namespaces/default/stores", value


def check_same_api(example: Json, definition: Json, crd: Json) -> None:
    """Checks that the CRD is what Crossplane's definition says, and that composites choose alike."""
    given, made = example["spec"], crd["spec"]
    names = {
        **made["names"],
        "categories": [each for each in made["names"]["categories"] if each != "composite"],
    }
    assert names.items() >= given["names"].items()
    for old, new in zip(given["versions"], made["versions"], strict=True):
        same = ("name", "served", "deprecated", "deprecationWarning")
        assert {each: new.get(each) for each in same} == {each: old.get(each) for each in same}
        assert new["storage"] == old["referenceable"]
        columns = old.get("additionalPrinterColumns", [])
        assert new["additionalPrinterColumns"][: len(columns)] == columns
        assert new["subresources"] == {"status": {}, **old.get("subresources", {})}
    for part, texts in given.get("metadata", {}).items():
        assert crd["metadata"][part].items() >= texts.items()
    chosen = {each: definition["spec"].get(each) for each in CHOICES}
    default = {"defaultCompositionUpdatePolicy": "Automatic"}
    assert chosen == {each: {**default, **given}.get(each) for each in CHOICES}


async def served(client: Client, path: str) -> None:
    """Returns when the API server serves a collection."""

    async def look() -> bool:
        return (await client.send("GET", f"{path}?limit=1")).code == 200

    await eventually(look)


@pytest.mark.usefixtures("rights_on_stores")
@pytest.mark.parametrize("name", EXAMPLES)
async def test_an_example_works(client: Client, plane: Cluster, tmp_path: Path, name: str) -> None:
    result = imported(tmp_path, EXAMPLES[name])
    decide = [each for each in result.stderr.splitlines() if ": decide: " in each]
    expected = NO_COUNTERPART.get(name, [])
    assert len(decide) == len(expected)
    for said, text in zip(decide, expected, strict=True):
        assert f": decide: {text}" in said
    assert result.exit_code == (1 if expected else 0)

    plane.kubectl("apply", "--server-side", "--filename=-", input=result.stdout)
    definition = await ready(client, "True", "WatchingCompositeResource", NAME)
    check_same_api(EXAMPLES[name], definition, await client.request("GET", f"{CRDS}/{NAME}"))
    path, value = store(yaml.safe_load(result.stdout))
    await served(client, path)
    await client.request("POST", path, value)

    with pytest.raises(ApiError, match=r"spec\.region: Required value"):
        await client.request("POST", path, {**value, "metadata": {"name": "none"}, "spec": {}})
    change = CHANGES.get(name, {"region": "south"})
    changed = await client.request("PATCH", f"{path}/books", {"spec": change}, content_type=MERGE_PATCH)
    assert changed["spec"].items() >= {**value["spec"], **change}.items()
    if name in REFUSED:
        change, refusal = REFUSED[name]
        with pytest.raises(ApiError, match=re.escape(refusal)):
            await client.request("PATCH", f"{path}/books", {"spec": change}, content_type=MERGE_PATCH)
    if "replicas" in json.dumps(EXAMPLES[name]):
        at_status = f"{path}/books/status"
        found = await client.request(
            "PATCH", at_status, {"status": {"replicas": 2}}, content_type=MERGE_PATCH
        )
        assert found["status"]["replicas"] == 2

    await delete(client, f"{path}/books")
    await delete(client, f"{PATH}/{NAME}")
    await gone(client, f"{CRDS}/{NAME}")


@pytest.mark.usefixtures("rights_on_stores")
async def test_versions_between_which_a_field_is_lost(client: Client, plane: Cluster, tmp_path: Path) -> None:
    """Crossplane takes them; here a person decides, and the composer says the same as the import."""
    result = imported(tmp_path, A_FIELD_MORE)
    assert result.exit_code == 1
    lost = "v1 and v1alpha1: spec.size: only v1 has the field"
    assert lost in result.stderr
    plane.kubectl("apply", "--server-side", "--filename=-", input=result.stdout)
    found = await has(client, "Accepted", "False", "ConversionMissing", NAME)
    assert lost in conditions(found)["Accepted"]["message"]

    definition = yaml.safe_load(result.stdout)
    definition["spec"]["breakingChanges"] = "Allow"
    plane.kubectl("apply", "--server-side", "--filename=-", input=json.dumps(definition))
    await ready(client, "True", "WatchingCompositeResource", NAME)
    path, value = store(definition)
    await served(client, path)
    await client.request("POST", path, {**value, "spec": {"region": "north", "size": "S"}})
    old = path.replace("/v1/", "/v1alpha1/")
    assert (await client.request("GET", f"{old}/books"))["spec"] == {"region": "north"}
    await delete(client, f"{path}/books")
    await delete(client, f"{PATH}/{NAME}")
    await gone(client, f"{CRDS}/{NAME}")
