"""The SARIF output of `crdkeeper lint`, for code hosts: it becomes annotations of a pull request.

The parts that hosts read are documented at
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning.
"""

from collections.abc import Sequence
from typing import Any

from crdkeeper.cli.lint.causes import CommonCause, lines
from crdkeeper.cli.lint.findings import Ignored, LintFinding, LintResult
from crdkeeper.cli.output.printing import print_json
from crdkeeper.cli.sarif import document, location
from crdkeeper.core.lint.severity import Severity
from crdkeeper.core.text import count

_DOCUMENTATION = "docs/lint.md"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
    Severity.UNCHECKED: "note",
}
MOST_RESULTS = 25_000
"""GitHub rejects a run with more."""
_RELATED = 50
"""How many further places of a finding to list; hosts reject large files."""


def print_sarif(result: LintResult) -> None:
    """Print a run; findings that share a line of the text are one result with related places."""
    every = lines(result.findings)
    groups = _most_severe(every)
    ignored = result.ignored[: MOST_RESULTS - len(groups)]
    known = result.known[: MOST_RESULTS - len(groups) - len(ignored)]
    findings = [*(each.first for each in groups), *(each.finding for each in ignored), *known]
    cut = len(every) + len(result.ignored) + len(result.known) - len(findings)
    print_json(
        document(
            [each.rule for each in findings],
            [*map(_result, groups), *map(_suppressed, ignored), *map(_known, known)],
            result.failed,
            complete=not result.missing,
            cut=f"{count(cut, 'result')} not listed: the most severe come first" if cut else "",
            documentation=_DOCUMENTATION,
        )
    )


def _most_severe(groups: Sequence[CommonCause]) -> Sequence[CommonCause]:
    """As many as hosts accept, in their order: the most severe ones if there are more."""
    if len(groups) <= MOST_RESULTS:
        return groups
    kept = sorted(range(len(groups)), key=lambda at: groups[at].first.severity.rank)[:MOST_RESULTS]
    return [groups[at] for at in sorted(kept)]


def _result(group: CommonCause) -> dict[str, Any]:
    made = _one(group.first, group.more)
    related = [_place(each) for each in [*group.others, *group.elsewhere][:_RELATED]]
    return {**made, "relatedLocations": related} if related else made


def _suppressed(ignored: Ignored) -> dict[str, Any]:
    suppression = {"kind": "inSource", "justification": ignored.reason}
    return {**_one(ignored.finding, ""), "suppressions": [suppression]}


def _known(finding: LintFinding) -> dict[str, Any]:
    suppression = {"kind": "external", "justification": "It is in the baseline."}
    return {**_one(finding, ""), "baselineState": "unchanged", "suppressions": [suppression]}


def _one(finding: LintFinding, more: str) -> dict[str, Any]:
    what = f"{finding.field}: {finding.message}" if finding.field else finding.message
    return {
        "ruleId": finding.rule.id,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{what}{finding.elsewhere}{more}\n{finding.rule.remedy}"},
        "locations": [_place(finding)],
    }


def _place(finding: LintFinding) -> dict[str, Any]:
    named = f"{finding.definition}/{finding.field}"
    logical: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": named}]}
    return {**location(finding.file, finding.position), **logical} if finding.file else logical
