"""What is refused to protect a CRD. The API server's answers to the same are in tests/cluster."""

import copy
from typing import Any

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.apiserver.definitions.facts import ALLOW_DELETION
from crdkeeper.core.policy.protection import protection_refusal
from tests.unit.builders import NAME, crd, policy

Json = dict[str, Any]
OLD = crd(labels={"team": "a"})
DELETED, UNSERVED = "all of its objects would be deleted", "no version would be served"


def protects(name: str = "p", *, deletion: str = "Deny", **spec: Any) -> DefinitionPolicy:
    return policy(name, protection={"deletion": deletion}, **spec)


def serving(*versions: str, **metadata: Any) -> Json:
    return crd(served=versions, labels={"team": "a"}, **metadata)


def test_the_refusal_names_the_policy_and_the_way_out() -> None:
    assert protection_refusal([protects("b"), protects("a", deletion="Allow")], OLD, None) == (
        f"DefinitionPolicy b protects it (spec.protection.deletion), because {DELETED}. "
        f"To allow it: kubectl annotate crd {NAME} {ALLOW_DELETION}=REASON"
    )


def test_the_first_by_name_is_named() -> None:
    said = protection_refusal([protects("c"), protects("b"), protects("a", groups=["other.io"])], OLD, None)
    assert said.startswith("DefinitionPolicy b ")


@pytest.mark.parametrize(
    ("policies", "refused"),
    [
        ([], False),
        ([protects()], True),
        ([protects(deletion="Allow")], False),
        ([protects(groups=["*.com"])], True),
        ([protects(groups=["*.io"])], False),
        ([protects(selector={"matchLabels": {"team": "a"}})], True),
        ([protects(selector={"matchLabels": {"team": "b"}})], False),
        ([protects(groups=["*.io"], selector={"matchLabels": {"team": "a"}})], False),
        ([protects("a", groups=["*.io"]), protects("b")], True),
    ],
)
def test_the_policies_that_select_it_count(policies: list[DefinitionPolicy], refused: bool) -> None:
    assert bool(protection_refusal(policies, OLD, None)) is refused
    assert bool(protection_refusal(policies, OLD, serving())) is refused


def test_labels_and_group_before_the_change_count() -> None:
    new = serving()
    new["metadata"]["labels"] = {}
    mine = protects(selector={"matchLabels": {"team": "a"}})
    assert protection_refusal([mine], OLD, new)
    assert not protection_refusal([mine], new | {"spec": OLD["spec"]}, serving())


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        (("v1", "v2"), (), True),
        (("v1",), (), True),
        (("v1", "v2"), ("v1",), False),
        (("v1",), ("v2",), False),
        ((), (), False),
        ((), ("v1",), False),
    ],
)
def test_only_the_last_version_that_is_served_matters(
    old: tuple[str, ...], new: tuple[str, ...], refused: bool
) -> None:
    said = protection_refusal([protects()], serving(*old), serving(*new))
    assert bool(said) is refused
    assert (UNSERVED in said) is refused
    assert DELETED in protection_refusal([protects()], serving(*old), None)


@pytest.mark.parametrize(("reason", "refused"), [("moved", False), ("", True), (None, True), (" ", False)])
def test_a_reason_allows_it(reason: str | None, refused: bool) -> None:
    annotations = {"other": "x"} if reason is None else {ALLOW_DELETION: reason}
    annotated = crd(labels={"team": "a"}, annotations=annotations)
    assert bool(protection_refusal([protects()], annotated, None)) is refused
    # With a change, the annotation may come, but not go.
    assert bool(protection_refusal([protects()], OLD, serving(annotations=annotations))) is refused
    assert protection_refusal([protects()], annotated, serving())


def test_crdkeeper_can_always_be_removed() -> None:
    own = copy.deepcopy(OLD)
    own["spec"]["group"] = "crdkeeper.dev"
    assert not protection_refusal([protects()], own, None)
