"""Prints the results of `crdkeeper rehearse`: as text, or as a document for programs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crdkeeper.cli.output.printing import line, lines, print_json, print_yaml
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.core.rehearsal.report import RehearsalReport, RehearsalVerdict
from crdkeeper.core.rehearsal.tally import EffectCount
from crdkeeper.core.text import count

_NOT_SERVED = "is not served today"
_VERDICTS = {
    RehearsalVerdict.SAFE: "Nothing is lost or refused.",
    RehearsalVerdict.HARMFUL: "Something is lost or refused.",
    RehearsalVerdict.REJECTED: "The API server refuses the new CRD.",
    RehearsalVerdict.UNCERTAIN: "The outcome is uncertain for some objects.",
}


def document(reports: Sequence[RehearsalReport]) -> dict[str, Any]:
    """A RehearsalList; fields may be added to it, but not removed."""
    return {
        "apiVersion": "cli.crdkeeper.dev/v1alpha1",
        "kind": "RehearsalList",
        "items": [_item(each) for each in reports],
    }


def _item(report: RehearsalReport) -> dict[str, Any]:
    return {
        "name": report.name,
        "verdict": report.verdict.value,
        "judgedBy": _judges(report.by_server, report.tally.objects),
        "objectsByServer": report.by_server,
        "isNew": report.is_new,
        "rejections": list(report.rejections),
        "objects": report.tally.objects,
        "gone": report.gone,
        "affected": _labelled(report.tally.affected),
        "affectedToday": _labelled(report.tally.today),
        "affectedAtNewVersions": _labelled(report.tally.at_new_versions),
        "findings": [_finding(each) for each in report.tally.findings()],
        "findingsLeftOut": report.tally.beyond,
        "doubts": report.doubts,
        "notes": report.notes,
    }


def _labelled(counts: Mapping[EffectKind, int]) -> dict[str, int]:
    return {each.label: counts[each] for each in EffectKind if each in counts}


def _judges(by_server: int, objects: int) -> str:
    if not by_server:
        return "Engine"
    return "Server" if by_server >= objects else "Both"


def _finding(finding: EffectCount) -> dict[str, Any]:
    return {
        "effect": finding.kind.label,
        "field": finding.field,
        "versions": sorted(finding.versions),
        "message": finding.message,
        "messageVaries": finding.varies,
        "servedToday": not finding.at_new_version,
        "judgedBy": _judges(finding.by_server, finding.count),
        "count": finding.count,
        "examples": [
            {"namespace": each.namespace, "name": each.name, "field": each.field} for each in finding.examples
        ],
    }


def _json(reports: Sequence[RehearsalReport]) -> None:
    print_json(document(reports))


def _yaml(reports: Sequence[RehearsalReport]) -> None:
    print_yaml(document(reports))


def _text(reports: Sequence[RehearsalReport]) -> None:
    if len(reports) == 1:
        lines(_lines(reports[0]))
        return
    # One line is enough for each of many healthy ones.
    quiet = [each for each in reports if _is_quiet(each)]
    lines(f"{_headline(each)}. {_VERDICTS[each.verdict]}" for each in quiet)
    for i, each in enumerate(each for each in reports if not _is_quiet(each)):
        if i or quiet:
            line()
        lines(_lines(each))
    numbers = Counter(each.verdict for each in reports)
    said = ", ".join(
        f"{numbers[each]:,} {each.value.lower()}" for each in RehearsalVerdict if each in numbers
    )
    lines(["", f"{count(len(reports), 'CRD')}: {said}."])


def _is_quiet(report: RehearsalReport) -> bool:
    """Whether there is nothing to report."""
    return report.verdict is RehearsalVerdict.SAFE and not report.tally.affected


def _lines(report: RehearsalReport) -> list[str]:
    lines = [_headline(report)]
    lines += [f"  {each}" for each in report.rejections]
    lines += _effects(
        report.tally.today, [each for each in report.tally.findings() if not each.at_new_version]
    )
    new = [each for each in report.tally.findings() if each.at_new_version]
    if new:
        versions = sorted(set().union(*(each.versions for each in new)))
        lines += ["", f"Only for clients that use {' or '.join(versions)}, which {_NOT_SERVED}:"]
        lines += _effects(report.tally.at_new_versions, new)
    if report.tally.beyond:
        lines += ["", f"{report.tally.beyond:,} more are counted, but not listed."]
    for title, said in (("Uncertain", report.doubts), ("Note", report.notes)):
        lines += ["", *(f"{title}: {each}" for each in said)] if said else []
    return [*lines, "", _conclusion(report)]


def _effects(counts: Mapping[EffectKind, int], findings: Sequence[EffectCount]) -> list[str]:
    lines = []
    for kind in EffectKind:
        if kind in counts:
            lines += ["", f"{kind.label} ({kind.meaning}): {count(counts[kind], 'object')}"]
            for each in findings:
                if each.kind is kind:
                    lines += _reported(each)
    return lines


def _conclusion(report: RehearsalReport) -> str:
    if report.verdict is RehearsalVerdict.HARMFUL and not any(each.is_harm for each in report.tally.today):
        return f"Nothing is lost or refused for clients of today, but at a version that {_NOT_SERVED}."
    return _VERDICTS[report.verdict]


def _headline(report: RehearsalReport) -> str:
    if report.is_new and not report.rejections:
        return f"{report.name}: a new CRD, which the API server would accept"
    if report.rejections:
        return f"{report.name}: refused"
    judge = "the engine, offline" if report.offline else _judge(report)
    gone = f", {report.gone:,} deleted in the meantime" if report.gone else ""
    return f"{report.name}: {count(report.tally.objects, 'object')} rehearsed by {judge}{gone}"


def _judge(report: RehearsalReport) -> str:
    if not report.by_server:
        return "the engine"
    asked = "" if report.by_server >= report.tally.objects else f" (of {report.by_server:,} objects)"
    return f"the engine and the API server{asked}"


def _reported(finding: EffectCount) -> list[str]:
    at = f" ({', '.join(sorted(finding.versions))})" if finding.versions else ""
    message = f"for example, {finding.message}" if finding.varies else finding.message
    said = ": ".join(filter(None, (finding.field, message)))
    proved = ", as the API server says" if finding.by_server else ""
    if 0 < finding.by_server < finding.count:
        proved += f" of {finding.by_server:,}"
    lines = [f"  {said}{at}: {count(finding.count, 'object')}{proved}"]
    if finding.examples:
        shown = ", ".join(map(str, finding.examples))
        more = ", …" if finding.count > len(finding.examples) else ""
        lines.append(f"      {shown}{more}")
    return lines


PRINTERS: Mapping[str, Callable[[Sequence[RehearsalReport]], None]] = {
    "text": _text,
    "json": _json,
    "yaml": _yaml,
}
"""How to print a report, by format."""
