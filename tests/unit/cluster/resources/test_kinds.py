"""Reading our own kinds, even if another version of crdkeeper wrote them."""

from typing import Any

from crdkeeper.cluster.resources.kinds import parse_report

FOUND: dict[str, Any] = {
    "apiVersion": "crdkeeper.dev/v1alpha1",
    "kind": "DefinitionReport",
    "metadata": {"name": "widgets.example.com", "uid": "1", "resourceVersion": "7"},
}


def finding(severity: str) -> dict[str, Any]:
    return {**FOUND, "status": {"storageVersion": "v1", "findings": [{**BODY, "severity": severity}]}}


BODY = {"id": "a", "path": "spec", "message": "No."}


def test_a_report_is_read() -> None:
    assert parse_report(finding("Warning")).status.storage_version == "v1"
    assert parse_report(FOUND).status.conditions == []


def test_a_status_that_is_not_understood_counts_for_nothing() -> None:
    """So that it is written again, instead of stopping the operator."""
    report = parse_report(finding("OfAnotherVersion"))
    assert report.status.storage_version == ""
    assert (report.metadata.name, report.metadata.resource_version) == ("widgets.example.com", "7")
