"""The kind CompositeResourceDefinition on the API server: each of its rules, refused and accepted."""

from typing import Any

import pytest

from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.composition.acceptance import accept
from tests.cluster.composition import refusals
from tests.unit.core.composition.documents import document, version

Json = Any
PATH = "/apis/crdkeeper.dev/v1alpha1/compositeresourcedefinitions"
NAME = "databases.platform.example.com"


@pytest.fixture
def client(kinds_client: Client) -> Client:
    """A client of the cluster with the kind."""
    return kinds_client


async def said(client: Client, value: Json, old: Json = None) -> list[str]:
    """Why the API server refuses a definition, new or as an update of another."""
    return await refusals.said(client, PATH, value, old)


VERSIONS = [version("v2"), version("v1", referenceable=False)]
NAMES = {"kind": "Database", "plural": "databases"}
COLUMN = {"type": "string", "jsonPath": ".spec.engine"}


def many(number: int) -> list[str]:
    """So many names."""
    return [f"n{each}" for each in range(number)]


def limited(versions: int, columns: int, fields: int, names: int) -> Json:
    """A definition with so many of each."""
    found = [version(f"v{each}", referenceable=each == 1) for each in range(1, versions + 1)]
    found[0]["additionalPrinterColumns"] = [{**COLUMN, "name": each} for each in many(columns)]
    found[0]["selectableFields"] = [{"jsonPath": f".spec.{each}"} for each in many(fields)]
    return document(*found, names={**NAMES, "shortNames": many(names), "categories": many(names)})


@pytest.mark.parametrize(
    "value",
    [
        document(),
        document(*VERSIONS, scope="Cluster", deletion="Cascade", breakingChanges="Allow"),
        document(version("v2"), version("v1", referenceable=False, served=False)),
        document(version(deprecated=True, deprecationWarning="Use another.")),
        document(defaultCompositionRef={"name": "small"}, defaultCompositionUpdatePolicy="Manual"),
        document(defaultCompositionRef={"name": "small"}, enforcedCompositionRef={"name": "small"}),
        document(defaultCompositionRevisionSelector={"matchLabels": {"channel": "stable"}}),
        limited(64, 64, 8, 32),
    ],
)
async def test_a_good_one_is_accepted(client: Client, value: Json) -> None:
    assert await said(client, value) == []
    assert not accept(value).refused


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            document(metadata={"name": "databases.example.com"}),
            "metadata.name must be <spec.names.plural>.<spec.group>",
        ),
        (document(version(referenceable=False)), "exactly one version must be referenceable"),
        (document(version("v2"), version("v1")), "exactly one version must be referenceable"),
        (document(version(served=False)), "at least one version must be served"),
        (
            document(version("v2", served=False), version("v1", referenceable=False)),
            "the referenceable version must be served",
        ),
        (document(version(deprecationWarning="Old.")), "deprecationWarning needs deprecated: true"),
        (
            document(defaultCompositionRef={"name": "small"}, enforcedCompositionRef={"name": "large"}),
            "defaultCompositionRef has no effect beside enforcedCompositionRef",
        ),
        (document(defaultCompositionRef={}), "Required value"),
        (document(enforcedCompositionRef={"name": ""}), "should be at least 1 chars long"),
        (document(scope="Everywhere"), "Unsupported value"),
        (document(deletion="Now"), "Unsupported value"),
        (document(version("v1"), version("v1", referenceable=False)), "Duplicate value"),
        (limited(65, 0, 0, 0), "must have at most 64 items"),
        (limited(1, 65, 0, 0), "must have at most 64 items"),
        (limited(1, 0, 9, 0), "must have at most 8 items"),
        (limited(1, 0, 0, 33), "must have at most 32 items"),
    ],
)
async def test_a_bad_one_is_refused(client: Client, value: Json, message: str) -> None:
    messages = await said(client, value)
    assert any(message in each for each in messages), messages
    ours = [each.message for each in accept(value).problems]
    assert sorted(ours) == sorted(messages)


ENFORCED = {"enforcedCompositionRef": {"name": "small"}}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (document(scope="Cluster"), document(), "scope is immutable"),
        (document(), document(names={**NAMES, "kind": "Databank"}), "names.kind is immutable"),
        (document(), document(names={**NAMES, "singular": "db"}), "names.singular is immutable"),
        (
            document(names={**NAMES, "singular": "db"}),
            document(names=NAMES),
            "names.singular is immutable",
        ),
        (document(), document(group="other.example.com"), "group is immutable"),
        (document(), document(names={**NAMES, "plural": "dbs"}), "names.plural is immutable"),
        (document(**ENFORCED), document(), "enforcedCompositionRef is immutable"),
        (document(), document(**ENFORCED), "enforcedCompositionRef is immutable"),
        (
            document(**ENFORCED),
            document(enforcedCompositionRef={"name": "large"}),
            "enforcedCompositionRef is immutable",
        ),
    ],
)
async def test_what_is_immutable(client: Client, old: Json, new: Json, message: str) -> None:
    messages = await said(client, new, old)
    assert any(message in each for each in messages), messages


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (document(), document(names={**NAMES, "singular": "database", "listKind": "DatabaseList"})),
        (document(), document(names={**NAMES, "shortNames": ["db"], "categories": ["all"]})),
        (document(**ENFORCED), document(**ENFORCED, deletion="Orphan")),
        (document(), document(defaultCompositionRef={"name": "small"})),
        (document(version("v1")), document(version("v1", referenceable=False), version("v2"))),
        (document(*VERSIONS), document(version("v2"))),
    ],
)
async def test_what_can_be_changed(client: Client, old: Json, new: Json) -> None:
    assert await said(client, new, old) == []


async def test_schemas_are_stored_as_they_are(client: Client) -> None:
    odd = {
        "type": "object",
        "properties": {"spec": {"enum": [None, {"a": [1.5, None]}], "unknown": {"x": 1}}},
    }
    created = await client.request("POST", PATH, document(version(of=odd)))
    assert created["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == odd
    found = await client.request("GET", f"{PATH}/{NAME}")
    assert found["status"] == {"observedGeneration": -1}
    await client.request("DELETE", f"{PATH}/{NAME}")
