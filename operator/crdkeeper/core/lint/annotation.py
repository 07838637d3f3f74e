"""The annotation by which the author of a CRD has findings ignored, in files and in a cluster.

    lint.crdkeeper.dev/ignore: |
      duration-text .spec.*Timeout: parsed leniently by our webhook
      list-of-named v1:.spec.steps: the order counts

One line for each: `<id> <field>: <reason>`. In the field `*` stands for anything, and the version may be left
out; `.` is the root.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.conventions.columns import OF_SAMPLES
from crdkeeper.core.lint.conventions.suppressions import IGNORE_INVALID, IGNORE_UNUSED
from crdkeeper.core.lint.found import AtPath, Found
from crdkeeper.core.lint.registry import known_ids

ANNOTATION = "lint.crdkeeper.dev/ignore"
_LINE = re.compile(r"(?P<id>\S+)\s+(?P<field>\S+?):\s+(?P<reason>\S.*)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the annotation."""

    id: str
    fields: re.Pattern[str]
    reason: str

    def covers(self, found: Found) -> bool:
        """Whether the line covers a finding, whose field is named with or without its version."""
        return bool(self.fields.fullmatch(found.field) or self.fields.fullmatch(found.path))


def parse(metadata: Mapping[str, Any]) -> tuple[list[Line], list[str]]:
    """The lines of the annotation in the metadata of a CRD, and the invalid ones."""
    annotations = metadata.get("annotations")
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    lines: list[Line] = []
    bad: list[str] = []
    for each in text.splitlines() if isinstance(text, str) else ():
        if not each.strip():
            continue
        found = _LINE.fullmatch(each.strip())
        if found is None:
            bad.append(each.strip())
        else:
            glob = ".*".join(map(re.escape, found["field"].split("*")))
            lines.append(Line(found["id"], re.compile(glob), found["reason"]))
    return lines, bad


def apply_annotation(metadata: Mapping[str, Any], found: Iterable[Found]) -> list[Found]:
    """Mark the findings that the annotation names; returns them, and the errors in the annotation itself."""
    lines, bad = parse(metadata)
    at = AtPath(root("metadata").child("annotations").key(ANNOTATION))
    marked = list(found)
    faults: list[Found] = []

    def add(convention: Convention, message: str) -> None:
        faults.append(Found(convention, at, (), message, convention.severity))

    by_id: dict[str, list[_Use]] = {}
    known = known_ids() if lines else frozenset()
    for line in lines:
        if line.id in known:
            by_id.setdefault(line.id, []).append(_Use(line))
        else:
            add(IGNORE_INVALID, f"there is no rule {line.id!r}")
    for text in bad:
        add(IGNORE_INVALID, f"{ANNOTATION}: {text!r} is not in the form <id> <field>: <reason>")
    for number, each in enumerate(marked):
        uses = by_id.get(each.rule.id, ())
        use = next((use for use in uses if use.line.covers(each)), None)
        if use is None:
            continue
        if each.final:
            use.refused = True
        else:
            use.found = True
            marked[number] = replace(each, ignored=use.line.reason)
    for use in chain.from_iterable(by_id.values()):
        if not use.found and use.line.id not in OF_SAMPLES:
            add(IGNORE_UNUSED, unused(use.line.id, refused=use.refused))
    return marked + faults


@dataclass(slots=True)
class _Use:
    """Whether a line of the annotation was needed."""

    line: Line
    found: bool = False
    refused: bool = False
    """Whether the API server decides about what it names."""


def unused(id: str, *, refused: bool) -> str:
    """The message for a suppression that no finding needs."""
    why = "the API server refuses it anyway" if refused else "there is no such finding here"
    return f"{id} is ignored, but {why}"
