"""How `crdkeeper rehearse` tells what it found: as text, or as a document for programs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crdkeeper.cli.output.printing import line, lines, print_json, print_yaml
from crdkeeper.core.rehearsal.effect import Kind
from crdkeeper.core.rehearsal.report import Report, Verdict
from crdkeeper.core.rehearsal.tally import Finding
from crdkeeper.core.text import count

_VERDICTS = {
    Verdict.SAFE: "Nothing is lost or refused.",
    Verdict.HARMFUL: "Something is lost or refused.",
    Verdict.REJECTED: "The API server refuses the new CRD.",
    Verdict.UNCERTAIN: "The outcome is uncertain for some objects.",
}


def document(reports: Sequence[Report]) -> dict[str, Any]:
    """A RehearsalList, which only ever gains fields."""
    return {
        "apiVersion": "cli.crdkeeper.dev/v1alpha1",
        "kind": "RehearsalList",
        "items": [_item(each) for each in reports],
    }


def _item(report: Report) -> dict[str, Any]:
    return {
        "name": report.name,
        "verdict": report.verdict.value,
        "judgedBy": "Server" if report.by_server else "Engine",
        "isNew": report.is_new,
        "rejections": list(report.rejections),
        "objects": report.tally.objects,
        "gone": report.gone,
        "affected": {
            each.label: report.tally.affected[each] for each in Kind if each in report.tally.affected
        },
        "findings": [_finding(each) for each in report.tally.findings()],
        "findingsLeftOut": report.tally.beyond,
        "doubts": report.doubts,
        "notes": report.notes,
    }


def _finding(finding: Finding) -> dict[str, Any]:
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


def _json(reports: Sequence[Report]) -> None:
    print_json(document(reports))


def _yaml(reports: Sequence[Report]) -> None:
    print_yaml(document(reports))


def _text(reports: Sequence[Report]) -> None:
    for i, each in enumerate(reports):
        if i:
            line()
        lines(_lines(each))


def _lines(report: Report) -> list[str]:
    lines = [_headline(report)]
    lines += [f"  {each}" for each in report.rejections]
    findings = report.tally.findings()
    for kind in Kind:
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


def _headline(report: Report) -> str:
    if report.is_new and not report.rejections:
        return f"{report.name}: a new CRD, which the API server would accept"
    if report.rejections:
        return f"{report.name}: refused"
    judge = "the API server" if report.by_server else "the engine, offline"
    gone = f", {report.gone:,} deleted in the meantime" if report.gone else ""
    return f"{report.name}: {count(report.tally.objects, 'object')} rehearsed by {judge}{gone}"


def _told(finding: Finding) -> list[str]:
    at = f" ({', '.join(sorted(finding.versions))})" if finding.versions else ""
    said = ": ".join(filter(None, (finding.field, finding.message)))
    lines = [f"  {said}{at}: {count(finding.count, 'object')}"]
    if finding.examples:
        shown = ", ".join(map(str, finding.examples))
        more = ", …" if finding.count > len(finding.examples) else ""
        lines.append(f"      {shown}{more}")
    return lines


PRINTERS: Mapping[str, Callable[[Sequence[Report]], None]] = {"text": _text, "json": _json, "yaml": _yaml}
"""By the name of the format."""
