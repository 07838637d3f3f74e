"""Which counts of API servers are uses of a version: several servers, restarts, and times in fractions."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from crdkeeper.api.versionretirement import VersionEvidence
from crdkeeper.core.retirement.evidence import AuditedUses, Reader
from crdkeeper.core.retirement.quiet import last_use
from crdkeeper.core.retirement.standing import shown
from tests.unit.core.retirement.cases import HOUR, NOW, evidence, reader, writer

LATER = NOW + timedelta(minutes=10)
A = NOW - 100 * HOUR + timedelta(microseconds=250_000)
B = A + HOUR


def looks(*readers: Reader) -> VersionEvidence:
    """What status knows after one look after the other, each answered by one API server."""
    before = VersionEvidence()
    for each in readers:
        before = shown(evidence(readers=(each,)), NOW, before)
    return before


def used(now: Reader, before: VersionEvidence) -> bool:
    return last_use(evidence(readers=(now,)), LATER, before, reads_count=True).last == LATER


@pytest.mark.parametrize("stored", [False, True], ids=["in this pass", "from the API server"])
def test_the_same_count_is_no_use(*, stored: bool) -> None:
    before = looks(reader(7, A))
    if stored:
        before = VersionEvidence.model_validate(before.to_object())
    assert not used(reader(7, A), before)
    assert used(reader(8, A), before)


def test_what_another_api_server_has_ever_counted_is_no_use() -> None:
    assert not used(reader(500, B), looks(reader(7, A)))


def test_each_api_server_is_compared_with_itself_whoever_answered_last() -> None:
    before = looks(reader(500, B), reader(7, A), reader(8, A))
    assert before.reader_count == 2
    assert not used(reader(500, B), before)
    assert used(reader(501, B), before)
    assert not used(reader(8, A), before)


@pytest.mark.parametrize(("then", "now"), [("", "a:1"), ("a:1", ""), ("a:1", "b:1")])
def test_an_api_server_is_known_by_its_start_where_its_address_is_not(then: str, now: str) -> None:
    before = looks(replace(reader(7, A), server=then))
    assert not used(replace(reader(7, A), server=now), before)
    assert used(replace(reader(8, A), server=now), before)


def test_those_that_started_in_the_same_second_are_told_apart_by_their_address() -> None:
    before = looks(replace(reader(7, A), server="a:1"), replace(reader(500, A), server="b:1"))
    assert not used(replace(reader(7, A), server="a:1"), before)
    assert used(replace(reader(8, A), server="a:1"), before)
    assert not used(replace(reader(500, A), server="b:1"), before)


def test_the_first_request_after_none_is_a_use() -> None:
    before = looks(reader(0, A))
    assert not used(reader(0, A), before)
    assert used(reader(1, A), before)


def test_all_requests_since_a_server_started_after_the_last_look_are_uses() -> None:
    restarted = NOW + timedelta(minutes=2)
    assert used(reader(1, restarted), looks(reader(500, A)))
    assert not used(reader(0, restarted), looks(reader(500, A)))


def test_without_a_look_before_nothing_is_concluded() -> None:
    assert not used(reader(500, A), VersionEvidence())


def test_as_many_api_servers_are_remembered_as_status_lists() -> None:
    before = looks(*(reader(1, A + each * HOUR) for each in range(60)))
    assert (len(before.readers), before.reader_count) == (50, 50)
    assert not used(reader(1, A + 59 * HOUR), before)
    assert used(reader(2, A + 59 * HOUR), before)


def audited(newest: datetime | None) -> AuditedUses:
    return AuditedUses((), 0, newest, "ann", 1, newest, newest)


@pytest.mark.parametrize("reads_count", [False, True])
def test_a_request_of_a_client_in_an_audit_log_is_a_use(*, reads_count: bool) -> None:
    found = evidence(writer(NOW - HOUR), audit=audited(NOW))
    use = last_use(found, LATER, VersionEvidence(), reads_count=reads_count)
    assert (use.last, use.by) == (NOW, "ann, as an audit log shows")
    older = evidence(writer(NOW), audit=audited(NOW - HOUR))
    assert last_use(older, LATER, VersionEvidence(), reads_count=reads_count).by == "tool in namespace shop"


def test_a_time_to_come_in_an_audit_log_counts_as_now() -> None:
    found = evidence(audit=audited(LATER + 9000 * HOUR))
    assert last_use(found, LATER, VersionEvidence(), reads_count=True).last == LATER


def test_an_audit_log_without_requests_of_clients_shows_no_use() -> None:
    assert last_use(evidence(audit=audited(None)), LATER, VersionEvidence(), reads_count=True).last is None


def test_a_use_at_a_time_to_come_says_whose_it_is() -> None:
    forger = replace(writer(NOW, "forger"), ahead="9999-12-31T23:59:59Z of shop/a")
    found = last_use(evidence(forger, writer(NOW - HOUR)), NOW, VersionEvidence(), reads_count=True)
    assert found.last == NOW
    assert found.by == (
        "forger in namespace shop (managedFields have a time to come, which counts as now: "
        "9999-12-31T23:59:59Z of shop/a)"
    )
