"""The rule by which an API refuses new composites, in CRDs of all kinds."""

import copy
from typing import Any

import pytest

from crdkeeper.core.composer.fence import fencing, is_fenced, is_partly_fenced, takes_composites, unfencing
from tests.unit.jsonpatch import patched

Json = Any
OWN = {"rule": "self.spec.size > 0", "message": "too small"}
SAME_RULE = {"rule": "oldSelf.hasValue()", "optionalOldSelf": True, "message": "a user's own"}


def crd(*roots: Json) -> Json:
    """A CRD with a version for each of these schemas."""
    return {
        "metadata": {"name": "databases.platform.example.com"},
        "spec": {
            "versions": [
                {"name": f"v{number}", "schema": {"openAPIV3Schema": {"type": "object", **root}}}
                for number, root in enumerate(roots)
            ]
        },
    }


def rules(*found: Json) -> Json:
    return {"x-kubernetes-validations": list(found)}


@pytest.mark.parametrize(
    "roots",
    [
        ({},),
        (rules(OWN),),
        (rules(SAME_RULE, OWN), {}, rules(OWN, OWN)),
        ({"x-kubernetes-preserve-unknown-fields": True}, {"properties": {}}),
    ],
)
def test_a_fence_is_put_up_and_taken_off(roots: tuple[Json, ...]) -> None:
    before = crd(*roots)
    assert not is_partly_fenced(before)
    fenced = patched(before, fencing(before))
    assert is_fenced(fenced)
    assert fencing(fenced) == []
    assert [each["schema"]["openAPIV3Schema"]["type"] for each in fenced["spec"]["versions"]]
    assert patched(fenced, unfencing(fenced)) == before
    assert unfencing(before) == []


def test_a_version_that_is_added_has_none() -> None:
    before = crd({}, rules(OWN))
    fenced = patched(before, fencing(before))
    fenced["spec"]["versions"].insert(1, copy.deepcopy(crd(rules(OWN))["spec"]["versions"][0]))
    assert not is_fenced(fenced)
    assert is_partly_fenced(fenced)
    again = patched(fenced, fencing(fenced))
    assert is_fenced(again)
    assert not is_partly_fenced(patched(again, unfencing(again)))
    assert not is_partly_fenced(patched(fenced, unfencing(fenced)))


def test_one_that_stands_twice_goes_as_a_whole() -> None:
    before = crd(rules(OWN))
    (added,) = fencing(before)
    twice = patched(before, [added, added])
    assert patched(twice, unfencing(twice)) == before


@pytest.mark.parametrize(
    ("names", "established", "takes"),
    [("True", "True", True), ("True", "False", True), ("False", "True", True), ("False", "False", False)],
)
def test_an_api_takes_composites_as_soon_as_its_names_are_accepted(
    names: str, established: str, takes: bool
) -> None:
    conditions = [
        {"type": "NamesAccepted", "status": names},
        {"type": "Established", "status": established},
        {"type": "Other", "status": "True"},
    ]
    assert takes_composites({"status": {"conditions": conditions}}) == takes
    assert not takes_composites({})


def test_a_version_without_a_schema_has_none() -> None:
    old = {"metadata": {"name": "databases.platform.example.com"}, "spec": {"versions": [{"name": "v1"}]}}
    assert not is_partly_fenced(old)
    assert unfencing(old) == []


def test_one_of_another_release_is_one_too() -> None:
    before = crd(rules(OWN), {})
    fenced = patched(before, fencing(before))
    for each in fenced["spec"]["versions"]:
        each["schema"]["openAPIV3Schema"]["x-kubernetes-validations"][-1] |= {
            "message": "the CompositeResourceDefinition databases.platform.example.com goes: nothing new",
            "reason": "FieldValueInvalid",
        }
    assert is_fenced(fenced)
    assert fencing(fenced) == []
    assert patched(fenced, unfencing(fenced)) == before
