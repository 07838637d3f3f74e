"""Counts, examples and the verdict, in bounded size."""

from dataclasses import replace

import pytest

from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.report import (
    RehearsalReport,
    RehearsalVerdict,
    doubts,
    note_conversion,
    note_unserved,
)
from crdkeeper.core.rehearsal.tally import EXAMPLES, MOST_FINDINGS, EffectTally
from tests.unit.core.rehearsal.crds import TEXT, definition, version

LOST = Effect(EffectKind.PRUNED, "spec.a", "v1", exact="spec.a")
OTHER = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://other.example/x"}}}
BOTH = version(a=TEXT), version("v2", storage=False, a=TEXT)
PLAIN, WEBHOOK = definition(*BOTH), definition(*BOTH, conversion=OTHER)


def test_an_object_counts_once_for_each_finding_and_kind() -> None:
    tally = EffectTally()
    tally.add(
        "ns",
        "x",
        [LOST, Effect(EffectKind.PRUNED, "spec.a", "v2"), Effect(EffectKind.PRUNED, "spec.b", "v1")],
    )
    tally.add("ns", "y", [])
    assert (tally.objects, tally.affected) == (2, {EffectKind.PRUNED: 1})
    assert [(each.field, each.count, each.versions) for each in tally.findings()] == [
        ("spec.a", 1, {"v1", "v2"}),
        ("spec.b", 1, {"v1"}),
    ]


def test_the_tally_stays_small_whatever_the_objects_are() -> None:
    tally = EffectTally()
    for i in range(2 * MOST_FINDINGS):
        tally.add(
            "", f"o{i}", [LOST, Effect(EffectKind.REFUSED, "x" * 10_000, "v1", "m" * 10_000, f"cause {i}")]
        )
    found = tally.findings()
    assert len(found) == MOST_FINDINGS
    assert tally.beyond == MOST_FINDINGS + 1
    assert tally.affected[EffectKind.REFUSED] == found[0].count == 2 * MOST_FINDINGS
    assert all(len(each.examples) <= EXAMPLES and len(each.field + each.message) < 2000 for each in found)


@pytest.mark.parametrize(
    ("effects", "said", "verdict"),
    [
        ([], [], RehearsalVerdict.SAFE),
        ([EffectKind.DEFAULTED], [], RehearsalVerdict.SAFE),
        ([EffectKind.INDETERMINATE], [], RehearsalVerdict.UNCERTAIN),
        ([], ["a doubt"], RehearsalVerdict.UNCERTAIN),
        ([EffectKind.PRUNED, EffectKind.INDETERMINATE], ["a doubt"], RehearsalVerdict.HARMFUL),
        *(([kind], [], RehearsalVerdict.HARMFUL) for kind in EffectKind if kind.is_harm),
    ],
)
def test_verdict(effects: list[EffectKind], said: list[str], verdict: RehearsalVerdict) -> None:
    report = RehearsalReport("x", doubts=said)
    report.tally.add("", "o", [Effect(each, "", "") for each in effects])
    assert report.verdict is verdict
    report.rejections = ["no"]
    assert report.verdict is RehearsalVerdict.REJECTED


def test_a_version_that_will_not_be_served_concerns_all_objects() -> None:
    old = definition(version(a=TEXT), version("v2", storage=False, a=TEXT))
    new = definition(version(a=TEXT), version("v2", storage=False, served=False, a=TEXT))
    report = RehearsalReport("x")
    report.tally.add("", "o", [])
    note_unserved(report, old, new)
    assert report.tally.affected == report.tally.today == {EffectKind.NOT_SERVED: 1}
    assert [each.versions for each in report.tally.findings()] == [{"v2"}]


def test_a_version_that_will_not_be_served_is_harm_without_any_object() -> None:
    old = definition(version(a=TEXT), version("v2", storage=False, a=TEXT))
    report = RehearsalReport("x")
    note_unserved(report, old, definition(version(a=TEXT)))
    assert report.verdict is RehearsalVerdict.HARMFUL
    assert report.tally.affected == {EffectKind.NOT_SERVED: 0}
    (finding,) = report.tally.findings()
    assert (finding.versions, finding.count, finding.examples) == ({"v2"}, 0, [])
    assert "v2 will not be served" in finding.message


def test_what_clients_of_today_meet_is_counted_apart_from_what_is_new() -> None:
    tally = EffectTally()
    new = Effect(EffectKind.PRUNED, "spec.a", "v2", at_new_version=True)
    tally.add("", "x", [LOST, new])
    tally.add("", "y", [new])
    assert tally.affected == {EffectKind.PRUNED: 2}
    assert tally.today == {EffectKind.PRUNED: 1}
    assert tally.at_new_versions == {EffectKind.PRUNED: 2}
    assert [(each.at_new_version, each.versions, each.count) for each in tally.findings()] == [
        (True, {"v2"}, 2),
        (False, {"v1"}, 1),
    ]


def test_a_message_with_the_value_of_one_object_is_not_taken_for_that_of_all() -> None:
    tally = EffectTally()
    for i, value in enumerate((5, 6)):
        message = f"Invalid value: {value}: too large"
        tally.add(
            "", f"o{i}", [Effect(EffectKind.REFUSED, "spec.a", "v1", message, "Invalid value: too large")]
        )
        tally.add(
            "", f"p{i}", [Effect(EffectKind.REFUSED, "spec.b", "v1", "Required value", "Required value")]
        )
    assert [(each.field, each.count, each.varies) for each in tally.findings()] == [
        ("spec.a", 2, True),
        ("spec.b", 2, False),
    ]


def test_how_many_the_api_server_judged_is_counted_by_object() -> None:
    tally = EffectTally()
    ours = Effect(EffectKind.REFUSED, "spec.a", "v1")
    theirs = replace(ours, by_server=True)
    for effects in ([ours], [theirs], [ours, theirs], [theirs, ours]):
        tally.add("", "o", effects)
    (finding,) = tally.findings()
    assert (finding.count, finding.by_server) == (4, 3)


def test_what_the_definitions_leave_open() -> None:
    plain = definition(version(a=TEXT), version("v2", storage=False, served=False, a=TEXT))
    assert doubts(plain, plain, ["v1"]) == []
    assert "v2, which is not served" in doubts(plain, plain, ["v1", "v2"])[0]
    assert doubts(WEBHOOK, WEBHOOK, ["v1", "v2"], "because") == [
        "https://other.example/x converts, and what it makes of objects is not known: what is read at v1, v2 "
        "was not rehearsed; give its rules with --rules (because)",
        "objects may be stored in v1, v2, and a webhook converts them: migrate them first",
    ]
    (doubt,) = doubts(WEBHOOK, WEBHOOK, ["v1"])
    assert doubt.endswith("what is read at v2 was not rehearsed; give its rules with --rules")


@pytest.mark.parametrize(("old", "new", "noted"), [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 0)])
def test_conversions_of_today_that_are_not_known(old: int, new: int, noted: int) -> None:
    report, definitions = RehearsalReport("x"), (PLAIN, WEBHOOK)
    note_conversion(report, definitions[old], definitions[new], ["v1"])
    assert [each[: each.index(" converts today")] for each in report.notes] == [
        "https://other.example/x"
    ] * noted
    assert all("fields are converted differently at v2 was not rehearsed" in each for each in report.notes)


def test_a_version_that_only_the_new_one_serves_is_not_converted_differently() -> None:
    report = RehearsalReport("x")
    note_conversion(report, definition(version(a=TEXT), conversion=OTHER), PLAIN, ["v1"])
    assert report.notes == []
