"""The rules for x-kubernetes-validations, except its expressions, which are not compiled here."""

from typing import Any

from crdkeeper.apiserver.golang.strings import trim_space
from crdkeeper.apiserver.schema import fieldreference, rules
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import VALIDATIONS, Schema
from crdkeeper.apiserver.schema.structural import conversion_error
from crdkeeper.apiserver.schema.violation import Report

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def check_validations(
    schema: Schema, path: Path, report: Report, conversion_errors: dict[int, str | None]
) -> None:
    """Report the errors in each rule's message, reason and fieldPath.

    `conversion_errors` are those of nodes of the whole schema, by their id; more are added.
    """
    # Once for all rules, and for all nodes in each other: this looks at everything below.
    has_paths = any(each.get("fieldPath") for each in schema[VALIDATIONS])
    resolvable = has_paths and not conversion_error(schema, conversion_errors)
    for i, each in enumerate(schema[VALIDATIONS]):
        at = path.child(VALIDATIONS).index(i)
        _check_texts(each, at, report)
        reason = each.get("reason")
        if reason is not None and reason not in _REASONS:
            at_reason = at.child("reason")
            report.not_supported(rules.VALIDATION_RULE, at_reason, reason, _REASONS, as_json=True)
        if each.get("fieldPath"):
            at_path = at.child("fieldPath")
            _check_field_path(each["fieldPath"], schema if resolvable else None, at_path, report)


def _check_texts(rule: dict[str, Any], path: Path, report: Report) -> None:
    text, message = rule.get("rule", ""), rule.get("message", "")
    if not trim_space(text):
        report.required(rules.VALIDATION_RULE, path.child("rule"), "rule is not specified")
    elif message and not trim_space(message):
        report.invalid(
            rules.VALIDATION_RULE, path.child("message"), message, "must be non-empty if specified"
        )
    elif _has_line_breaks(trim_space(message)):
        report.invalid(rules.VALIDATION_RULE, path.child("message"), message, "must not contain line breaks")
    elif _has_line_breaks(trim_space(text)) and not trim_space(message):
        detail = "message must be specified if rule contains line breaks"
        report.required(rules.VALIDATION_RULE, path.child("message"), detail)
    expression = rule.get("messageExpression", "")
    if expression and not trim_space(expression):
        detail = "messageExpression must be non-empty if specified"
        report.required(rules.VALIDATION_RULE, path.child("messageExpression"), detail)


def _check_field_path(field_path: str, schema: Schema | None, path: Path, report: Report) -> None:
    """`schema` is None if there is none that paths could be looked up in."""
    if not trim_space(field_path):
        report.invalid(rules.VALIDATION_RULE, path, field_path, "must be non-empty if specified")
    if _has_line_breaks(field_path):
        report.invalid(rules.VALIDATION_RULE, path, field_path, "must not contain line breaks")
    if schema is None:
        return
    try:
        fieldreference.resolve(field_path, schema, arrays=True)
    except fieldreference.BadReference:
        report.invalid(rules.VALIDATION_RULE, path, field_path, "must be a valid path")
    except fieldreference.ServerFails as fails:
        report.leave(rules.VALIDATION_RULE, path, str(fails))


def _has_line_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text
