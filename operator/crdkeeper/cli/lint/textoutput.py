"""The text output of `crdkeeper lint`: findings on stdout, other messages on stderr."""

from collections import Counter

from crdkeeper.cli.input.files import summary
from crdkeeper.cli.lint.causes import CommonCause, lines
from crdkeeper.cli.lint.findings import LintResult
from crdkeeper.cli.output.printing import line
from crdkeeper.core.lint.severity import Severity
from crdkeeper.core.text import count

_SHOWN = 400
_STALE = 20
MOST_LINES = 500
"""Errors of one rule in one CRD, each of which has its own line."""
_BEHIND = " (the API server says this once the other errors are fixed)"


def print_text(result: LintResult) -> None:
    """Print one line for each cause, or for warnings of one kind in one CRD; a kind is explained once."""
    explained: set[str] = set()
    groups = [each for each in lines(result.findings) if each.first.severity is not Severity.UNCHECKED]
    left = Counter(map(_kind, groups))
    printed: Counter[tuple[str, str, str]] = Counter()
    for group in groups:
        each, kind = group.first, _kind(group)
        printed[kind] += 1
        left[kind] -= 1
        if printed[kind] > MOST_LINES:
            continue
        message = each.message if len(each.message) <= _SHOWN else each.message[:_SHOWN] + "…"
        message += each.elsewhere
        field = f"{each.field}: " if each.field else ""
        behind = _BEHIND if each.behind else ""
        line(f"{each.place}: {each.severity.value}[{each.rule.id}]: {field}{message}{group.more}{behind}")
        if each.rule.id not in explained:
            explained.add(each.rule.id)
            line(f"    why: {each.rule.why}")
            line(f"    hint: {each.rule.remedy}")
        if printed[kind] == MOST_LINES and left[kind]:
            line(f"{each.place}: and {left[kind]:,} more {each.rule.id} in this CRD (-o json lists them)")
    _print_notes(result)
    parts = [count(len(result.of(each)), each.value) for each in (Severity.ERROR, Severity.WARNING)]
    infos = len(result.of(Severity.INFO))
    parts += [f"{infos} info"] if infos else []
    parts += [f"{len(result.ignored)} ignored"] if result.ignored else []
    parts += [f"{len(result.known)} in the baseline"] if result.known else []
    parts += [f"{result.hidden} info hidden (--all shows them)"] if result.hidden else []
    line(f"{count(result.checked, 'CRD')}: {', '.join(parts)}.", err=True)


def _kind(group: CommonCause) -> tuple[str, str, str]:
    return group.first.file, group.first.definition, group.first.rule.id


def _print_stale(result: LintResult) -> None:
    for definition, id, field in result.stale[:_STALE]:
        line(f"stale in the baseline: {definition}: {id}: {field}", err=True)
    if len(result.stale) > _STALE:
        line(f"and {len(result.stale) - _STALE} more (-o json lists them)", err=True)
    if result.stale:
        line("Remove what is stale with --write-baseline: it would hide what comes back.", err=True)


def _print_notes(result: LintResult) -> None:
    if result.skipped:
        line(summary(result.skipped), err=True)
    for failure in result.failed:
        place = f"{failure.file}:{failure.position.line}:{failure.position.column}"
        line(f"{place}: unreadable: {failure.message}", err=True)
    for each in result.missing:
        line(f"Error: {each}", err=True)
    if result.excluded:
        line(f"Excluded by the configuration: {count(len(result.excluded), 'file')}.", err=True)
    _print_stale(result)
    unchecked = result.of(Severity.UNCHECKED)
    if not unchecked:
        return
    counts = sorted(Counter(each.rule.id for each in unchecked).items())
    what = ", ".join(f"{number:,} {id}" for id, number in counts)
    definitions = len({(each.file, each.definition) for each in unchecked})
    line(
        f"Not checked (neither passed nor failed): {what}, in {count(definitions, 'CRD')} "
        "(-o json lists them; kubectl create --dry-run=server decides).",
        err=True,
    )
