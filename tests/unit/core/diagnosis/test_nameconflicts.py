"""Which CRD has a name. tests/cluster/reports/test_definition_reports.py covers the API server's side."""

from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.core.diagnosis.nameconflicts import (
    NameClaims,
    NameConflict,
    Names,
    describe,
    find_conflicts,
    name_claims,
)
from tests.unit.builders import crd

WIDGETS = Names("widgets", "widget", ("w", "wg"), "Widget", "WidgetList")
GADGETS = Names("gadgets", "gadget", ("g",), "Gadget", "GadgetList")


def claims(wanted: Names, accepted: Names | None = None, group: str = "example.com") -> NameClaims:
    return NameClaims(f"{wanted.plural}.{group}", group, wanted, wanted if accepted is None else accepted)


HOLDER = claims(WIDGETS)


@pytest.mark.parametrize(
    ("wanted", "conflicts"),
    [
        ({}, []),
        ({"singular": "widget"}, [("singular", "widget", "singular")]),
        ({"singular": "widgets"}, [("singular", "widgets", "plural")]),
        (
            {"short_names": ("x", "w", "widget")},
            [("shortNames", "w", "shortNames"), ("shortNames", "widget", "singular")],
        ),
        ({"plural": "w"}, [("plural", "w", "shortNames")]),
        ({"kind": "Widget"}, [("kind", "Widget", "kind")]),
        ({"list_kind": "WidgetList"}, [("listKind", "WidgetList", "listKind")]),
        ({"kind": "WidgetList"}, [("kind", "WidgetList", "listKind")]),
    ],
)
def test_new_names(wanted: dict[str, Any], conflicts: list[tuple[str, str, str]]) -> None:
    new = claims(replace(GADGETS, **wanted), Names())
    found = find_conflicts(new, [HOLDER, new])
    assert [(each.field, each.name, each.held_as) for each in found] == conflicts
    assert all(each.holder == "widgets.example.com" for each in found)


def test_other_groups_do_not_matter() -> None:
    new = claims(WIDGETS, Names(), group="other.com")
    assert find_conflicts(new, [HOLDER]) == ()


def test_what_is_wanted_only_holds_nothing() -> None:
    waiting = claims(replace(WIDGETS, plural="things"), Names())
    assert find_conflicts(claims(GADGETS, Names()), [waiting]) == ()


def test_what_is_accepted_stays_ours() -> None:
    ours = claims(replace(GADGETS, short_names=("g", "w")), GADGETS)
    assert [each.name for each in find_conflicts(ours, [HOLDER])] == ["w"]


def test_own_names_are_in_the_way_too() -> None:
    ours = claims(replace(GADGETS, short_names=("gadget",)), replace(GADGETS, short_names=()))
    assert find_conflicts(ours, [ours]) == (
        NameConflict("shortNames", "gadget", "gadgets.example.com", "singular"),
    )


def test_the_claims_of_a_definition() -> None:
    body = crd(status={"acceptedNames": {"plural": "widgets", "kind": "", "shortNames": ["w"]}})
    body["spec"]["names"] |= {"singular": "widget", "listKind": "WidgetList"}
    assert name_claims(body) == NameClaims(
        "widgets.example.com",
        "example.com",
        Names("widgets", "widget", (), "Widget", "WidgetList"),
        Names("widgets", "", ("w",), "", ""),
    )
    assert name_claims(crd(status={"acceptedNames": None})).accepted == Names()


def test_names_that_are_accepted_are_kept_once() -> None:
    body = crd()
    body["status"] = {"acceptedNames": dict(body["spec"]["names"])}
    claims = name_claims(body)
    assert claims.accepted is claims.wanted


def test_in_words() -> None:
    found = NameConflict("shortNames", "db", "databases.example.com", "shortNames")
    assert describe(found) == 'shortNames "db" is held by CRD databases.example.com (as its short name)'
