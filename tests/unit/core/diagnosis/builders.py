"""CRDs as returned by the API server, and facts about them, so that a test states only what matters."""

from typing import Any

from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.meta import ObjectMeta, OwnerReference
from crdkeeper.core.diagnosis.assessment import Assessment
from crdkeeper.core.diagnosis.facts import LiveFacts, ReportFacts, SeenDefinition, seen_definition
from crdkeeper.core.diagnosis.report import Wanted
from tests.unit.builders import NAME, NOW, crd

OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def condition(type_: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    """A condition in a CRD's status."""
    return {"type": type_, "status": status, "reason": reason, "message": message}


GOOD = (
    condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
)


def live_crd(
    *,
    conditions: tuple[dict[str, str], ...] = GOOD,
    schema: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    group: str = "example.com",
    accepted: dict[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A CRD with a schema in each version; `changes` are those of `tests.unit.builders.crd`."""
    made = crd(**changes)
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    made["apiVersion"], made["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
    made["metadata"]["name"] = made["metadata"]["name"].replace("example.com", group)
    made["spec"] |= {"group": group, "names": names, **(spec or {})}
    for version in made["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": OPEN if schema is None else schema}
    made["status"] |= {"conditions": list(conditions), "acceptedNames": accepted or names}
    return made


def seen(**changes: Any) -> SeenDefinition:
    """A CRD as seen by the watch."""
    return seen_definition(live_crd(**changes))


def facts(assessment: Assessment | None = None, **changes: Any) -> ReportFacts:
    """Everything that a report is made from; by default the CRD stores only one version."""
    known = {key: changes.pop(key) for key in ("conflicts", "migrations", "live", "now") if key in changes}
    known = {"now": NOW, "live": LiveFacts(), **known}
    return ReportFacts(seen(**{"stored": ("v2",), **changes}), assessment or Assessment(), **known)


def as_read(wanted: Wanted, *, version: str = "7", uid: str = "u1") -> DefinitionReport:
    """The report as returned by the API server after it was written."""
    owner = OwnerReference(
        api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition", name=NAME, uid=uid
    )
    metadata = ObjectMeta(name=NAME, uid="r1", resource_version=version, owner_references=[owner])
    written = DefinitionReport(metadata=metadata, status=wanted.status).to_object()
    return DefinitionReport.model_validate(written)


__all__ = ["GOOD", "NAME", "NOW", "as_read", "condition", "facts", "live_crd", "seen"]
