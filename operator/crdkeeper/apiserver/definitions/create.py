"""The API server's answer to a new CRD: every rule, in its order, with its messages.

The server decodes, then validates. A CRD that cannot be decoded is rejected for that alone.
"""

from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.definitions.fields import DEFINITION
from crdkeeper.apiserver.definitions.rules.internalform import Decoded, internal
from crdkeeper.apiserver.definitions.rules.names import check_api_approval
from crdkeeper.apiserver.definitions.rules.objectmeta import check_created_metadata
from crdkeeper.apiserver.definitions.rules.requirements import CREATION
from crdkeeper.apiserver.definitions.rules.spec import check_spec
from crdkeeper.apiserver.definitions.rules.versions import (
    check_preserve_unknown_fields,
    check_stored_versions,
)
from crdkeeper.apiserver.objects.effort import limited
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.decoding import ABSENT
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.violation import Report

API_VERSION = "apiextensions.k8s.io/v1"
MOST_STEPS = 100_000_000
"""For the defaults and expressions of all versions: at most ten seconds, even if they are slow on purpose."""


def check_creation(document: Mapping[str, Any]) -> Report:
    """All errors and warnings for a document whose kind is CustomResourceDefinition."""
    report = Report()
    try:
        crd = decode(document, report)
    except RecursionError:
        leave_too_deep(report)
        return report
    if crd is not None:
        check_decoded(crd, report)
    return report


def check_decoded(crd: Decoded, report: Report) -> None:
    """All errors and warnings for a CRD, besides those of its decoding."""
    try:
        spec = internal(crd)
        metadata = crd.get("metadata", {})
        check_created_metadata(metadata, spec.spec, report)
        with limited(MOST_STEPS):
            check_spec(spec, CREATION, report)
        check_stored_versions(spec, [], report)
        check_api_approval(metadata, spec.spec, None, report)
        check_preserve_unknown_fields(spec, report)
    except RecursionError:
        leave_too_deep(report)


def decode(document: Mapping[str, Any], report: Report) -> Decoded | None:
    """Decode the document as the server does; None, after reporting why, if that fails."""
    version = document.get("apiVersion")
    if version != API_VERSION:
        report.invalid(rules.API_VERSION, root("apiVersion"), version, f"must be {API_VERSION}")
        return None
    crd: Any = DEFINITION.decode(document, Path("", ()), report)
    if crd is ABSENT or any(each.rule is rules.DECODE for each in report.violations):
        return None
    found: Decoded = crd
    return found


def leave_too_deep(report: Report) -> None:
    """Leave a CRD whose schemas or values are nested too deeply for recursion to the server."""
    report.leave(rules.DECODE, root("spec"), "it nests too deep to be checked here")
