"""VersionsCurrent and the census: who wrote what, counted in bounded memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from crdkeeper.core.diagnosis.census import TOP, Census, CensusTally
from crdkeeper.core.diagnosis.conditions import versions
from crdkeeper.core.diagnosis.conditions.versions import VersionsFacts, judge
from crdkeeper.core.diagnosis.deprecation import DeprecatedVersion, deprecated_versions, needs_census
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.unit.builders import NOW, crd, definition

OLD = DeprecatedVersion("v1", True, "use v2")
WHEN = "2026-01-01T00:00:00Z"


def entry(version: str, manager: str = "helm", operation: str = "Update", **more: str) -> dict[str, Any]:
    group = more.pop("group", "example.com")
    return {
        "apiVersion": f"{group}/{version}",
        "manager": manager,
        "operation": operation,
        "time": WHEN,
        "fieldsV1": {},
        **more,
    }


def item(name: str, *entries: Mapping[str, Any], namespace: str = "ns") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "managedFields": list(entries)}}


def census(*items: Mapping[str, Any], complete: bool = True, failure: Failure | None = None) -> Census:
    tally = CensusTally(definition(), ("v1",))
    tally.add(items)
    return tally.census(NOW, complete=complete, resource_version="7", failure=failure)


def verdict(
    found: Census | None = None, deprecated: Sequence[DeprecatedVersion] = (), **changes: Any
) -> Verdict:
    return judge(VersionsFacts(definition(**changes), tuple(deprecated), found))


def test_counts() -> None:
    found = census(
        item("a", entry("v1"), entry("v2", "kubectl", "Apply")),
        item("b", entry("v1", time="2026-01-02T00:00:00Z"), entry("v1", "op", subresource="status")),
        item("c", namespace=""),
    )
    assert (found.objects, found.complete, found.resource_version, found.uses_total) == (3, True, "7", 3)
    assert found.versions == {"v1": 2, "v2": 1}
    helm, status, kubectl = found.uses
    assert (helm.manager, helm.version, helm.operation, helm.objects) == ("helm", "v1", "Update", 2)
    assert helm.last == datetime(2026, 1, 2, tzinfo=UTC)
    assert helm.examples == ("ns/a", "ns/b")
    assert (status.subresource, kubectl.manager) == ("status", "kubectl")


def test_an_object_counts_once_for_a_version() -> None:
    assert census(item("a", entry("v1"), entry("v1", "op"), entry("v1", "op", "Apply"))).versions == {"v1": 1}


def test_entries_of_other_groups_are_not_ours() -> None:
    found = census(item("a", entry("v1", group="autoscaling"), {"manager": "x"}))
    assert (found.versions, found.uses) == ({}, ())


def test_what_matters_most_is_kept() -> None:
    many = [item(f"m{i}", *(entry("v2", f"manager-{j:03}") for j in range(100))) for i in range(2)]
    found = census(*many, item("a", entry("v0", "z-gone"), entry("v1", "z-deprecated")))
    assert (len(found.uses), found.uses_total) == (TOP, 102)
    assert [each.manager for each in found.uses[:3]] == ["z-gone", "z-deprecated", "manager-000"]


def test_memory_is_bounded() -> None:
    tally = CensusTally(definition())
    tally.add(item(f"o{i}", entry(f"v{i}", f"m{i}")) for i in range(5000))
    found = tally.census(NOW, complete=False, resource_version="")
    assert (found.objects, found.uses_total, len(found.versions)) == (5000, 1000, 100)
    assert all(len(each.examples) == 1 for each in found.uses)


def test_who_needs_a_census() -> None:
    several = definition(generation=1)
    assert needs_census(several, ())
    changed = replace(several, versions=several.versions[1:], generation=2)
    assert needs_census(changed, ())
    first = replace(changed, generation=1)
    assert needs_census(first, (DeprecatedVersion("v2", True, ""),))
    assert not needs_census(first, ())
    assert judge(VersionsFacts(first, (), None)).reason is versions.CURRENT


def test_a_version_that_is_gone_breaks_applies() -> None:
    found = verdict(census(item("a", entry("v0")), item("b", entry("v2"))), [OLD])
    assert (found.reason, found.reason.healthy) == (versions.REMOVED_NAMED, False)
    assert found.message.startswith(
        "The CRD no longer has these versions, but managedFields name them: v0 by 1 object. "
        f'Written by "helm" at v0 (Update, 1 object, last {WHEN}, for example ns/a).'
    )
    assert "managedFields: Retarget and verify: Full" in found.message


def test_a_version_that_is_gone_is_told_before_the_count_is_complete() -> None:
    assert verdict(census(item("a", entry("v0")), complete=False)).reason is versions.REMOVED_NAMED


def test_a_deprecated_version_and_its_writers() -> None:
    found = verdict(census(item("a", entry("v1"), entry("v2", "op"))), [OLD])
    assert (found.reason, found.reason.status, found.reason.healthy) == (
        versions.DEPRECATED_WRITTEN,
        "False",
        True,
    )
    assert found.message.startswith('v1 is deprecated and served ("use v2"). Written by "helm" at v1 (Update')
    assert '"op"' not in found.message


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "have not been counted yet"),
        (census(item("a", entry("v2"))), "None of 1 object names it in managedFields."),
        (census(item("a", entry("v2")), complete=False), "None of the first 1 object names it"),
        (
            census(failure=Failure(ProbeTrouble.FORBIDDEN, 403, "cannot list"), complete=False),
            "It is not known who writes it: cannot list. The missing rule: apiGroups",
        ),
    ],
)
def test_a_deprecated_version_without_writers(found: Census | None, words: str) -> None:
    said = verdict(found, [OLD])
    assert said.reason is versions.DEPRECATED_SERVED
    assert words in said.message


def test_a_deprecated_version_that_is_not_served_is_no_matter() -> None:
    retired = DeprecatedVersion("v1", False, "")
    assert verdict(census(item("a", entry("v1"))), [retired]).reason is versions.CURRENT


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "Pending"),
        (census(item("a", entry("v2")), complete=False), "Pending"),
        (census(item("a", entry("v2")), item("b", entry("v1"))), "Current"),
        (census(), "Current"),
        (census(complete=False, failure=Failure(ProbeTrouble.FORBIDDEN, 403, "no")), "NotPermitted"),
        (
            census(complete=False, failure=Failure(ProbeTrouble.SILENT, 0, "no answer")),
            "APIServerUnavailable",
        ),
        (
            census(complete=False, failure=Failure(ProbeTrouble.EXPIRED, 410, "too old")),
            "APIServerUnavailable",
        ),
    ],
)
def test_without_deprecated_versions(found: Census | None, reason: str) -> None:
    said = verdict(found)
    assert (said.reason.name, said.reason.healthy) == (reason, True)


def test_the_message_is_bounded() -> None:
    found = census(item("a", *(entry("v1", f"m{i}") for i in range(9))))
    assert found.uses_total == 9
    said = verdict(found, [OLD]).message
    assert '"m4"' in said and '"m5"' not in said
    assert "; and 4 more." in said


def test_the_deprecated_versions_of_a_definition() -> None:
    body = crd()
    body["spec"]["versions"][0] |= {"deprecated": True, "deprecationWarning": "use v2"}
    assert deprecated_versions(body) == (OLD,)
