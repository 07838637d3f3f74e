"""Requests by version, from the metrics of an API server."""

from datetime import UTC, datetime

import pytest

from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.retirement.evidence import Reader
from crdkeeper.core.retirement.readers import RequestTally
from crdkeeper.core.retirement.unknown import unknown

METRICS = """\
# HELP apiserver_request_total [STABLE] Counter of apiserver requests
apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="cluster",subresource="",verb="LIST",version="v1"} 3
apiserver_request_total{code="403",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="namespace",subresource="",verb="LIST",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="resource",subresource="status",verb="PATCH",version="v1"} 1.2e+03
apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="cluster",subresource="",verb="LIST",version="v1beta1"} 7
apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="gadgets",scope="cluster",subresource="",verb="LIST",version="v1"} 7
apiserver_request_total{code="200",component="apiserver",dry_run="",group="an.example.com",resource="widgets",scope="cluster",subresource="",verb="LIST",version="v1"} 7
apiserver_longrunning_requests{component="apiserver",group="example.com",resource="widgets",scope="cluster",subresource="",verb="WATCH",version="v1"} 2
apiserver_longrunning_requests{component="apiserver",group="example.com",resource="widgets",scope="cluster",subresource="",verb="WATCH",version="v2"} 5
apiserver_request_total{broken
apiserver_requested_deprecated_apis{group="example.com",removed_release="",resource="widgets",subresource="",version="v2"} 1
process_start_time_seconds 1.7954368615e+09
"""  # noqa: E501


def read(metrics: str, version: str = "v1") -> Reader | None:
    tally = RequestTally("example.com", version, "widgets")
    for line in metrics.splitlines():
        tally.add(line)
    return tally.reader()


def test_requests_of_the_version_are_counted_by_verb() -> None:
    found = read(METRICS)
    assert found is not None
    assert found.counts == {"LIST": 4, "PATCH": 1200}
    assert found.what == "4 x LIST, 1,200 x PATCH, 2 open watches"
    assert found.since == datetime(2026, 11, 23, 12, 27, 41, 500000, tzinfo=UTC)
    assert found.message == (
        "The API server that answered has counted requests at v1 since it started at 2026-11-23T12:27:41Z: "
        "4 x LIST, 1,200 x PATCH, 2 open watches."
    )


def test_that_nobody_has_requested_a_version_is_known_too() -> None:
    found = read(METRICS, "v3")
    assert found is not None
    assert (found.what, found.counts) == ("none", {})
    assert found.since is not None
    assert read("") is None


def test_that_a_deprecated_version_was_requested_is_known_alone() -> None:
    found = read(METRICS.replace('version="v2"} 5', 'version="v2"} 0'), "v2")
    assert found is not None
    assert (found.what, found.counts) == ("requests while it was deprecated", {})


def test_that_a_version_was_requested_while_deprecated_is_said_beside_the_counts() -> None:
    found = read(METRICS.replace('subresource="",version="v2"} 1', 'subresource="",version="v1"} 1'))
    assert found is not None
    assert found.what == "4 x LIST, 1,200 x PATCH, 2 open watches, some of them while it was deprecated"


def test_numbers_that_are_none_count_nothing() -> None:
    lines = METRICS.replace("} 3", "} NaN").replace("} 1.2e+03", "} 1e999")
    found = read(lines.replace("1.7954368615e+09", "1e300"))
    assert found is not None
    assert (found.counts, found.since) == ({"LIST": 1}, None)


@pytest.mark.parametrize(
    ("answered", "servers", "said"),
    [
        (1, 1, "The API server counts since it started."),
        (3, 3, "Each of the 3 API servers counts for itself, since it started."),
        (1, 2, "1 of 2 API servers has answered. Requests at the others are not known."),
        (2, 3, "2 of 3 API servers have answered."),
        (1, None, "1 of an unknown number of API servers has answered."),
        (2, None, "2 of an unknown number of API servers have answered."),
    ],
)
def test_how_many_api_servers_were_asked_is_said(answered: int, servers: int | None, said: str) -> None:
    told = unknown(None, answered, servers, converts=False)
    assert sum("started" in each for each in told) == 1
    assert said in " ".join(told)


def test_our_own_reads_are_told() -> None:
    ours = "a DefinitionReport reads /scale of an object at it: these requests are counted, too."
    assert ours in " ".join(unknown(None, 1, 1, converts=False, scales=True))
    assert ours not in " ".join(unknown(None, 1, 1, converts=True))


def test_a_failure_is_said_beside_what_was_counted() -> None:
    told = " ".join(unknown(Failure(ProbeTrouble.SILENT, 0, "no end"), 1, 2, converts=False))
    assert "The metrics of an API server could not be read: no end" in told
    assert "1 of 2 API servers has answered" in told


def test_owned_objects_are_told_of_with_what_becomes_of_them() -> None:
    told = " ".join(unknown(None, 1, 1, converts=False))
    assert "the garbage collector does not delete them with their owner" in told
    assert "a PodDisruptionBudget of pods among them may allow no evictions" in told


def test_the_way_to_see_who_reads_is_named_until_it_is_taken() -> None:
    told = " ".join(unknown(None, 1, 1, converts=False))
    assert "crdkeeper retire PLURAL.GROUP VERSION --audit-log FILE" in told
    taken = " ".join(unknown(None, 1, 1, converts=False, audited=True))
    assert "--audit-log" not in taken
    assert "watches that have not ended" in taken
