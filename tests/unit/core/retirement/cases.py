"""A CRD, its retirement and evidence for the decisions to be tested."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.apiserver.definitions.facts import definition_facts
from crdkeeper.core.retirement.evidence import Evidence, Obstacle, Reader, Writer
from crdkeeper.core.retirement.facts import RetirementFacts, TakenEvidence, evidence_key
from crdkeeper.core.retirement.standing import report
from crdkeeper.core.retirement.steps import Decision, decide

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def entry(name: str, **fields: Any) -> dict[str, Any]:
    """One of spec.versions."""
    return {"name": name, "served": True, "storage": name == "v1", "schema": {"x": 1}, **fields}


def definition(
    *versions: Mapping[str, Any], stored: Iterable[str] = ("v1",), uid: str = "u1", generation: int = 1
) -> dict[str, Any]:
    """A CRD as the API server returns it."""
    return {
        "metadata": {
            "name": "dbs.example.com",
            "uid": uid,
            "resourceVersion": "7",
            "generation": generation,
            "managedFields": [
                {
                    "manager": "old",
                    "time": "2026-01-01T00:00:00Z",
                    "fieldsV1": {"f:spec": {"f:versions": {}}},
                },
                {
                    "manager": "argocd",
                    "time": "2026-02-01T00:00:00Z",
                    "fieldsV1": {"f:spec": {"f:versions": {}}},
                },
                {"manager": "other", "time": "2026-03-01T00:00:00Z", "fieldsV1": {"f:metadata": {}}},
            ],
        },
        "spec": {
            "group": "example.com",
            "names": {"plural": "dbs", "kind": "Db"},
            "scope": "Namespaced",
            "versions": [dict(each) for each in versions],
        },
        "status": {"storedVersions": list(stored)},
    }


def owner(status: Mapping[str, Any] | None = None, generation: int = 1, **spec: Any) -> VersionRetirement:
    """A retirement of v1alpha1; keywords are fields of spec as in a manifest."""
    resource = {"group": "example.com", "resource": "dbs"}
    return VersionRetirement.model_validate(
        {
            "metadata": {"name": "old", "uid": "r1", "generation": generation},
            "spec": {
                "resource": resource,
                "version": "v1alpha1",
                "quietPeriod": "2h",
                "mode": "Execute",
                **spec,
            },
            "status": status or {},
        }
    )


def evidence(*writers: Writer, complete: bool = True, objects: int = 0, **fields: Any) -> Evidence:
    """Evidence of these writers."""
    return Evidence(
        writers=writers,
        writer_count=len(writers),
        objects=objects,
        counted=10,
        complete=complete,
        failure=fields.pop("failure", ""),
        newest=max((each.last for each in writers if each.last), default=None),
        readers=fields.pop("readers", ()),
        owners=(),
        holds=(),
        warnings=fields.pop("warnings", ()),
        unknown=(),
        audit=fields.pop("audit", None),
        forbidden=fields.pop("forbidden", False),
    )


def writer(last: datetime | None, manager: str = "tool") -> Writer:
    """A writer whose newest entry is of that time."""
    return Writer(manager, "Apply", "", "shop", 3, last)


def reader(requests: int, since: datetime = NOW - 100 * HOUR) -> Reader:
    """An API server that has counted so many requests."""
    return Reader("", f"{requests} x LIST", since, "", {"LIST": requests})


def facts(
    crd: Mapping[str, Any] | None,
    found: Evidence | None = None,
    *,
    taken: datetime = NOW,
    now: datetime = NOW,
    holds: tuple[Obstacle, ...] = (),
    migrations: tuple[StorageMigration, ...] = (),
    missing: tuple[str, ...] = (),
) -> RetirementFacts:
    """What was gathered; the evidence is about the CRD as it is."""
    counted = None
    if crd is not None and found is not None:
        counted = TakenEvidence(found, taken, evidence_key(definition_facts(crd), migrations))
    return RetirementFacts(crd, now, holds, counted, migrations, missing)


def passed(of: VersionRetirement, gathered: RetirementFacts) -> Decision:
    """The decision, reported in the status of `of`, as after one pass."""
    decision = decide(of, gathered)
    report(of, gathered, decision)
    return decision
