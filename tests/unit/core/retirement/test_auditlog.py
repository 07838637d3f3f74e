"""Who uses a version by audit logs, of which clients fill in names, programs and objects."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crdkeeper.core.retirement.auditlog import MOST_REQUESTERS, AuditTally
from crdkeeper.core.retirement.evidence import SHOWN, AuditedUses

TIME = "2026-11-23T11:00:00.123456Z"
AT = datetime(2026, 11, 23, 11, 0, 0, 123456, tzinfo=UTC)
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"


def event(user: str = "ann", verb: str = "list", *, code: int = 200, **fields: Any) -> dict[str, Any]:
    """An event as an API server writes it; keywords replace fields."""
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": "/apis/example.com/v1alpha1/dbs",
        "verb": verb,
        "user": {"username": user},
        "userAgent": "kubectl/v1.37.0 (linux/amd64) kubernetes/abc",
        "objectRef": {"resource": "dbs", "apiGroup": "example.com", "apiVersion": "v1alpha1"},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": TIME,
        "stageTimestamp": TIME,
        **fields,
    }


def uses(*events: Any) -> AuditedUses:
    tally = AuditTally("example.com", "v1alpha1", "dbs")
    for each in events:
        tally.add(each if isinstance(each, bytes) else json.dumps(each).encode())
    return tally.uses()


def about(**fields: str) -> dict[str, Any]:
    return {"objectRef": {**event()["objectRef"], **fields}}


def test_requests_are_told_by_user_with_reads_and_writes() -> None:
    found = uses(
        event(**about(namespace="shop")),
        event(verb="watch"),
        event(verb="patch", **about(namespace="shop", subresource="status")),
        event("bob", "deletecollection"),
    )
    ann, bob = sorted(found.requesters, key=lambda each: each.user)
    assert (ann.user, ann.whose, ann.agents) == ("ann", "client", ("kubectl/v1.37.0",))
    assert (ann.namespaces, ann.reads, ann.writes, ann.last) == (("shop",), 2, 1, AT)
    assert (bob.reads, bob.writes, found.requester_count, found.newest) == (0, 1, 2, AT)


@pytest.mark.parametrize(
    "other",
    [
        event(**about(apiVersion="v1")),
        event(**about(apiGroup="other.example.com")),
        event(**about(resource="tables")),
        event(stage="RequestReceived"),
        event(stage="ResponseStarted"),
        event(objectRef=None),
    ],
)
def test_nothing_else_counts(other: dict[str, Any]) -> None:
    found = uses(other)
    assert (found.requesters, found.newest, found.events, found.unreadable) == ((), None, 1, 0)


def test_what_failed_is_no_use_but_an_unknown_result_is_one() -> None:
    found = uses(event(code=403), event(code=500), event("bob", responseStatus=None))
    assert (found.failed, [each.user for each in found.requesters]) == (2, ["bob"])


def test_kubernetes_and_crdkeeper_are_told_apart_and_are_no_uses() -> None:
    later = "2026-11-23T12:00:00Z"
    found = uses(
        event(),
        event(COLLECTOR, stageTimestamp=later),
        event("system:apiserver", stageTimestamp=later),
        event("ops", userAgent="crdkeeper/1.0", stageTimestamp=later),
    )
    assert found.requesters[0].user == "ann"
    assert {(each.user, each.whose) for each in found.requesters[1:]} == {
        (COLLECTOR, "Kubernetes"),
        ("system:apiserver", "Kubernetes"),
        ("ops", "crdkeeper"),
    }
    assert (found.newest, found.newest_by) == (AT, "ann")


def test_nobody_becomes_kubernetes_by_impersonation_or_a_user_agent() -> None:
    found = uses(
        event(impersonatedUser={"username": "system:apiserver"}),
        event("bob", userAgent=f"kube-controller-manager/v1 ({COLLECTOR})"),
    )
    assert {(each.user, each.whose) for each in found.requesters} == {
        ("system:apiserver (by ann)", "client"),
        ("bob", "client"),
    }


def test_a_watch_is_a_use_until_it_ends() -> None:
    assert uses(event(verb="watch", stageTimestamp="2026-11-23T11:30:00Z")).newest == AT.replace(
        minute=30, microsecond=0
    )


@pytest.mark.parametrize("time", ["", "yesterday", "2026-11-23", "2026-11-23T11:00:00", 7, None])
def test_a_time_that_cannot_be_read_is_none(time: Any) -> None:
    found = uses(event(stageTimestamp=time, requestReceivedTimestamp=time))
    assert (found.newest, found.undated, found.requesters[0].last) == (None, 1, None)
    assert uses(event(stageTimestamp=time)).newest == AT


@pytest.mark.parametrize(
    "time", ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59Z"]
)
def test_any_time_is_survived(time: str) -> None:
    assert len(uses(event(), event(stageTimestamp=time, requestReceivedTimestamp=time)).requesters) == 1


@pytest.mark.parametrize(
    "line",
    [
        b"no JSON",
        b'{"kind": "Event"',
        b"[]",
        b"\xff\xfe",
        b'{"kind": "Event", "apiVersion": "v1"}',
        b"[" * 500_000,
    ],
)
def test_lines_that_are_no_events_are_counted(line: bytes) -> None:
    found = uses(line, event(), b"\n")
    assert (found.unreadable, found.events, len(found.requesters)) == (1, 1, 1)


def test_an_event_with_a_deep_object_is_read() -> None:
    deep = b'{"a":' * 9000 + b"1" + b"}" * 9000
    text = json.dumps(event(requestObject="HERE")).encode().replace(b'"HERE"', deep)
    assert uses(text).requester_count == 1


@pytest.mark.parametrize("wrong", [7, "x", [], None, {"username": 7}])
def test_fields_of_other_types_are_survived(wrong: Any) -> None:
    for each in ("user", "impersonatedUser", "objectRef", "responseStatus", "userAgent", "verb", "stage"):
        assert uses(event(**{each: wrong})).events == 1


def test_memory_and_lists_are_bounded_and_the_newest_is_kept() -> None:
    tally = AuditTally("example.com", "v1alpha1", "dbs")
    for number in range(3 * MOST_REQUESTERS):
        time = (AT + timedelta(seconds=number)).isoformat()
        for program in range(2):
            changed = event(f"user-{number}", userAgent="x" * 5000 + str(program), stageTimestamp=time)
            tally.add(json.dumps(changed).encode())
        assert len(tally._counts) <= MOST_REQUESTERS
    found = tally.uses()
    assert (len(found.requesters), found.requester_count) == (SHOWN, 3 * MOST_REQUESTERS)
    assert found.newest_by == found.requesters[0].user == f"user-{3 * MOST_REQUESTERS - 1}"
    assert max(len(each) for each in found.requesters[0].agents) < 2000


def test_the_first_few_programs_and_namespaces_are_named() -> None:
    found = uses(*(event(userAgent=f"p{each}/1", **about(namespace=f"n{each}")) for each in range(9)))
    assert found.requesters[0].agents == ("p0/1", "p1/1", "p2/1", "…")
    assert found.requesters[0].namespaces == ("n0", "n1", "n2", "…")
