"""Removes one safeguard of the protocol, to show that it is needed and that the simulation detects it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from unittest import mock

from crdkeeper.api.storagemigration import MigrationTarget, StorageMigrationSpec, StorageMigrationStatus
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.transport.client import MERGE_PATCH, Client
from crdkeeper.core.migration import protocol
from crdkeeper.core.migration.observation import Observation
from crdkeeper.core.migration.settle import RollCall, Settling, settling, stale_leases
from crdkeeper.operations.migration import run
from tests.property.simulation.apiserver import DEFINITION


@contextmanager
def without_settling() -> Iterator[None]:
    """Evidence counts from the first moment."""
    with mock.patch.object(protocol, "settling", return_value=Settling(0.0, "Settled", "Not waited.")):
        yield


@contextmanager
def without_leases() -> Iterator[None]:
    """Only time counts, as with `apiServerLeases: Ignore`."""

    def careless(*more: Any, **options: Any) -> Settling:
        return _settling(*more, **{**options, "require_leases": False})

    with mock.patch.object(protocol, "settling", careless):
        yield


@contextmanager
def without_time_to_wake() -> Iterator[None]:
    """Time counts from the change, not from when the last API server was seen."""

    def careless(*more: Any, **options: Any) -> Settling:
        seen = options["renewed_at"] is not None
        return _settling(*more, **{**options, "renewed_at": options["changed_at"] if seen else None})

    with mock.patch.object(protocol, "settling", careless):
        yield


@contextmanager
def without_second_renewal() -> Iterator[None]:
    """An API server that was seen once is assumed to know the change."""

    def look(roll: RollCall, seen: Observation, now: datetime) -> None:
        if roll.complete_at is None and not stale_leases(seen, now):
            roll.complete_at = now

    with mock.patch.object(RollCall, "look", look):
        yield


@contextmanager
def without_generation() -> Iterator[None]:
    """Only CRD and storage version identify a target."""

    def same(one: MigrationTarget, other: MigrationTarget) -> bool:
        return (one.uid, one.storage_version) == (other.uid, other.storage_version)

    async def never(*_: object) -> bool:
        return False

    with (
        mock.patch.object(MigrationTarget, "same_as", same),
        mock.patch.object(run, "target_changed", never),
    ):
        yield


@contextmanager
def without_quarantine() -> Iterator[None]:
    """Refused objects are recorded, but block nothing."""

    def decide(
        spec: StorageMigrationSpec, status: StorageMigrationStatus, seen: Observation, **more: Any
    ) -> protocol.Action:
        careless = status.model_copy(deep=True)
        careless.progress.quarantined = 0
        return _decide(spec, careless, seen, **more)

    with mock.patch.object(protocol, "decide", decide):
        yield


@contextmanager
def without_verifying() -> Iterator[None]:
    """One pass is considered enough."""

    def decide(
        spec: StorageMigrationSpec, status: StorageMigrationStatus, seen: Observation, **more: Any
    ) -> protocol.Action:
        action = _decide(spec, status, seen, **more)
        if not isinstance(action, protocol.SweepAll) or action.type != "Verify":
            return action
        outdated = seen.definition is not None and seen.definition.outdated_versions
        return protocol.Trim() if outdated else protocol.Finish(True, "Migrated", "Not verified.")

    with mock.patch.object(protocol, "decide", decide):
        yield


@contextmanager
def without_preconditions() -> Iterator[None]:
    """The trim is an unconditional write."""

    async def careless(client: Client, definition: DefinitionFacts, keep: Sequence[str]) -> None:
        body = {"metadata": {}, "status": {"storedVersions": list(keep)}}
        await client.request("PATCH", f"{DEFINITION}/status", body, content_type=MERGE_PATCH)

    with mock.patch("crdkeeper.operations.migration.run.trim_stored_versions", careless):
        yield


_decide = protocol.decide
_settling = settling
