"""The conditions set by the API server's own controllers: its status and reason, and our additions."""

from typing import Any

import pytest

from crdkeeper.core.diagnosis.conditions import approval, established, namesaccepted
from crdkeeper.core.diagnosis.facts import APPROVAL
from crdkeeper.core.diagnosis.nameconflicts import NameConflict
from crdkeeper.core.diagnosis.verdict import Reason
from tests.unit.core.diagnosis.builders import GOOD, NAME, condition, seen

ACCEPTED = GOOD[0]


def judged_established(*conditions: dict[str, str], **changes: Any) -> Reason:
    return established.judge(seen(conditions=conditions, **changes)).reason


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (condition("Established", "True", "InitialNamesAccepted"), established.ESTABLISHED),
        (condition("Established", "False", "NotAccepted"), established.NOT_ACCEPTED),
        (condition("Established", "False", "Installing"), established.INSTALLING),
        (condition("Established", "False", "InvalidCABundle"), established.INVALID_CA_BUNDLE),
        (condition("Established", "False", "SomethingNew"), established.NOT_ESTABLISHED),
        (condition("Established", "Unknown", "SomethingNew"), established.NOT_YET_PROCESSED),
        (condition("Other", "True"), established.NOT_YET_PROCESSED),
    ],
    ids=lambda each: each.name if isinstance(each, Reason) else None,
)
def test_established_follows_the_server(condition: dict[str, str], reason: Reason) -> None:
    assert judged_established(condition) is reason
    assert reason.healthy == (reason is established.ESTABLISHED)


def test_a_reason_that_is_not_known_is_told_in_the_servers_words() -> None:
    refusal = condition("Established", "False", "SomethingNew", "the moon is full")
    message = established.judge(seen(conditions=(refusal,))).message
    assert "SomethingNew: the moon is full" in message


def test_established_names_the_served_versions() -> None:
    assert established.judge(seen(served=("v1",))).message == f"{NAME} is served at v1."


def test_no_version_is_served() -> None:
    verdict = established.judge(seen(served=()))
    assert verdict.reason is established.NO_VERSION_SERVED
    assert (verdict.reason.status, verdict.reason.healthy) == ("True", False)


CONFLICTS = (
    NameConflict("plural", "widgets", "things.example.com", "singular"),
    NameConflict("shortNames", "w", "webs.example.com", "shortNames"),
)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (condition("NamesAccepted", "True", "NoConflicts"), namesaccepted.NO_CONFLICTS),
        (condition("NamesAccepted", "False", "PluralConflict"), namesaccepted.PLURAL_CONFLICT),
        (condition("NamesAccepted", "False", "SingularConflict"), namesaccepted.SINGULAR_CONFLICT),
        (condition("NamesAccepted", "False", "ShortNamesConflict"), namesaccepted.SHORT_NAMES_CONFLICT),
        (condition("NamesAccepted", "False", "KindConflict"), namesaccepted.KIND_CONFLICT),
        (condition("NamesAccepted", "False", "ListKindConflict"), namesaccepted.LIST_KIND_CONFLICT),
        (condition("NamesAccepted", "False", "SomethingNew"), namesaccepted.NAMES_REFUSED),
        (condition("Other", "True"), namesaccepted.NOT_YET_PROCESSED),
    ],
    ids=lambda each: each.name if isinstance(each, Reason) else None,
)
def test_names_accepted_follows_the_server(condition: dict[str, str], reason: Reason) -> None:
    assert namesaccepted.judge(seen(conditions=(condition,)), ()).reason is reason
    assert reason.healthy == (reason is namesaccepted.NO_CONFLICTS)


def test_all_holders_are_named() -> None:
    refusal = condition("NamesAccepted", "False", "ShortNamesConflict", '"w" is already in use')
    message = namesaccepted.judge(seen(conditions=(refusal,)), CONFLICTS).message
    assert "things.example.com" in message
    assert "webs.example.com" in message
    assert "It is not served." in message


def test_without_a_known_holder_the_servers_words_are_told() -> None:
    refusal = condition("NamesAccepted", "False", "KindConflict", '"Widget" is already in use')
    message = namesaccepted.judge(seen(conditions=(refusal,)), ()).message
    assert 'KindConflict: "Widget" is already in use' in message


def test_an_established_crd_goes_on_under_its_former_names() -> None:
    refusal = condition("NamesAccepted", "False", "KindConflict")
    message = namesaccepted.judge(seen(conditions=(refusal, GOOD[1])), CONFLICTS).message
    assert "It is still served under its former names." in message


@pytest.mark.parametrize(
    ("server_reason", "status", "reason", "healthy"),
    [
        ("ApprovedAnnotation", "True", approval.APPROVED, True),
        ("UnapprovedAnnotation", "False", approval.UNAPPROVED, True),
        # Only the API's author can have it approved.
        ("MissingAnnotation", "False", approval.MISSING, True),
        ("InvalidAnnotation", "False", approval.INVALID, True),
        ("UnknownAnnotation", "Unknown", approval.NOT_YET_PROCESSED, True),
    ],
)
@pytest.mark.parametrize("group", ["k8s.io", "widgets.k8s.io", "widgets.kubernetes.io"])
def test_approval_follows_the_server(
    group: str, server_reason: str, status: str, reason: Reason, healthy: bool
) -> None:
    found = condition(APPROVAL, status, server_reason, "as the server says")
    verdict = approval.judge(seen(group=group, conditions=(*GOOD, found)))
    assert verdict.reason is reason
    assert (reason.status, reason.healthy) == (status, healthy)
    assert "as the server says" in verdict.message


@pytest.mark.parametrize("group", ["example.com", "k8s.io.example.com", "notk8s.io", "x-kubernetes.io"])
def test_other_groups_need_no_approval(group: str) -> None:
    assert approval.judge(seen(group=group)).reason is approval.NOT_APPLICABLE


def test_a_protected_group_without_the_condition_is_not_taken_for_approved() -> None:
    assert approval.judge(seen(group="widgets.k8s.io")).reason is approval.NOT_YET_PROCESSED
