"""Which revision a Composition needs."""

import json
from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.api.compositionrevision import HASH_LABEL, CompositionRevision
from crdkeeper.core.conversion.nesting import loads
from crdkeeper.core.revisions.content import (
    COMPOSITION_LABEL,
    MOST_LEVELS,
    NewRevision,
    SeenRevision,
    changed_part,
    content_of,
    is_too_deep,
    label_of,
    name_of,
    newest,
    seen_revision,
    wanted,
)
from tests.unit.core.revisions.revisions import composition, history


def needed(of: object, revisions: list[SeenRevision], last: int = 0) -> tuple[str, bool]:
    """The name of the revision that is needed, and whether it is new."""
    found = wanted(content_of(of), revisions, last)  # type: ignore[arg-type]
    return found.name, isinstance(found, NewRevision)


def test_the_first_revision_copies_spec_and_labels() -> None:
    made = wanted(content_of(composition(tier="gold")), [], 0)
    assert isinstance(made, NewRevision)
    found = made.to_object()
    revision = CompositionRevision.model_validate(found)
    assert (revision.metadata.name, revision.spec.revision) == ("small-1", 1)
    assert found["spec"] == {
        **composition()["spec"],
        "compositionRef": {"name": "small"},
        "revision": 1,
    }
    labels = found["metadata"]["labels"]
    assert labels == {"tier": "gold", COMPOSITION_LABEL: "small", HASH_LABEL: labels[HASH_LABEL]}


def test_the_same_content_needs_no_other() -> None:
    assert needed(composition("a"), history("a")) == ("small-1", False)
    limited = composition("a")
    limited["spec"]["revisionHistoryLimit"] = 3
    assert needed(limited, history("a")) == ("small-1", False)


def test_content_that_comes_again_gets_a_new_number() -> None:
    assert [each.number for each in history("a", "b", "a", "a")] == [1, 2, 3]
    assert needed(composition("b"), history("a", "b", "a")) == ("small-4", True)


def test_labels_are_content() -> None:
    assert needed(composition("a", tier="gold"), history("a")) == ("small-2", True)


@pytest.mark.parametrize("label", ["app.kubernetes.io/instance", "argocd.argoproj.io/instance"])
def test_labels_by_which_argo_cd_prunes_are_not_copied(label: str) -> None:
    assert needed(composition("a", **{label: "platform"}), history("a")) == ("small-1", False)


def test_the_hash_cannot_be_given_by_the_composition() -> None:
    made = wanted(content_of(composition("a", **{HASH_LABEL: "0", COMPOSITION_LABEL: "other"})), [], 0)
    assert isinstance(made, NewRevision)
    labels = made.to_object()["metadata"]["labels"]
    assert labels[COMPOSITION_LABEL] == "small"
    assert labels[HASH_LABEL] == made.content.hash != "0"


def test_a_hash_that_was_forged_does_not_make_other_content_current() -> None:
    (first,) = history("a")
    forged = replace(first, labels={**first.labels, HASH_LABEL: content_of(composition("b")).hash})
    assert needed(composition("b"), [forged]) == ("small-2", True)


def test_a_hash_that_was_removed_leads_to_a_new_revision() -> None:
    (first,) = history("a")
    assert needed(composition("a"), [replace(first, labels={})]) == ("small-2", True)


def test_labels_that_people_set_later_do_not_matter() -> None:
    (first,) = history("a")
    promoted = replace(first, labels={**first.labels, "channel": "stable"})
    assert needed(composition("a"), [promoted]) == ("small-1", False)


def test_a_revision_in_deletion_is_not_used_and_its_number_is_not_given_again() -> None:
    first, second = history("a", "b")
    going = replace(second, deleted=True)
    assert newest([first, going]) == first
    assert needed(composition("b"), [first, going]) == ("small-3", True)
    assert needed(composition("a"), [first, going]) == ("small-1", False)


def test_the_number_of_a_revision_that_was_deleted_is_not_given_again() -> None:
    assert needed(composition("c"), history("a"), last=2) == ("small-3", True)


def test_names_that_are_taken_are_passed() -> None:
    (foreign,) = history("a", name="other")
    assert needed(composition("a"), [replace(foreign, name="small-1")]) == ("small-2", True)


def test_revisions_of_other_compositions_do_not_count() -> None:
    assert needed(composition("a", name="small-1"), history("a", "b")) == ("small-1-1", True)


LONG = "a" * 250 + ".b"


def test_long_names() -> None:
    other = "a" * 250 + ".c"
    names = {name_of(each, number) for each in (LONG, other) for number in (1, 2, 1_000_000)}
    assert len(names) == 6
    assert all(len(each) <= 253 for each in names)
    assert name_of("a" * 251, 1) == "a" * 251 + "-1"
    assert (label_of("a" * 63), len(label_of("a" * 64))) == ("a" * 63, 32)
    assert label_of(LONG) != label_of(other)


@pytest.mark.parametrize("opening", ['{"x":', "["])
def test_what_is_nested_too_deep(opening: str) -> None:
    def spec(levels: int) -> Any:
        closing = "}" if opening.startswith("{") else "]"
        return {"a": [], "b": loads(opening * levels + "1" + closing * levels)}

    assert not is_too_deep(spec(MOST_LEVELS - 1))
    assert is_too_deep(spec(MOST_LEVELS))
    assert is_too_deep(spec(2000))


def test_content_is_the_same_however_it_was_read() -> None:
    deepest = composition("a")
    text = '{"<é":' * (MOST_LEVELS - 5) + '{"b": 1.0, "a": "\\u003c"}' + "}" * (MOST_LEVELS - 5)
    deepest["spec"]["resources"][0]["template"]["data"] = json.loads(text)
    assert not is_too_deep(deepest["spec"])
    ways = ("%s", '{"type": "ADDED", "object": %s}', '{"items": [%s]}')
    read = [loads(way % json.dumps(deepest)) for way in ways]
    objects = [read[0], read[1]["object"], read[2]["items"][0]]
    assert len({content_of(each).hash for each in objects}) == 1


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda made: None, ""),
        (lambda made: made["metadata"]["labels"].update(more="x"), ""),
        (lambda made: made["spec"].pop("revisionHistoryLimit", None), ""),
        (lambda made: made["spec"]["resources"][0].update(recreate=False), "spec.resources[0].recreate"),
        (
            lambda made: made["spec"]["resources"][0]["template"].update(data=1),
            "spec.resources[0].template.data",
        ),
        (lambda made: made["spec"]["resources"].append({}), "spec.resources"),
        (lambda made: made["spec"].pop("compositeTypeRef"), "spec.compositeTypeRef"),
        (lambda made: made["metadata"]["labels"].clear(), f"metadata.labels[{HASH_LABEL}]"),
    ],
)
def test_what_the_api_server_changes_is_named(change: Any, part: str) -> None:
    new = wanted(content_of(composition("a")), [], 0)
    assert isinstance(new, NewRevision)
    stored = json.loads(json.dumps(new.to_object()))
    change(stored)
    assert changed_part(new, stored) == part


def test_what_stays_is_known_of_each_resource_that_makes_objects() -> None:
    of = composition()
    (settings,) = of["spec"]["resources"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "zones"}
    of["spec"]["resources"] += [
        {**settings, "name": "kept", "deletion": "Orphan"},
        {**settings, "name": "gone", "deletion": "Delete"},
        {"name": "zones", "externalRef": reference},
    ]
    made = wanted(content_of(of), [], 0)
    assert isinstance(made, NewRevision)
    found = made.to_object()
    found["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    assert seen_revision(found).keeps == {"settings": False, "kept": True, "gone": False}
