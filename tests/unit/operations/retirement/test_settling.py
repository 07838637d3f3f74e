"""A retirement from the command line, in virtual time: what it waits for, with and without --wait."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.apiserver.definitions.facts import definition_facts
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.retirement.evidence import Evidence
from crdkeeper.core.retirement.facts import RetirementFacts, TakenEvidence, evidence_key
from crdkeeper.core.retirement.steps import Decision
from crdkeeper.operations.retirement import standalone
from crdkeeper.operations.retirement.standalone import StandaloneRetirement
from tests import virtualtime
from tests.unit.core.retirement.cases import NOW, definition, entry, evidence, owner

GONE = definition(entry("v1"))
STORED = definition(entry("v1alpha1", deprecated=True, served=False), entry("v1"), stored=("v1alpha1", "v1"))


class Cluster:
    """A CRD whose version is not served any more, and whose objects do not name it."""

    def __init__(self) -> None:
        self.crd = definition(entry("v1alpha1", deprecated=True, served=False), entry("v1"))
        self.steps: list[tuple[float, str | None]] = []
        self.counts: list[float] = []
        self.outages: list[Exception] = []
        """The answers to the next looks."""
        self.lost: list[Exception] = []
        """The answers to the next steps, which are made nevertheless."""
        self.shown: list[Evidence] = []
        """What the next counts show; then it is complete."""

    def now(self) -> datetime:
        return NOW + timedelta(seconds=virtualtime.now())

    async def look(
        self, client: Any, of: VersionRetirement, taken: TakenEvidence | None, *, rights: bool
    ) -> RetirementFacts:
        if self.outages:
            raise self.outages.pop()
        return RetirementFacts(self.crd, self.now(), taken=taken)

    async def request(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        """Everything is allowed."""
        return {"status": {"allowed": True}}

    async def count(
        self, client: Any, of: VersionRetirement, facts: RetirementFacts, audit: None
    ) -> TakenEvidence:
        self.counts.append(virtualtime.now())
        key = evidence_key(definition_facts(self.crd), ())
        return TakenEvidence(self.shown.pop() if self.shown else evidence(), self.now(), key)

    async def take_step(
        self, client: Any, of: VersionRetirement, facts: RetirementFacts, decision: Decision
    ) -> RetirementFacts:
        self.steps.append((virtualtime.now(), decision.due))
        self.crd = GONE
        if self.lost:
            raise self.lost.pop()
        return replace(facts, crd=GONE)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()
    for each in ("look", "count", "take_step"):
        monkeypatch.setattr(standalone, each, getattr(cluster, each))
    return cluster


async def nothing_to_migrate() -> str:
    raise AssertionError("nothing is to be migrated")


def retire(
    cluster: Cluster,
    said: list[str],
    *,
    wait: bool,
    migrate: Callable[[], Awaitable[str]] = nothing_to_migrate,
) -> Decision:
    retirement = StandaloneRetirement(cast(Client, cluster), owner(), said.append, migrate)
    return virtualtime.run(retirement.run(wait=wait))


def test_the_version_is_removed_only_after_writes_in_flight_have_ended(cluster: Cluster) -> None:
    said: list[str] = []
    decision = retire(cluster, said, wait=False)
    assert decision.ready.reason == "Removed"
    ((when, step),) = cluster.steps
    assert (step, 65 <= when < 67) == ("Removed", True)
    first, last = cluster.counts
    assert (first, last >= 65) == (0, True)
    assert said[0].startswith("Until 2026-11-23T12:01:05Z, writes at v1alpha1 may still end")


DOWN = Unreachable("connection refused")


def test_a_wait_outlasts_outages(cluster: Cluster) -> None:
    cluster.outages, cluster.lost = [DOWN] * 30, [ApiError(503, {"message": "shutting down"})]
    said: list[str] = []
    assert retire(cluster, said, wait=True).ready.reason == "Removed"
    assert len(cluster.steps) == 1
    told = [each for each in said if each.startswith("The API server does not respond")]
    assert told == [
        "The API server does not respond: connection refused",
        "The API server does not respond: 503 : shutting down",
    ]


def test_a_wait_outlasts_outages_around_a_migration(cluster: Cluster) -> None:
    migrated, cluster.crd = cluster.crd, STORED
    outages = [ApiError(503, {"message": "shutting down"}), DOWN]

    async def migrate() -> str:
        if outages:
            raise outages.pop()
        cluster.crd = migrated
        return ""

    said: list[str] = []
    with pytest.raises(Unreachable):
        retire(cluster, said, wait=False, migrate=migrate)
    assert said == []
    outages.append(DOWN)
    assert retire(cluster, said, wait=True, migrate=migrate).ready.reason == "Removed"
    assert outages == []
    assert said[0] == "The API server does not respond: connection refused"


@pytest.mark.parametrize(
    "message",
    [
        'Internal error occurred: failed calling webhook "a.example.com": connection refused',
        'admission webhook "a.example.com" denied the request: not today',
    ],
)
def test_a_wait_does_not_outlast_a_webhook(cluster: Cluster, message: str) -> None:
    """It refuses, or cannot be called, until a person repairs it."""
    cluster.crd = STORED

    async def migrate() -> str:
        raise ApiError(500, {"message": message})

    with pytest.raises(ApiError, match="webhook"):
        retire(cluster, [], wait=True, migrate=migrate)


@pytest.mark.parametrize(
    ("wait", "error"),
    [(False, DOWN), (True, ApiError(403, {"message": "forbidden"}))],
    ids=["now", "forbidden"],
)
def test_what_does_not_pass_ends_the_command(cluster: Cluster, wait: bool, error: Exception) -> None:
    cluster.outages = [error]
    with pytest.raises(type(error)):
        retire(cluster, [], wait=wait)


def test_a_wait_goes_on_if_not_all_objects_could_be_counted(cluster: Cluster) -> None:
    cluster.shown = [evidence(complete=False, failure="etcd is slow")] * 3
    assert retire(cluster, [], wait=True).ready.reason == "Removed"
    assert len(cluster.counts) > 3


def test_a_wait_ends_if_objects_may_not_be_counted(cluster: Cluster) -> None:
    cluster.shown = [evidence(complete=False, failure="forbidden", forbidden=True)] * 3
    ready = retire(cluster, [], wait=True).ready
    assert (ready.status, ready.reason) == ("False", "NotKnown")
    assert len(cluster.counts) == 1
