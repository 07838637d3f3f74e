"""Helpers for tests of DefinitionReports."""

import json
from collections.abc import Callable, Collection
from typing import Any

from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.meta import Condition, find_condition
from tests.cluster.harness import Admin, eventually
from tests.cluster.harness.admin import OURS

REPORTS = f"{OURS}/definitionreports"
_WAITING = {"Pending", "Installing", "NotYetProcessed"}


async def report_where(
    admin: Admin, name: str, holds: Callable[[DefinitionReport], bool], what: str = "as expected"
) -> DefinitionReport:
    """The report on a CRD as soon as that is true for it."""
    seen: list[DefinitionReport] = []

    async def look() -> DefinitionReport | None:
        found = await admin.find(f"{REPORTS}/{name}")
        if found is None:
            return None
        seen[:] = [DefinitionReport.model_validate(found)]
        return seen[0] if holds(seen[0]) else None

    def otherwise() -> str:
        stands = json.dumps(seen[0].status.to_object(), indent=1) if seen else "does not exist"
        return f"the report on {name} is not {what}: {stands}"

    return await eventually(look, otherwise=otherwise)


async def report_with(admin: Admin, name: str, **reasons: str) -> DefinitionReport:
    """The report on a CRD as soon as its conditions have these values as `Status/Reason`."""

    def holds(report: DefinitionReport) -> bool:
        return all(reported(report, type_) == expected for type_, expected in reasons.items())

    return await report_where(admin, name, holds, str(reasons))


async def complete(admin: Admin, names: Collection[str]) -> None:
    """Returns when these CRDs' reports wait for nothing: neither for the API server nor for a probe."""

    async def all_judged() -> bool:
        reports = [DefinitionReport.model_validate(each) for each in (await admin.get(REPORTS))["items"]]
        judged = {
            each.metadata.name
            for each in reports
            if not _WAITING & {condition.reason for condition in each.status.conditions}
        }
        return judged >= {*names}

    await eventually(all_judged)


def reported(report: DefinitionReport, type_: str) -> str:
    """`Status/Reason` of a condition; empty if there is none."""
    found = find_condition(report.status.conditions, type_)
    return f"{found.status}/{found.reason}" if found is not None else ""


def condition_of(report: DefinitionReport, type_: str) -> Condition:
    """A condition that must exist."""
    found = find_condition(report.status.conditions, type_)
    assert found is not None
    return found


def found(admin: Admin, kind: str, name: str) -> Any:
    """An object as kubectl gets it, as input of kstatus."""
    return json.loads(admin.cluster.kubectl("get", kind, name, "-o", "json"))
