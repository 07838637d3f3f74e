"""The annotation by which the author of a CRD has findings ignored, in files and in a cluster.

    lint.crdkeeper.dev/ignore: |
      duration-text .spec.*Timeout: parsed leniently by our webhook
      list-of-named v1:.spec.steps: the order counts

One line for each: `<id> <field>: <reason>`. In the field `*` stands for anything, and the version may be left
out; `.` is the root. The author of a CRD may be a stranger: the lines and the work on them are limited.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.core.composition import problem
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.conventions.columns import OF_SAMPLES
from crdkeeper.core.lint.conventions.definition import NAMES_CONFLICT, SERVER_CONDITION
from crdkeeper.core.lint.conventions.suppressions import IGNORE_INVALID, IGNORE_UNUSED
from crdkeeper.core.lint.found import AtPath, Found
from crdkeeper.core.lint.registry import known_ids

ANNOTATION = "lint.crdkeeper.dev/ignore"
MAX_LINES: Final = 1_000
"""Far more than anyone writes by hand; a baseline accepts any number of findings."""
MAX_TRIES: Final = 5_000_000
"""Parts of fields with `*` that are looked for in the fields of findings: one or two seconds."""
_FOUND_ELSEWHERE: Final = OF_SAMPLES.union(
    (NAMES_CONFLICT.id, SERVER_CONDITION.id, rules.DUPLICATE_KEY.id), (each.id for each in problem.ALL)
)
"""What the annotation may be there for although it is not found here: a file has no conditions, a cluster no
key twice, a CRD not what its definition has, and nothing by itself a name that another one has.
"""
_SHOWN: Final = 200
_LINE = re.compile(r"(?P<id>\S+)\s+(?P<field>\S+?):\s+(?P<reason>\S.*)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the annotation."""

    id: str
    field: str
    reason: str


def parse(metadata: Mapping[str, Any]) -> tuple[list[Line], list[str]]:
    """The lines of the annotation in the metadata of a CRD, and what is wrong with the others."""
    annotations = metadata.get("annotations")
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    lines: list[Line] = []
    bad: list[str] = []
    written = [each.strip() for each in text.splitlines() if each.strip()] if isinstance(text, str) else []
    for each in written[:MAX_LINES]:
        found = _LINE.fullmatch(each)
        if found is None:
            shown = each if len(each) <= _SHOWN else f"{each[:_SHOWN]}…"
            bad.append(f"{shown!r} is not in the form <id> <field>: <reason>")
        else:
            lines.append(Line(found["id"], found["field"], found["reason"]))
    if len(written) > MAX_LINES:
        bad.append(f"only the first {MAX_LINES:,} of {len(written):,} lines are read")
    return lines, bad


class _Glob:
    """A field in which `*` stands for anything."""

    def __init__(self, field: str) -> None:
        self._first, *self._inner, self._last = field.split("*")
        self._least = len(self._first) + len(self._last)
        self.parts = len(self._inner) + 2

    def matches(self, field: str) -> bool:
        """Whether it stands for the field: each part has its first place behind the one before."""
        if len(field) < self._least or not field.startswith(self._first):
            return False
        if not field.endswith(self._last):
            return False
        at, end = len(self._first), len(field) - len(self._last)
        for each in self._inner:
            at = field.find(each, at, end)
            if at < 0:
                return False
            at += len(each)
        return True


class _TooLong(Exception):
    """The lines are too many for the findings."""


class _Uses:
    """The lines about one rule, and which of them were needed."""

    def __init__(self) -> None:
        self._by_field: dict[str, _Use] = {}
        self._globs: list[tuple[_Glob, _Use]] = []
        self.all: list[_Use] = []

    def add(self, line: Line) -> None:
        use = _Use(line, len(self.all))
        self.all.append(use)
        if "*" in line.field:
            self._globs.append((_Glob(line.field), use))
        else:
            self._by_field.setdefault(line.field, use)

    def of(self, found: Found, work: "_Work") -> "_Use | None":
        """The first line that covers a finding, whose field is named with or without its version.

        Raises _TooLong.
        """
        names = dict.fromkeys((found.field, found.path))
        exact = [self._by_field[each] for each in names if each in self._by_field]
        first = min(exact, key=lambda each: each.number, default=None)
        for glob, use in self._globs:
            if first is not None and use.number > first.number:
                break
            for each in names:
                work.spend(glob.parts)
                if glob.matches(each):
                    return use
        return first


class _Work:
    """Limits the tries for all findings together."""

    def __init__(self) -> None:
        self._left = MAX_TRIES

    def spend(self, tries: int) -> None:
        """Raises _TooLong."""
        self._left -= tries
        if self._left < 0:
            raise _TooLong


def apply_annotation(metadata: Mapping[str, Any], found: Iterable[Found]) -> list[Found]:
    """Mark the findings that the annotation names; returns them, and the errors in the annotation itself."""
    lines, bad = parse(metadata)
    at = AtPath(root("metadata").child("annotations").key(ANNOTATION))
    marked = list(found)
    faults: list[Found] = []

    def add(convention: Convention, message: str) -> None:
        faults.append(Found(convention, at, (), message, convention.severity))

    by_id: dict[str, _Uses] = {}
    known = known_ids() if lines else frozenset()
    for line in lines:
        if line.id in known:
            by_id.setdefault(line.id, _Uses()).add(line)
        else:
            add(IGNORE_INVALID, f"there is no rule {line.id[:_SHOWN]!r}")
    for text in bad:
        add(IGNORE_INVALID, f"{ANNOTATION}: {text}")
    try:
        _mark(marked, by_id)
    except _TooLong:
        add(IGNORE_INVALID, f"{ANNOTATION}: too many fields with * for {len(marked):,} findings; some remain")
        return marked + faults
    for use in chain.from_iterable(each.all for each in by_id.values()):
        if not use.found and use.line.id not in _FOUND_ELSEWHERE:
            add(IGNORE_UNUSED, unused(use.line.id, refused=use.refused))
    return marked + faults


def _mark(marked: list[Found], by_id: Mapping[str, _Uses]) -> None:
    """Mark the findings that a line covers, from the first on. Raises _TooLong."""
    work = _Work()
    for number, each in enumerate(marked):
        uses = by_id.get(each.rule.id)
        use = uses.of(each, work) if uses is not None else None
        if use is None:
            continue
        if each.final:
            use.refused = True
        else:
            use.found = True
            marked[number] = each._replace(ignored=use.line.reason)


@dataclass(slots=True)
class _Use:
    """Whether a line of the annotation was needed."""

    line: Line
    number: int
    """Its place among the lines about the rule."""
    found: bool = False
    refused: bool = False
    """Whether the API server decides about what it names."""


def unused(id: str, *, refused: bool) -> str:
    """The message for a suppression that no finding needs."""
    why = "the API server refuses it anyway" if refused else "there is no such finding here"
    return f"{id} is ignored, but {why}"
