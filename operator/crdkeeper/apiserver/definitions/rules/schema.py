"""The rules for one version's schema as a whole: the content of its root, and the order of the checks."""

from crdkeeper.apiserver.definitions.rules.behind import check_behind
from crdkeeper.apiserver.definitions.rules.defaults import check_defaults
from crdkeeper.apiserver.definitions.rules.internalform import Part
from crdkeeper.apiserver.definitions.rules.node import NodeChecks
from crdkeeper.apiserver.definitions.rules.requirements import Requirements
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import FIELD_ORDER, PRESERVE, VALIDATIONS, Schema
from crdkeeper.apiserver.schema.structural import conversion_error, violations
from crdkeeper.apiserver.schema.violation import OMITTED, Report

_AT_ROOT = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    PRESERVE: "XPreserveUnknownFields",
    VALIDATIONS: "XValidations",
}
"""What the root of a schema with a status subresource may contain, with the server's names for it."""


def check_schema(part: Part, requirements: Requirements, report: Report, *, name: str, status: bool) -> None:
    """The schema of a version, or the one that all share.

    `name` is the (first) version, `status` whether there is a status subresource.
    """
    schema = part.schema
    if schema is None:
        return
    path = part.place("schema").child("openAPIV3Schema")
    before = len(report.violations)
    if status:
        _check_root_with_status(schema, path, part.place("schema"), report)
    if schema.get("nullable"):
        at = part.place("schema").child("openAPIV3Schema.nullable", "openAPIV3Schema", "nullable")
        report.forbidden(rules.ROOT_NULLABLE, at, "nullable cannot be true at the root")
    error = conversion_error(schema) if requirements.structural else None
    with_cel = False
    if requirements.structural and error is None:
        found = len(report.violations)
        violations(schema, path, report)
        if len(report.violations) == found:
            check_defaults(schema, path, report, must_be_pruned=requirements.pruned_defaults)
            with_cel = len(report.violations) == found
    any_cost = name in requirements.unchanged_schemas
    checks = NodeChecks(requirements, report, any_cost=any_cost)
    checks.check_all(schema, path, expressions=with_cel)
    if error is not None and len(report.violations) == before:
        report.invalid(rules.UNSUPPORTED_KEYWORD, path, "", error)
    if with_cel:
        checks.check_total_cost(path)
    reported = report.violations[before:]
    if reported and requirements.structural:
        report.behind += check_behind(schema, path, requirements, reported, any_cost=any_cost)


def _check_root_with_status(schema: Schema, path: Path, owner: Path, report: Report) -> None:
    for key in FIELD_ORDER:
        if key not in schema:
            continue
        if key == "type":
            if schema["type"] != "object":
                at = owner.child("openAPIV3Schema.type", "openAPIV3Schema", "type")
                detail = (
                    'only "object" is allowed as the type at the root of the schema '
                    "if the status subresource is enabled"
                )
                report.invalid(rules.STATUS_ROOT, at, schema["type"], detail)
                return
        elif key not in _AT_ROOT:
            detail = (
                f"only [{' '.join(_AT_ROOT.values())}] fields are allowed at the root of the schema "
                "if the status subresource is enabled"
            )
            report.invalid(rules.STATUS_ROOT, path, OMITTED, detail)
            return
