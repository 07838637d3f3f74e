"""A retirement from the command line, in virtual time: what it waits for without --wait."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.apiserver.definitions.facts import definition_facts
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.retirement.facts import RetirementFacts, TakenEvidence, evidence_key
from crdkeeper.core.retirement.steps import Decision
from crdkeeper.operations.retirement import standalone
from crdkeeper.operations.retirement.standalone import StandaloneRetirement
from tests import virtualtime
from tests.unit.core.retirement.cases import NOW, definition, entry, evidence, owner

GONE = definition(entry("v1"))


class Cluster:
    """A CRD whose version is not served any more, and whose objects do not name it."""

    def __init__(self) -> None:
        self.crd = definition(entry("v1alpha1", deprecated=True, served=False), entry("v1"))
        self.steps: list[tuple[float, str | None]] = []
        self.counts: list[float] = []

    def now(self) -> datetime:
        return NOW + timedelta(seconds=virtualtime.now())

    async def look(
        self, client: Any, of: VersionRetirement, taken: TakenEvidence | None, *, rights: bool
    ) -> RetirementFacts:
        return RetirementFacts(self.crd, self.now(), taken=taken)

    async def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Everything is allowed."""
        return {"status": {"allowed": True}}

    async def count(
        self, client: Any, of: VersionRetirement, facts: RetirementFacts, audit: None
    ) -> TakenEvidence:
        self.counts.append(virtualtime.now())
        key = evidence_key(definition_facts(self.crd), ())
        return TakenEvidence(evidence(), self.now(), key)

    async def take_step(
        self, client: Any, of: VersionRetirement, facts: RetirementFacts, decision: Decision
    ) -> RetirementFacts:
        self.steps.append((virtualtime.now(), decision.due))
        self.crd = GONE
        return replace(facts, crd=GONE)


def test_the_version_is_removed_only_after_writes_in_flight_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    for each in ("look", "count", "take_step"):
        monkeypatch.setattr(standalone, each, getattr(cluster, each))
    said: list[str] = []

    async def migrate() -> str:
        raise AssertionError("nothing is to be migrated")

    retirement = StandaloneRetirement(cast(Client, cluster), owner(), said.append, migrate)
    decision = virtualtime.run(retirement.run(wait=False))
    assert decision.ready.reason == "Removed"
    ((when, step),) = cluster.steps
    assert (step, 65 <= when < 67) == ("Removed", True)
    first, last = cluster.counts
    assert (first, last >= 65) == (0, True)
    assert said[0].startswith("Until 2026-11-23T12:01:05Z, writes at v1alpha1 may still end")
