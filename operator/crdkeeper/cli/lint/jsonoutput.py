"""The JSON output of `crdkeeper lint`. Fields are only ever added."""

from collections import Counter

from crdkeeper.cli.lint.findings import LintResult
from crdkeeper.cli.output import printing
from crdkeeper.core.lint.severity import Severity


def print_json(result: LintResult) -> None:
    """Print everything, each finding separately."""
    unchecked = result.of(Severity.UNCHECKED)
    document = {
        "checked": result.checked,
        "findings": [each.to_object() for each in result.findings if each.severity is not Severity.UNCHECKED],
        "ignored": [each.to_object() for each in result.ignored],
        "hidden": result.hidden,
        "baseline": {
            "known": [each.to_object() for each in result.known],
            "stale": [{"definition": crd, "id": id, "field": field} for crd, id, field in result.stale],
        },
        "unchecked": {
            "counts": dict(sorted(Counter(each.rule.id for each in unchecked).items())),
            "items": [each.to_object() for each in unchecked],
        },
        "skipped": [
            {"file": each.file, "line": each.position.line, "what": each.what} for each in result.skipped
        ],
        "excluded": result.excluded,
        "missing": result.missing,
        "unreadable": [
            {
                "file": each.file,
                "line": each.position.line,
                "column": each.position.column,
                "message": each.message,
            }
            for each in result.failed
        ],
    }
    printing.print_json(document)
