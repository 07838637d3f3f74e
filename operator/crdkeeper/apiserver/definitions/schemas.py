"""The schemas of a CRD by version, decoded as the API server does."""

from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.definitions.fields import DEFINITION
from crdkeeper.apiserver.schema.decoding import ABSENT
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.apiserver.schema.violation import Report


class UnreadableDefinition(ValueError):
    """The document is not a CRD of apiextensions.k8s.io/v1."""


def schemas_of(document: Mapping[str, Any]) -> dict[str, Schema]:
    """The schema of each version, in the order of the CRD. Raises UnreadableDefinition, naming the field."""
    report = Report()
    crd = DEFINITION.decode(document, Path("", ()), report)
    if crd is ABSENT or report.violations:
        first = report.violations[0] if report.violations else None
        raise UnreadableDefinition(
            f"{first.path}: {first.message}" if first else "no CustomResourceDefinition"
        )
    found: dict[str, Schema] = {}
    for i, version in enumerate(crd.get("spec", {}).get("versions", ())):
        schema = version.get("schema", {}).get("openAPIV3Schema")
        if schema is None:
            raise UnreadableDefinition(f"spec.versions[{i}].schema.openAPIV3Schema: must be set")
        found[version.get("name", "")] = schema
    if not found:
        raise UnreadableDefinition("spec.versions: must name a version")
    return found
