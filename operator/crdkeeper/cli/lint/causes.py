"""Which findings come from one mistake: readers see one line for each, with the other places.

The API server reports the cost of one rule up to three times. One tool leaves out the same keyword in many
fields, and one type in Go becomes a field of many CRDs of a group. Whoever reads the second line about the
same mistake learns nothing. Programs get each finding, with the number of its cause.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from crdkeeper.apiserver.cel.compilation import CONTRIBUTED
from crdkeeper.apiserver.schema import rules
from crdkeeper.cli.lint.findings import LintFinding
from crdkeeper.core.lint.severity import Severity
from crdkeeper.core.text import count

_ROOT: Final = "openAPIV3Schema"
_VERSION: Final = re.compile(r"spec\.versions\[[0-9]+\]")
_INDEX: Final = re.compile(r"(?<!properties)\[[0-9]+\]")
_MOST_LINES: Final = 10
_MOST_NAMES: Final = 5
_LONGEST_NAME: Final = 200
_STEPS: Final = (
    (re.compile(r"\.properties\[([^\]]*)\]"), r".\1"),
    (re.compile(r"\.items(?=\.|\[|\Z)"), "[*]"),
    (re.compile(r"\.additionalProperties(?=\.|\[|\Z)"), ".*"),
    (re.compile(r"\.?x-kubernetes-validations\[([0-9]+)\]\.rule\Z"), r" rule \1"),
    (re.compile(r"\.?x-kubernetes-validations\[([0-9]+)\]\.messageExpression\Z"), r" messageExpression \1"),
)
"""The API server's notation of a rule's place, and the shorter one of conventions."""


@dataclass(slots=True)
class CommonCause:
    """The findings that one mistake causes."""

    first: LintFinding
    """The one that names the mistake best."""
    others: list[LintFinding] = field(default_factory=list)
    """Those about the same CRD in the same file."""
    elsewhere: list[LintFinding] = field(default_factory=list)
    """Those in other CRDs of the group, and in other files."""
    tied: list[str] = field(default_factory=list)
    """Rules that cost the same, of which the API server names any as costly."""

    @property
    def more(self) -> str:
        """The text to append to the first one's message."""
        of_costs = self.first.rule.id == rules.CEL_COST.id and self.first.severity is Severity.ERROR
        parts = (_costs(self) if of_costs else _places(self), _elsewhere(self))
        return "".join(f" ({each})" for each in parts if each)


def causes(findings: Iterable[LintFinding]) -> list[CommonCause]:
    """The causes of findings, in their order."""
    in_one: dict[Any, list[LintFinding]] = {}
    tied: dict[Any, list[str]] = {}
    for number, each in enumerate(findings):
        unchecked = each.severity is Severity.UNCHECKED
        in_one.setdefault(number if unchecked else _of_one(each), []).append(each)
        if unchecked and each.rule.id == rules.CEL_COST.id:
            tied.setdefault(_schema(each), []).append(each.field)
    found: dict[Any, CommonCause] = {}
    for key, several in in_one.items():
        first = min(several, key=_rank)
        group = first.definition.partition(".")[2]
        alone = first.severity is Severity.UNCHECKED or not group
        cause = found.setdefault(key if alone else _of_group(first, several, group), CommonCause(first))
        if cause.first is first:
            cause.others += [each for each in several if each is not first]
            cause.tied += tied.get(_schema(first), ()) if first.rule.id == rules.CEL_COST.id else ()
        else:
            cause.elsewhere += several
    return list(found.values())


def lines(findings: Iterable[LintFinding]) -> list[CommonCause]:
    """The causes of findings, of which warnings and infos of one rule in one CRD share a line."""
    kinds: dict[Any, CommonCause] = {}
    for number, each in enumerate(causes(findings)):
        first = each.first
        alone = first.severity in (Severity.ERROR, Severity.UNCHECKED)
        kind = number if alone else (first.file, first.definition, first.rule.id, first.severity)
        known = kinds.setdefault(kind, each)
        if known is not each:
            known.others += [first, *each.others]
            known.elsewhere += each.elsewhere
    return list(kinds.values())


def _of_one(finding: LintFinding) -> tuple[Any, ...]:
    """What the findings of one mistake in one CRD have in common."""
    each = finding
    common = each.file, each.definition, each.rule.id, each.severity, each.behind
    if each.mistake:
        return *common, "mistake", each.mistake
    if each.severity is not Severity.ERROR:
        return *common, each.path, each.message
    if each.rule.id == rules.CEL_COST.id:
        return *common, each.field.partition(_ROOT)[0]
    return *common, each.field.rpartition(".")[2], each.message


