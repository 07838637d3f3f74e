"""What the API server says of a CRD that is created: every rule, in its order, with its words.

The server decodes, then checks. A CRD that cannot be decoded is refused for that alone.
"""

from collections.abc import Mapping
from typing import Any

from crdkeeper.core.definition.fields import DEFINITION
from crdkeeper.core.definition.internalform import Spec, internal
from crdkeeper.core.definition.rules_conversion import check_conversion
from crdkeeper.core.definition.rules_metadata import (
    check_api_approval,
    check_group,
    check_metadata,
    check_names,
)
from crdkeeper.core.definition.rules_schema import check_schema
from crdkeeper.core.definition.rules_versions import (
    check_columns,
    check_deprecation,
    check_preserve_unknown_fields,
    check_selectable_fields,
    check_stored_versions,
    check_subresources,
    check_version_name,
    check_versions,
)
from crdkeeper.core.schema import rules
from crdkeeper.core.schema.decoding import ABSENT
from crdkeeper.core.schema.fieldpath import Path, root
from crdkeeper.core.schema.props import Schema, subschemas
from crdkeeper.core.schema.violation import Report

API_VERSION = "apiextensions.k8s.io/v1"
_SCOPES = ("Cluster", "Namespaced")


def check_creation(document: Mapping[str, Any]) -> Report:
    """All that is to be said of a document whose kind is CustomResourceDefinition."""
    report = Report()
    version = document.get("apiVersion")
    if version != API_VERSION:
        report.invalid(rules.API_VERSION, root("apiVersion"), version, f"must be {API_VERSION}")
        return report
    crd = DEFINITION.decode(document, Path("", ()), report)
    if crd is ABSENT or any(each.rule is rules.DECODE for each in report.violations):
        return report
    spec = internal(crd)
    metadata = crd.get("metadata", {})
    check_metadata(metadata, spec.spec, report)
    _check_spec(spec, report)
    check_stored_versions(spec, report)
    check_api_approval(metadata, spec.spec, report)
    check_preserve_unknown_fields(spec, report)
    return report


def _check_spec(spec: Spec, report: Report) -> None:
    path = spec.path
    check_group(spec.spec, path, report)
    scope = spec.spec.get("scope", "")
    if not scope:
        report.required(rules.SCOPE, path.child("scope"))
    elif scope not in _SCOPES:
        report.not_supported(rules.SCOPE, path.child("scope"), scope, _SCOPES)
    if spec.shared.schema is None:
        for part in spec.own:
            if part.schema is None:
                report.required(rules.SCHEMA_REQUIRED, part.path.child("schema").child("openAPIV3Schema"))
    if spec.spec.get("preserveUnknownFields") and any(map(_has_default, spec.schemas)):
        detail = "must be false in order to use defaults in the schema"
        report.invalid(rules.PRESERVE_UNKNOWN_FIELDS, path.child("preserveUnknownFields"), True, detail)
    for version, part in zip(spec.versions, spec.own, strict=True):
        name = version.get("name", "")
        check_version_name(name, part.path.child("name"), report)
        check_deprecation(version, part.path, report)
        check_schema(part, status=spec.has_status(name), report=report)
        check_subresources(part, report)
        check_columns(part, report)
        check_selectable_fields(part, report)
    check_versions(spec, report)
    check_names(spec, report)
    check_schema(spec.shared, status=spec.any_status, report=report)
    check_subresources(spec.shared, report)
    check_columns(spec.shared, report)
    check_selectable_fields(spec.shared, report)
    check_conversion(spec.spec, path, report)


def _has_default(schema: Schema) -> bool:
    return "default" in schema or any(map(_has_default, subschemas(schema)))
