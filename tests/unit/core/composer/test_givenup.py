"""What is removed from a CRD because its definition gave it up."""

from typing import Any

import pytest

from crdkeeper.core.composer.givenup import given_up, without_short_names

Json = Any
ME = "crdkeeper-composer"


def managed(manager: str, operation: str, *labels: str) -> Json:
    fields: Json = {"f:metadata": {"f:labels": {f"f:{each}": {} for each in labels}}}
    return {"manager": manager, "operation": operation, "fieldsV1": fields}


def live(*entries: Json) -> Json:
    labels = {"example.com/team": "a", "kept": "b"}
    return {"metadata": {"labels": labels, "managedFields": [*entries, {"manager": "odd"}]}}


MADE = {"metadata": {"labels": {"kept": "b"}, "annotations": {"owner": "u"}}}
TEAM = {"labels": {"example.com/team": None}}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (
            [
                managed(ME, "Apply", "example.com/team", "kept"),
                managed("kubectl", "Apply", "example.com/team"),
            ],
            {},
        ),
        (
            [
                managed(ME, "Apply", "example.com/team"),
                managed("kubectl", "Update", "example.com/team"),
                managed("flux", "Apply", "example.com/team"),
            ],
            {},
        ),
        ([managed(ME, "Apply", "example.com/team"), managed("kubectl", "Update", "example.com/team")], TEAM),
        ([managed(ME, "Apply", "example.com/team"), managed(ME, "Update", "example.com/team")], TEAM),
        ([managed(ME, "Apply", "example.com/team", "kept")], {}),
        ([managed(ME, "Apply", "kept"), managed("kubectl", "Apply", "example.com/team", "kept")], {}),
        ([managed(ME, "Apply", "gone"), managed("kubectl", "Apply", "gone")], {}),
        ([], {}),
    ],
    ids=["applied", "applied, too", "updated", "by itself", "its own", "of others", "not there", "of nobody"],
)
def test_labels(entries: list[Json], expected: Json) -> None:
    assert given_up(live(*entries), MADE, ME) == expected


def test_a_crd_without_managers() -> None:
    assert given_up({"metadata": {"labels": {"a": "b"}}}, MADE, ME) == {}


def named(**names: Json) -> Json:
    return {"spec": {"scope": "Namespaced", "names": {"kind": "Database", **names}}}


@pytest.mark.parametrize(
    ("made", "live", "expected"),
    [
        (named(), named(shortNames=["db"]), named(shortNames=[])),
        (named(), named(), named()),
        (named(), None, named()),
        (named(shortNames=["db"]), named(shortNames=["dbs"]), named(shortNames=["db"])),
    ],
    ids=["to remove", "none to remove", "no CRD", "its own"],
)
def test_short_names(made: Json, live: Json, expected: Json) -> None:
    assert without_short_names(made, live) == expected
