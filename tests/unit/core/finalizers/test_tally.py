"""The figures of one CRD, and the condition of a policy."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml

from crdkeeper.api.finalizerrelease import FinalizerRule
from crdkeeper.api.texts import bounded
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.finalizers.holding import MOST_FINALIZERS, Held
from crdkeeper.core.finalizers.standing import FinalizersStanding, finalizers_standing
from crdkeeper.core.finalizers.tally import (
    MOST_DUE,
    DueFinding,
    HeldLook,
    NamedFinalizer,
    ReleaseTally,
    read_rules,
)
from tests.unit.core.finalizers.test_rule import NOW, metadata

PLAIN = NamedFinalizer("a/b", timedelta(hours=1), "", automatic=True)
ASKING = NamedFinalizer("a/b", timedelta(hours=1), "true", automatic=True)


def items(count: int, **others: Any) -> list[dict[str, Any]]:
    return [{"metadata": {**metadata(**others), "name": f"n{at}", "uid": f"u{at}"}} for at in range(count)]


def tally(
    *found: dict[str, Any], rule: NamedFinalizer = PLAIN, known: DueFinding | None = None
) -> ReleaseTally:
    made = ReleaseTally([rule], NOW, lambda *_: known, lambda found: found)
    made.add(found)
    return made


def look(of: ReleaseTally | None = None, **others: Any) -> HeldLook:
    counts, due = (of.counts, of.due) if of is not None else ((), ())
    return HeldLook("databases.example.com", "example.com", "databases", counts, due, **others)


def stands(*looks: HeldLook, mode: str = "Automatic", problems: tuple[str, ...] = ()) -> FinalizersStanding:
    rule = FinalizerRule.model_validate({"name": "a/b", "releaseAfter": "1h", "mode": mode})
    return finalizers_standing([rule], looks, problems)


def test_memory_is_bounded() -> None:
    found = tally(*items(MOST_DUE + 10))
    (count,) = found.counts
    assert (count.held, count.due, len(found.due), len(count.of_due)) == (
        MOST_DUE + 10,
        MOST_DUE + 10,
        MOST_DUE,
        5,
    )
    writers = [{"manager": f"m{at}", "time": "2026-01-02T11:30:00Z"} for at in range(500)]
    busy = [{"metadata": {**metadata(), "managedFields": [each]}} for each in writers]
    (count,) = tally(*busy).counts
    assert (count.written, len(count.writers)) == (500, 100)


@pytest.mark.parametrize(("before", "due"), [(MOST_FINALIZERS - 1, 1), (MOST_FINALIZERS, 0)])
def test_of_many_finalizers_the_first_ones_count(before: int, due: int) -> None:
    others = [f"example.com/f{at}" for at in range(100_000)]
    named = [*others[:before], "a/b", *others[before:]]
    found = tally({"metadata": {**metadata(), "finalizers": named}})
    (count,) = found.counts
    assert (count.held, count.due) == (due, due)
    assert [each.object.finalizers.index("a/b") for each in found.due] == [before] * due


def test_what_is_kept_of_an_object_does_not_grow_with_its_other_finalizers() -> None:
    long = [f"example.com/{at}-{'x' * 300}" for at in range(MOST_FINALIZERS - 2)]
    found = tally({"metadata": {**metadata(), "finalizers": [*long, "a/b", "a/b"]}})
    (kept,) = (each.object.finalizers for each in found.due)
    assert (kept.index("a/b"), kept.count("a/b")) == (len(long), 2)
    assert sum(map(len, kept)) == len("a/b") * 2


def test_what_a_rule_in_mode_plan_would_release_is_only_counted() -> None:
    found = tally(*items(3), rule=replace(PLAIN, automatic=False))
    (count,) = found.counts
    assert (count.due, len(count.of_due), found.due) == (3, 3, [])


def test_questions_are_asked_only_of_what_is_due_and_not_known() -> None:
    late = items(2, deleted="2026-01-02T11:59:00Z")
    found = tally(*items(3), *late, rule=ASKING)
    assert (len(found.questions), len(found.due)) == (3, 0)
    found.answer(found.questions[0], DueFinding.MET)
    found.answer(found.questions[1], DueFinding.UNMET)
    (count,) = found.counts
    assert (count.held, count.waiting, count.due, count.unmet) == (5, 2, 1, 1)
    for known in DueFinding:
        assert tally(*items(1), rule=ASKING, known=known).questions == []
    assert tally(*items(1), known=DueFinding.REFUSED).due == []


def test_other_finalizers_are_not_counted() -> None:
    (count,) = tally(*items(3, finalizers=["a/bb", "A/b", "b"])).counts
    assert count.held == 0


@pytest.mark.parametrize(
    ("found", "mode", "reason", "said"),
    [
        (tally(), "Automatic", "NothingHeld", "No object in deletion"),
        (
            tally(*items(2)),
            "Plan",
            "ReleasePlanned",
            "2 finalizers would be released in mode Automatic: a/b (2,",
        ),
        (tally(*items(2)), "Automatic", "ReleasingFinalizers", "such as databases.example.com s/n0)"),
        (
            tally(*items(2, deleted="2026-01-02T11:30:00Z")),
            "Automatic",
            "FinalizersHeld",
            "The next is due at 2026-01-02T12:30:01Z",
        ),
        (
            tally(*items(1), known=DueFinding.REFUSED),
            "Automatic",
            "ReleaseRefused",
            "1 object refused: a/b (1, such as databases.example.com s/n0)",
        ),
        (
            tally(*items(1), known=DueFinding.UNMET),
            "Automatic",
            "FinalizersHeld",
            "1 for which `when` is not",
        ),
    ],
)
def test_conditions(found: ReleaseTally, mode: str, reason: str, said: str) -> None:
    standing = stands(look(found), mode=mode)
    assert (standing.reason, standing.status) == (reason, "True" if reason == "NothingHeld" else "False")
    assert said in standing.message


def test_only_what_is_released_is_named_as_being_released() -> None:
    other = NamedFinalizer("c/d", PLAIN.after, "", automatic=False)
    found = ReleaseTally([PLAIN, other], NOW, lambda *_: None, lambda found: found)
    found.add([*items(2), *items(5, finalizers=["c/d"])])
    modes = {"a/b": "Automatic", "c/d": "Plan"}
    rules = [
        FinalizerRule.model_validate({"name": name, "releaseAfter": "1h", "mode": mode})
        for name, mode in modes.items()
    ]
    message = finalizers_standing(rules, [look(found)], []).message
    assert message == "2 finalizers being released: a/b (2, such as databases.example.com s/n0)."


@pytest.mark.parametrize("deleted", ["2026-01-02T10:00:00Z", "2026-01-02T11:30:00Z"], ids=["due", "waiting"])
def test_what_is_refused_is_named_and_not_what_is_not(deleted: str) -> None:
    def known(object_: Held, _: NamedFinalizer) -> DueFinding:
        return DueFinding.REFUSED if object_.name == "refused" else DueFinding.MET

    found = ReleaseTally([PLAIN], NOW, known, lambda found: found)
    found.add([*items(7, deleted=deleted), {"metadata": {**metadata(), "name": "refused"}}])
    standing = stands(look(found))
    assert standing.reason == "ReleaseRefused"
    assert "1 object refused: a/b (1, such as databases.example.com s/refused)." in standing.message


def test_a_policy_that_governs_nothing_releases_nothing() -> None:
    standing = stands()
    assert (standing.status, standing.reason) == ("True", "NothingHeld")
    assert standing.message.startswith("The policy governs no CRD")


def test_what_cannot_be_listed() -> None:
    failure = Failure(ProbeTrouble.FAILED, 500, "conversion webhook failed")
    standing = stands(look(failure=failure))
    assert standing.reason == "HeldObjectsUnreadable"
    assert "databases.example.com: conversion webhook failed." in standing.message


def test_what_cannot_be_listed_for_a_moment() -> None:
    busy = look(failure=Failure(ProbeTrouble.BUSY, 429, "storage is (re)initializing"))
    standing = stands(busy)
    assert (standing.status, standing.reason) == ("Unknown", "LookingForFinalizers")
    assert standing.message.endswith("cannot be listed yet: storage is (re)initializing.")
    # It holds up no other CRD.
    assert stands(busy, look(tally(*items(2)))).reason == "ReleasingFinalizers"


def test_the_missing_rule_is_yaml() -> None:
    """A plural may be what YAML takes for something else."""
    odd = HeldLook("no.example.com", "example.com", "no", (), (), missing=("list",))
    message = stands(odd, look(missing=("patch",))).message
    assert "may not list, patch objects of 2 CRDs." in message
    role = yaml.safe_load(message.partition("Apply:\n")[2])
    assert role["metadata"]["labels"] == {"rbac.crdkeeper.dev/aggregate-to-releaser": "true"}
    (rule,) = role["rules"]
    assert rule == {
        "apiGroups": ["example.com"],
        "resources": ["databases", "no"],
        "verbs": ["get", "list", "patch"],
    }


def test_the_missing_rule_is_complete_if_it_cannot_name_all() -> None:
    group = ".".join(["a" * 62] * 4)
    plurals = [f"p{at:03}{'x' * 59}" for at in range(100)]
    found = [
        HeldLook(f"{each}.{group}", group, each, (), (), missing=("get", "list", "patch")) for each in plurals
    ]
    elsewhere = HeldLook("no.example.org", "example.org", "no", (), (), missing=("list",))
    message = stands(*found, elsewhere).message
    assert bounded(message) == message
    said, _, text = message.partition("Apply:\n")
    (rule,) = yaml.safe_load(text)["rules"]
    named = rule["resources"]
    assert 10 < len(named) < 100 and named == plurals[: len(named)]
    assert rule["verbs"] == ["get", "list", "patch"]
    assert f"Add {100 - len(named)} more resources of {group} to this role." in said


def test_rules_of_a_crd_that_lets_too_much_pass() -> None:
    bodies = [
        {"name": "a/b", "releaseAfter": "1h"},
        {"name": "c/d", "releaseAfter": "0s"},
        {"name": "e/f", "releaseAfter": "1h", "when": "1"},
    ]
    rules = [FinalizerRule.model_validate(each) for each in bodies]
    # The API server refuses the name; a CRD that somebody changed would not.
    rules.append(
        FinalizerRule.model_construct(name="orphan", release_after="1h", when=None, mode="Automatic")
    )
    read, problems = read_rules(rules)
    assert [each.name for each in read] == ["a/b"]
    assert [each.partition(":")[0] for each in problems] == ["c/d", "e/f", "orphan"]
    assert stands(problems=tuple(problems)).reason == "InvalidFinalizers"
