"""The annotation by which the author of a CRD has findings ignored, in files and in a cluster.

    lint.crdkeeper.dev/ignore: |
      duration-text .spec.*Timeout: parsed leniently by our webhook
      list-of-named v1:.spec.steps: the order counts

One line for each: `<id> <field>: <reason>`. In the field `*` stands for anything, and the version may be left
out.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ANNOTATION = "lint.crdkeeper.dev/ignore"
_LINE = re.compile(r"(?P<id>\S+)\s+(?P<field>\S+?):\s+(?P<reason>\S.*)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the annotation."""

    id: str
    fields: re.Pattern[str]
    reason: str

    def covers(self, field: str) -> bool:
        """Whether a finding at that field is meant."""
        return is_meant(self.fields, field)


def is_meant(fields: re.Pattern[str], field: str) -> bool:
    """Whether a field of a finding is among those, be it with its version or without."""
    return bool(fields.fullmatch(field) or fields.fullmatch(field.partition(":")[2]))


def parse(metadata: Mapping[str, Any]) -> tuple[list[Line], list[str]]:
    """The lines of the annotation in the metadata of a CRD, and those that are not understood."""
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


def ignored_by(metadata: Mapping[str, Any]) -> Callable[[str, str], bool]:
    """Whether a finding of that id at that field is to be ignored, by the metadata of a CRD.

    A line that is not understood counts for nothing here; `crdkeeper lint` tells of it.
    """
    lines, _ = parse(metadata)
    return lambda id, field: any(each.id == id and each.covers(field) for each in lines)
