"""Whether new composites of a definition have a Composition."""

from typing import Any

import pytest

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.core.composer.offering import (
    SeenComposition,
    not_composed,
    not_listed,
    offered,
    seen_composition,
)
from crdkeeper.core.composer.reasons import RIGHT_MISSING_TO_COMPOSE
from crdkeeper.core.composer.wording import rule_on_composites
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.unit.core.composition.documents import document, version

Json = Any
GROUP = "platform.example.com"
SMALL = SeenComposition("small", GROUP, "v1", "Database", True)
LARGE = SeenComposition("large", GROUP, "v1", "Database", True)
OLD = SeenComposition("old", GROUP, "v0", "Database", True)
OTHER = SeenComposition("other", GROUP, "v1", "Cache", True)
NEW = SeenComposition("small", GROUP, "v1", "Database", False)
DEFAULT = {"defaultCompositionRef": {"name": "small"}}
ENFORCED = {"enforcedCompositionRef": {"name": "small"}}


def verdict(spec: Json, compositions: list[SeenComposition] | Verdict) -> tuple[str, str, str]:
    definition = CompositeResourceDefinition.model_validate(document(**spec))
    found = offered(definition, compositions)
    return found.reason.status, found.reason.name, found.message


@pytest.mark.parametrize(
    ("spec", "compositions", "status", "reason"),
    [
        ({}, [], "False", "NoComposition"),
        ({}, [OTHER, OLD], "False", "NoComposition"),
        ({}, [SMALL, OTHER], "True", "OnlyOne"),
        ({}, [SMALL, LARGE], "True", "SeveralCompositions"),
        ({}, [NEW, OTHER], "False", "CompositionUnusable"),
        ({}, [NEW, LARGE], "True", "OnlyOne"),
        (DEFAULT, [NEW, LARGE], "False", "CompositionUnusable"),
        (ENFORCED, [NEW], "False", "CompositionUnusable"),
        ({}, not_listed(), "Unknown", "CompositionsUnknown"),
        (ENFORCED, not_listed("no"), "Unknown", "CompositionsUnknown"),
        (DEFAULT, [LARGE], "False", "CompositionMissing"),
        (DEFAULT, [SMALL, LARGE], "True", "Default"),
        ({"defaultCompositionRef": {"name": "old"}}, [OLD, SMALL], "False", "CompositionMismatch"),
        (ENFORCED, [], "False", "CompositionMissing"),
        (ENFORCED, [SMALL], "True", "Enforced"),
        ({"enforcedCompositionRef": {"name": "other"}}, [OTHER], "False", "CompositionMismatch"),
    ],
)
def test_the_reason(
    spec: Json, compositions: list[SeenComposition] | Verdict, status: str, reason: str
) -> None:
    assert verdict(spec, compositions)[:2] == (status, reason)


@pytest.mark.parametrize(
    ("spec", "compositions", "reason"),
    [
        ({}, [SMALL], "RightMissing"),
        ({}, [NEW, LARGE], "RightMissing"),
        # A composite may choose the other one.
        (DEFAULT, [LARGE], "RightMissing"),
        # Revisions stay when their Composition is gone, or unusable.
        ({}, [], "RightMissing"),
        ({}, [NEW, OLD, OTHER], "RightMissing"),
        ({}, not_listed(), "CompositionsUnknown"),
    ],
)
def test_what_keeps_composites_from_being_composed_comes_first(
    spec: Json, compositions: list[SeenComposition] | Verdict, reason: str
) -> None:
    definition = CompositeResourceDefinition.model_validate(document(**spec))
    denied = Verdict(RIGHT_MISSING_TO_COMPOSE, "the composer lacks rights")
    assert offered(definition, compositions, denied).reason.name == reason


@pytest.mark.parametrize(
    ("spec", "compositions", "status", "reason"),
    [
        ({}, [SMALL], "True", "SomeNotComposed"),
        (DEFAULT, [SMALL, LARGE], "True", "SomeNotComposed"),
        (DEFAULT, [LARGE], "False", "CompositionMissing"),
        ({}, [], "False", "NoComposition"),
        ({}, not_listed(), "Unknown", "CompositionsUnknown"),
    ],
)
def test_what_concerns_only_some_composites_is_said_besides(
    spec: Json, compositions: list[SeenComposition] | Verdict, status: str, reason: str
) -> None:
    definition = CompositeResourceDefinition.model_validate(document(**spec))
    some = not_composed("shop/a", "denied by a policy", others=True)
    found = offered(definition, compositions, some)
    assert (found.reason.status, found.reason.name) == (status, reason)
    usual = offered(definition, compositions).message
    more = "" if isinstance(compositions, Verdict) else f" {some.message}"
    assert found.message == f"{usual}{more}"
    assert not_composed("shop/a", "denied", others=False).reason.status == "False"


@pytest.mark.parametrize(
    ("deletion", "composed", "rule"),
    [
        ("Protect", False, "resources: [databases], verbs: [list, watch]"),
        ("Cascade", False, "resources: [databases], verbs: [list, watch, delete]"),
        ("Protect", True, "resources: [databases, databases/status], verbs: [get, list, watch, patch]"),
        (
            "Cascade",
            True,
            "resources: [databases, databases/status], verbs: [get, list, watch, patch, delete]",
        ),
    ],
)
def test_the_rule_is_all_that_the_composer_needs(deletion: str, composed: bool, rule: str) -> None:
    definition = CompositeResourceDefinition.model_validate(document(deletion=deletion))
    said = rule_on_composites(definition, composed=composed)
    assert said.endswith(f"and this rule: {{apiGroups: [platform.example.com], {rule}}}")


def test_compositions_that_may_not_be_listed_are_said_with_the_rule() -> None:
    *_, message = verdict({}, not_listed("compositions.crdkeeper.dev is forbidden"))
    assert message == (
        "The composer cannot list Compositions or CompositionRevisions. compositions.crdkeeper.dev is "
        "forbidden. Apply manifests/composer, whose ClusterRole has the missing rule: {apiGroups: "
        "[crdkeeper.dev], resources: [compositions], verbs: [list, watch]}"
    )


def test_a_version_that_is_not_served_is_named() -> None:
    *_, message = verdict({"defaultCompositionRef": {"name": "old"}}, [OLD])
    said = "spec.defaultCompositionRef names the Composition old, which is for the version v0, "
    assert message == f"{said}which is not served."


def test_any_served_version_will_do() -> None:
    versions = [version("v1"), version("v0", referenceable=False)]
    definition = CompositeResourceDefinition.model_validate(document(*versions))
    assert offered(definition, [OLD]).reason.status == "True"


def test_many_are_not_all_named() -> None:
    many = [SeenComposition(f"c-{number}", GROUP, "v1", "Database", True) for number in range(8)]
    assert "c-0, c-1, c-2, c-3, c-4 and 3 more." in verdict({}, many)[2]


def test_what_to_create_is_said() -> None:
    assert "{apiVersion: platform.example.com/v1, kind: Database}" in verdict({}, [])[2]


def test_a_composition_is_reduced() -> None:
    found = {
        "metadata": {"name": "small"},
        "spec": {"compositeTypeRef": {"apiVersion": f"{GROUP}/v1", "kind": "Database"}},
    }
    assert seen_composition(found) == NEW
    assert seen_composition({**found, "status": {"revision": 0}}) == NEW
    assert seen_composition({**found, "status": {"revision": 2}}) == SMALL
