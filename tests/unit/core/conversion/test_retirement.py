"""A conversion remains as long as any stored object could need it."""

from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.apiserver.definitions.facts import DefinitionFacts, VersionFacts
from crdkeeper.core.conversion.retirement import still_needed, use
from crdkeeper.core.conversion.target import ConversionOwner, configured_by


def definition(stored: tuple[str, ...], *, served: tuple[str, ...]) -> DefinitionFacts:
    values: dict[str, Any] = dict.fromkeys(
        ("uid", "resource_version", "group", "plural", "kind"), "things"
    ) | {"generation": 1, "namespaced": True, "labels": {}, "established": True, "terminating": False}
    versions = tuple(VersionFacts(each, each in served, each == "v2") for each in ("v1", "v2"))
    return DefinitionFacts(
        **values, name="things.example.com", versions=versions, stored_versions=stored, changed_at=None
    )


@pytest.mark.parametrize(
    ("stored", "served", "objects", "words"),
    [
        (("v1", "v2"), ("v1", "v2"), True, "crdkeeper migrate things.example.com"),
        (("v1", "v2"), ("v2",), None, "may still be stored at v1"),
        (("v2",), ("v1", "v2"), True, "v1 of things.example.com would be served without"),
        (("v2",), ("v1", "v2"), None, "served: false"),
        (("v2",), ("v2",), True, ""),
        (("v1", "v2"), ("v1", "v2"), False, ""),
    ],
)
def test_who_needs_it(stored: Any, served: Any, objects: bool | None, words: str) -> None:
    found = still_needed(definition(stored, served=served), objects)
    assert (words in found) if words else not found


@pytest.mark.parametrize(
    ("held", "served", "objects", "reported"),
    [
        (ConversionOwner.OURS, ("v1", "v2"), True, ("True", "Needed")),
        (ConversionOwner.OURS, ("v1", "v2"), None, ("True", "Needed")),
        (ConversionOwner.OURS, ("v1", "v2"), False, ("False", "NotNeeded")),
        (ConversionOwner.OURS, ("v2",), True, ("False", "NotNeeded")),
        (ConversionOwner.OTHER, ("v1", "v2"), True, ("False", "NotConfigured")),
        (ConversionOwner.NOBODY, ("v1", "v2"), True, ("False", "NotConfigured")),
    ],
)
def test_what_is_in_use(
    held: ConversionOwner, served: Any, objects: bool | None, reported: tuple[str, str]
) -> None:
    found = use(definition(("v2",), served=served), held, objects)
    assert (found.status, found.reason) == reported


def test_nothing_is_in_use_while_the_crd_is_being_deleted() -> None:
    going = replace(definition(("v1", "v2"), served=("v1", "v2")), terminating=True)
    assert use(going, ConversionOwner.OURS, True).reason == "DefinitionTerminating"


def test_nothing_is_in_use_without_the_crd() -> None:
    assert use(None, ConversionOwner.NOBODY, None).reason == "NoDefinition"


@pytest.mark.parametrize(
    ("manager", "operation", "fields", "ours"),
    [
        ("us", "Apply", {"f:spec": {"f:conversion": {}}}, True),
        ("them", "Apply", {"f:spec": {"f:conversion": {}}}, False),
        ("us", "Update", {"f:spec": {"f:conversion": {}}}, False),
        ("us", "Apply", {"f:spec": {"f:versions": {}}}, False),
        ("us", "Apply", {}, False),
        ("us", "Apply", None, False),
    ],
)
def test_whose_the_conversion_of_a_crd_is(manager: str, operation: str, fields: Any, ours: bool) -> None:
    entry = {"manager": manager, "operation": operation, "fieldsV1": fields}
    assert configured_by({"metadata": {"managedFields": [entry]}}, "us") is ours
    assert not configured_by({"metadata": {}}, "us")