def _schema(finding: LintFinding) -> tuple[str, str, str]:
    """The schema that has a rule."""
    return finding.file, finding.definition, finding.field.partition(_ROOT)[0]


def _of_group(finding: LintFinding, several: Iterable[LintFinding], group: str) -> tuple[Any, ...]:
    """What the findings of one mistake in the CRDs of one group have in common."""
    each = finding
    common = group, each.rule.id, each.severity, each.behind
    if each.mistake:
        return *common, "mistake", each.mistake
    if each.rule.id == rules.CEL_COST.id:
        # Each rule needs its own fix.
        return *common, each.message, *sorted({_short(one.field) for one in several})
    # A version, a column or a rule may have another place in the list.
    return *common, _INDEX.sub("[*]", each.path or each.field), each.message


def _rank(finding: LintFinding) -> int:
    """Which finding names a mistake best, the best first: of costs, that about the cost of one rule."""
    if finding.rule.id != rules.CEL_COST.id:
        return 0
    return 2 if _is_contribution(finding) else 1 if _is_total(finding) else 0


def _is_total(finding: LintFinding) -> bool:
    return finding.field.endswith(_ROOT)


def _is_contribution(finding: LintFinding) -> bool:
    return finding.message.endswith(CONTRIBUTED)


def _costs(cause: CommonCause) -> str:
    """The other rules that are over the limit, the total, and the rules that contribute most to it."""
    several = [cause.first, *cause.others]
    over = [each.field for each in several if _rank(each) == 0]
    contributing = [*(each.field for each in several if _is_contribution(each)), *cause.tied]
    named = frozenset(over)
    costly = [each for each in contributing if each not in named]
    total = any(map(_is_total, cause.others))
    parts = [f"and {count(len(over) - 1, 'more rule')}: {_listed(over[1:])}"] if len(over) > 1 else []
    if total:
        parts.append("and the total of all rules" if parts else "and so does the total of all rules")
    if costly:
        parts.append(f"{'also costly' if over else 'most of it'}: {_listed(costly)}")
    return "; ".join(parts)


def _listed(fields: Sequence[str]) -> str:
    return _named([_short(each) for each in fields], _MOST_NAMES)


def _short(rule: str) -> str:
    """The place of a rule in the notation of conventions: `.spec.ports[*] rule 0`."""
    text = rule.partition(_ROOT)[2]
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    return text.strip()


def _named(names: Sequence[str], most: int) -> str:
    """The first names. They may come from strangers, as long as they like."""
    shown = [each if len(each) <= _LONGEST_NAME else f"{each[:_LONGEST_NAME]}…" for each in names[:most]]
    return ", ".join([*shown, *("…" for _ in names[most : most + 1])])


def _places(cause: CommonCause) -> str:
    """The other places in the CRD: of errors, each of which needs a fix, with the lines."""
    others = cause.others
    if not others:
        return ""
    text = f"and {count(len(others), 'more such field')}"
    if cause.first.severity is not Severity.ERROR:
        return text
    numbers = sorted({each.position.line for each in others if each.file} - {cause.first.position.line})
    if len(numbers) < len(others):
        # All of a document may be one line.
        return f"{text}: {_named([each.field for each in others], _MOST_NAMES)}"
    return (
        f"{text}: {'line' if len(numbers) == 1 else 'lines'} {_named(list(map(str, numbers)), _MOST_LINES)}"
    )


def _elsewhere(cause: CommonCause) -> str:
    """The other CRDs, other files with the same CRD, and other versions in the same file."""
    first, others = cause.first, cause.elsewhere
    of_same = [each for each in others if each.definition == first.definition]
    definitions = list(
        dict.fromkeys(each.definition for each in others if each.definition != first.definition)
    )
    files = list(dict.fromkeys(each.file for each in of_same if each.file != first.file))
    found = (_VERSION.match(each.field) for each in of_same if each.file == first.file)
    versions = list(dict.fromkeys(each[0] for each in found if each is not None))
    parts = [
        f"also in {count(len(names), f'other {what}')}: {_named(names, _MOST_NAMES)}"
        for what, names in (("version", versions), ("CRD", definitions), ("file", files))
        if names
    ]
    return "; ".join(parts)
