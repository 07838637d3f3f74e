"""How `crdkeeper rehearse` tells what it found: as text, or as a document for programs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crdkeeper.cli.output.printing import line, lines, print_json, print_yaml
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.core.rehearsal.report import RehearsalReport, RehearsalVerdict
from crdkeeper.core.rehearsal.tally import EffectCount
from crdkeeper.core.text import count

_VERDICTS = {
    RehearsalVerdict.SAFE: "Nothing is lost or refused.",
    RehearsalVerdict.HARMFUL: "Something is lost or refused.",
    RehearsalVerdict.REJECTED: "The API server refuses the new CRD.",
    RehearsalVerdict.UNCERTAIN: "The outcome is uncertain for some objects.",
}


def document(reports: Sequence[RehearsalReport]) -> dict[str, Any]:
    """A RehearsalList, which only ever gains fields."""
    return {
        "apiVersion": "cli.crdkeeper.dev/v1alpha1",
        "kind": "RehearsalList",
        "items": [_item(each) for each in reports],
    }


def _item(report: RehearsalReport) -> dict[str, Any]:
    return {
        "name": report.name,
        "verdict": report.verdict.value,
        "judgedBy": "Server" if report.by_server else "Engine",
        "isNew": report.is_new,
        "rejections": list(report.rejections),
        "objects": report.tally.objects,
        "gone": report.gone,
        "affected": {
            each.label: report.tally.affected[each] for each in EffectKind if each in report.tally.affected
        },
        "findings": [_finding(each) for each in report.tally.findings()],
        "findingsLeftOut": report.tally.beyond,
        "doubts": report.doubts,
        "notes": report.notes,
    }


def _finding(finding: EffectCount) -> dict[str, Any]:
    return {
        "effect": finding.kind.label,
        "field": finding.field,
        "versions": sorted(finding.versions),
        "message": finding.message,
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
    for i, each in enumerate(reports):
        if i:
            line()
        lines(_lines(each))


def _lines(report: RehearsalReport) -> list[str]:
    lines = [_headline(report)]
    lines += [f"  {each}" for each in report.rejections]
    findings = report.tally.findings()
    for kind in EffectKind:
        number = report.tally.affected.get(kind)
        if number is None:
            continue
        lines += ["", f"{kind.label} ({kind.meaning}): {count(number, 'object')}"]
        for each in findings:
            if each.kind is kind:
                lines += _told(each)
    if report.tally.beyond:
        lines += ["", f"{report.tally.beyond:,} more are counted, but not listed."]
    for title, said in (("Uncertain", report.doubts), ("Note", report.notes)):
        lines += ["", *(f"{title}: {each}" for each in said)] if said else []
    return [*lines, "", _VERDICTS[report.verdict]]


def _headline(report: RehearsalReport) -> str:
    if report.is_new and not report.rejections:
        return f"{report.name}: a new CRD, which the API server would accept"
    if report.rejections:
        return f"{report.name}: refused"
    judge = "the API server" if report.by_server else "the engine, offline"
    gone = f", {report.gone:,} deleted in the meantime" if report.gone else ""
    return f"{report.name}: {count(report.tally.objects, 'object')} rehearsed by {judge}{gone}"


def _told(finding: EffectCount) -> list[str]:
    at = f" ({', '.join(sorted(finding.versions))})" if finding.versions else ""
    said = ": ".join(filter(None, (finding.field, finding.message)))
    lines = [f"  {said}{at}: {count(finding.count, 'object')}"]
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
"""By the name of the format."""
