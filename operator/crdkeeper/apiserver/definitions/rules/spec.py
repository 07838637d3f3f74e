"""The rules for spec in the API server's order: those for each version, for all versions, and the rest."""

from dataclasses import replace

from crdkeeper.apiserver.definitions.rules.conversion import check_conversion
from crdkeeper.apiserver.definitions.rules.internalform import Part, Spec
from crdkeeper.apiserver.definitions.rules.names import check_group, check_names
from crdkeeper.apiserver.definitions.rules.requirements import Requirements, has_defaults, must_be_structural
from crdkeeper.apiserver.definitions.rules.schema import check_schema
from crdkeeper.apiserver.definitions.rules.versions import (
    check_columns,
    check_deprecation,
    check_selectable_fields,
    check_subresources,
    check_version_name,
    check_versions,
)
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.violation import Report

_SCOPES = ("Cluster", "Namespaced")


def check_spec(spec: Spec, requirements: Requirements, report: Report) -> None:
    """Everything in spec by itself, without the rules about what an update must not change."""
    path = spec.path
    check_group(spec.spec, path, report)
    scope = spec.spec.get("scope", "")
    if not scope:
        report.required(rules.SCOPE, path.child("scope"))
    elif scope not in _SCOPES:
        report.not_supported(rules.SCOPE, path.child("scope"), scope, _SCOPES)
    _check_presence(spec, requirements, report)
    if spec.spec.get("preserveUnknownFields") and has_defaults(spec):
        detail = "must be false in order to use defaults in the schema"
        report.invalid(rules.PRESERVE_UNKNOWN_FIELDS, path.child("preserveUnknownFields"), True, detail)
    requirements = replace(requirements, structural=must_be_structural(spec, requirements))
    statuses = spec.statuses()
    for version, part in zip(spec.versions, spec.own, strict=True):
        name = version.get("name", "")
        check_version_name(name, part.path.child("name"), report)
        check_deprecation(version, part.path, report)
        _check_part(part, name, requirements, report, status=statuses[name])
    check_versions(spec, report)
    check_names(spec, report)
    first = spec.versions[0].get("name", "") if spec.versions else ""
    _check_part(spec.shared, first, requirements, report, status=spec.any_status)
    check_conversion(spec.spec, path, requirements, report)


def _check_presence(spec: Spec, requirements: Requirements, report: Report) -> None:
    if spec.shared.schema is not None:
        return
    for version, part in zip(spec.versions, spec.own, strict=True):
        if part.schema is not None:
            continue
        at = part.path.child("schema").child("openAPIV3Schema")
        if requirements.schemas:
            report.required(rules.SCHEMA_REQUIRED, at)
        elif not spec.spec.get("preserveUnknownFields") and version.get("served"):
            report.required(rules.SCHEMA_REQUIRED, at, "because otherwise all fields are pruned")


def _check_part(
    part: Part, version: str, requirements: Requirements, report: Report, *, status: bool
) -> None:
    check_schema(part, requirements, report, name=version, status=status)
    check_subresources(part, report)
    check_columns(part, report)
    any_number = (version if part.own else "") in requirements.many_selectable_fields
    check_selectable_fields(part, report, any_number=any_number)
