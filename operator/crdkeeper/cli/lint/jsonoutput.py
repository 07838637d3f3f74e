"""The JSON output of `crdkeeper lint`. Fields are only ever added."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from crdkeeper.cli.lint.causes import causes
from crdkeeper.cli.lint.findings import LintFinding, LintResult
from crdkeeper.cli.output import printing
from crdkeeper.core.lint.severity import Severity

MOST: Final = 100_000
"""Elements of each list: about 100 MB."""

_T = TypeVar("_T")


class _Lists:
    """Limits lists, and counts what they lack."""

    def __init__(self) -> None:
        self.not_listed: dict[str, int] = {}

    def cut(self, name: str, items: Sequence[_T]) -> Sequence[_T]:
        """The first elements of a list."""
        if len(items) > MOST:
            self.not_listed[name] = len(items) - MOST
        return items[:MOST]


def print_json(result: LintResult) -> None:
    """Print everything, each finding separately; if not all can be listed, the most severe first."""
    lists = _Lists()
    unchecked = result.of(Severity.UNCHECKED)
    found = [each for each in result.findings if each.severity is not Severity.UNCHECKED]
    if len(found) > MOST:
        found.sort(key=lambda each: each.severity.rank)
    document = {
        "checked": result.checked,
        "findings": _with_causes(lists.cut("findings", found)),
        "ignored": [each.to_object() for each in lists.cut("ignored", result.ignored)],
        "hidden": result.hidden,
        "baseline": {
            "known": [each.to_object() for each in lists.cut("baseline.known", result.known)],
            "stale": [
                {"definition": crd, "id": id, "field": field}
                for crd, id, field in lists.cut("baseline.stale", result.stale)
            ],
        },
        "unchecked": {
            "counts": dict(sorted(Counter(each.rule.id for each in unchecked).items())),
            "items": [each.to_object() for each in lists.cut("unchecked.items", unchecked)],
        },
        "skipped": [
            {"file": each.file, "line": each.position.line, "what": each.what}
            for each in lists.cut("skipped", result.skipped)
        ],
        "excluded": lists.cut("excluded", result.excluded),
        "missing": result.missing,
        "unreadable": [
            {
                "file": each.file,
                "line": each.position.line,
                "column": each.position.column,
                "message": each.message,
            }
            for each in lists.cut("unreadable", result.failed)
        ],
        "notListed": lists.not_listed,
    }
    printing.print_json(document)


def _with_causes(findings: Sequence[LintFinding]) -> list[dict[str, Any]]:
    """The findings; those of one cause have its number."""
    numbers: dict[int, int] = {}
    several = (each for each in causes(findings) if each.others or each.elsewhere)
    for number, each in enumerate(several, 1):
        numbers.update((id(one), number) for one in (each.first, *each.others, *each.elsewhere))
    return [
        {**each.to_object(), **({"cause": numbers[id(each)]} if id(each) in numbers else {})}
        for each in findings
    ]
