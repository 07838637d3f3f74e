"""The facts kept of a CRD."""

from datetime import UTC, datetime
from typing import Any

import pytest

from crdkeeper.apiserver.definitions.facts import VersionFacts, definition_facts, spec_changed_at
from tests.unit.builders import NAME, crd, definition


def entry(time: str, **more: str) -> dict[str, str]:
    return {"manager": "kubectl", "operation": "Update", "apiVersion": "apiextensions.k8s.io/v1"} | {
        "time": time,
        **more,
    }


def at(hour: int, minute: int, second: int) -> datetime:
    return datetime(2026, 1, 2, hour, minute, second, tzinfo=UTC)


def test_a_crd_is_reduced() -> None:
    facts = definition_facts(crd(labels={"team": "a"}, creationTimestamp="2026-01-02T03:04:05Z"))
    assert facts.name == NAME
    assert (facts.uid, facts.resource_version, facts.generation) == ("u1", "100", 2)
    assert (facts.group, facts.plural, facts.kind, facts.namespaced) == (
        "example.com",
        "widgets",
        "Widget",
        True,
    )
    assert facts.versions == (VersionFacts("v1", True, False), VersionFacts("v2", True, True))
    assert facts.stored_versions == ("v1", "v2")
    assert facts.labels == {"team": "a"}
    assert facts.established
    assert not facts.terminating
    assert facts.changed_at is None
    assert facts.created_at == at(3, 4, 5)


def test_a_crd_that_was_just_created_has_hardly_a_status() -> None:
    new = crd()
    del new["status"], new["metadata"]["generation"]
    facts = definition_facts(new)
    assert not facts.established
    assert facts.stored_versions == ()
    assert facts.generation == 0


def test_what_is_no_crd_is_refused() -> None:
    with pytest.raises(KeyError):
        definition_facts({"metadata": {"name": NAME}})


@pytest.mark.parametrize(
    ("changes", "terminating"),
    [
        ({}, False),
        ({"deletionTimestamp": "2026-01-02T03:04:05Z"}, True),
        ({"status": {"conditions": [{"type": "Terminating", "status": "True"}]}}, True),
        ({"status": {"conditions": [{"type": "Terminating", "status": "False"}]}}, False),
    ],
)
def test_terminating(changes: dict[str, Any], terminating: bool) -> None:
    assert definition(**changes).terminating is terminating


@pytest.mark.parametrize(
    ("storage", "served", "endpoint"),
    [
        ("v2", ("v1", "v2"), "v2"),
        ("v1", ("v1", "v2"), "v1"),
        ("v2", ("v1",), "v1"),
        ("v2", (), None),
    ],
    ids=["both served", "the other stores", "storage version not served", "none served"],
)
def test_the_version_to_talk_to(storage: str, served: tuple[str, ...], endpoint: str | None) -> None:
    facts = definition(storage=storage, served=served)
    assert (facts.storage_version, facts.endpoint_version) == (storage, endpoint)


@pytest.mark.parametrize(
    ("stored", "outdated"),
    [(("v1", "v2"), ("v1",)), (("v2",), ()), (("v0", "v1"), ("v0", "v1")), ((), ())],
)
def test_outdated_versions(stored: tuple[str, ...], outdated: tuple[str, ...]) -> None:
    assert definition(stored=stored).outdated_versions == outdated


@pytest.mark.parametrize(
    ("entries", "changed"),
    [
        ([], None),
        ([entry("2026-01-02T03:04:05Z")], at(3, 4, 6)),
        ([entry("2026-01-02T03:04:05Z"), entry("2026-01-02T04:00:00Z")], at(4, 0, 1)),
        ([entry("2026-01-02T03:04:05Z"), entry("2026-01-02T04:00:00Z", subresource="status")], at(3, 4, 6)),
        ([entry("2026-01-02T04:00:00Z", subresource="status")], None),
        ([{"manager": "restored", "operation": "Update"}], None),
        ([entry("0000-01-01T00:00:00Z")], datetime(1, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ([entry("9999-12-31T23:59:59Z")], datetime.max.replace(tzinfo=UTC)),
    ],
    ids=[
        "none",
        "one",
        "the newest",
        "not of a subresource",
        "a subresource alone",
        "without a time",
        "the first",
        "the last",
    ],
)
def test_when_spec_changed_at_the_latest(entries: list[dict[str, str]], changed: datetime | None) -> None:
    # A second later than recorded: the API server truncates fractions.
    assert spec_changed_at({"managedFields": entries}) == changed


def test_without_managed_fields_nothing_tells_when_spec_changed() -> None:
    assert spec_changed_at({}) is None
