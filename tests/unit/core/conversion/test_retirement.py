"""A conversion stays as long as anything that is stored could need it."""

from typing import Any

import pytest

from crdkeeper.core.conversion.retirement import still_needed
from crdkeeper.core.definition.facts import DefinitionFacts, VersionFacts


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
