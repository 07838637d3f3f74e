"""The fields that every composite has beside those of its definition, as the API server serves them."""

from typing import Any

import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, ApiError
from crdkeeper.core.composition.injected import SETTINGS, STATUS_FIELDS
from tests.cluster.composition.authoring import Author, Definition, spec_with
from tests.unit.core.composition.documents import schema, version

Json = Any
FORGED: Json = {"type": "integer"}
"""What a definition says of fields that it cannot have."""


def condition(type_: str, status: str) -> Json:
    said = {"reason": "Tried", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    return {"type": type_, "status": status, **said}


@pytest.fixture
async def thing(author: Author, group: str) -> Definition:
    """A definition whose schema has all of these fields, of another type, and one that can be selected by."""
    thing = Definition(group, "thing")
    spec = spec_with()
    spec["properties"][SETTINGS] = FORGED
    status = {"type": "object", "properties": dict.fromkeys(STATUS_FIELDS, FORGED)}
    one = version(of=schema(spec, status), selectableFields=[{"jsonPath": ".spec.engine"}])
    await author.apply(thing, versions=[one])
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    return thing


async def test_they_are_crdkeepers_whatever_the_definition_says(author: Author, thing: Definition) -> None:
    path = f"{thing.objects}/a"
    refused: list[tuple[Json, str]] = [
        (1, "must be of type object"),
        ({"compositionUpdatePolicy": "Never"}, "Unsupported value"),
        ({"compositionRef": {}}, "name: Required value"),
        ({"compositionRevisionRef": {"name": ""}}, "should be at least 1 chars long"),
    ]
    for wrong, refusal in refused:
        body = {"spec": {SETTINGS: wrong}}
        with pytest.raises(ApiError, match=refusal):
            await author.client.request("PATCH", path, body, content_type=MERGE_PATCH)
    settings = {
        "compositionRef": {"name": "small"},
        "compositionSelector": {"matchLabels": {"size": "small"}},
        "compositionRevisionRef": {"name": "small-1"},
        "compositionRevisionSelector": {"matchLabels": {"channel": "stable"}},
        "compositionUpdatePolicy": "Manual",
    }
    body = {"spec": {SETTINGS: settings}}
    found = await author.client.request("PATCH", path, body, content_type=MERGE_PATCH)
    assert found["spec"][SETTINGS] == settings
    assert found["status"] == {"observedGeneration": -1}


async def test_conditions_of_several_writers_are_merged_by_type(author: Author, thing: Definition) -> None:
    head = {"apiVersion": f"{thing.group}/v1", "kind": thing.kind, "metadata": {"name": "a"}}
    for manager, said in (("one", condition("Ready", "True")), ("other", condition("Healthy", "False"))):
        body = {**head, "status": {"conditions": [said]}}
        path = f"{thing.objects}/a/status?fieldManager={manager}"
        found = await author.client.request("PATCH", path, body, content_type=APPLY_PATCH)
    assert {each["type"]: each["status"] for each in found["status"]["conditions"]} == {
        "Ready": "True",
        "Healthy": "False",
    }


async def test_fields_can_be_selected_by(author: Author, thing: Definition) -> None:
    await author.put(f"{thing.objects}/b", {**thing.composite("b"), "spec": {"engine": "Postgres"}})
    found = await author.client.request("GET", f"{thing.objects}?fieldSelector=spec.engine%3DMySQL")
    assert [each["metadata"]["name"] for each in found["items"]] == ["a"]
