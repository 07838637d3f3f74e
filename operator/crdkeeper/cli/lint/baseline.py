"""The findings that a project has accepted, in a file: only others are reported.

CRD, rule and field without version identify a finding. So it remains accepted when lines move, when a file is
renamed, when its message changes, and in a new version: the API server's paths have the place of a version in
the list, and another form for what all versions share; here these are one.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import orjson

from crdkeeper.cli.lint.findings import LintFinding
from crdkeeper.core.lint.severity import Severity
from crdkeeper.core.text import count

MAX_BYTES: Final = 64 << 20
_VERSION: Final = 1
Key = tuple[str, str, str]
"""The CRD, the rule and the field."""
_Place = tuple[str, str, str]
"""The file, the CRD and the version; empty if a finding is about all versions or none."""
_INDEX: Final = re.compile(r"spec\.versions\[[0-9]+\]")
_ANY_VERSION: Final = "spec.versions[*]"
_SHARED: Final = (
    (re.compile(r"spec\.validation(?=\.openAPIV3Schema)"), f"{_ANY_VERSION}.schema"),
    (re.compile(r"spec(?=\.(?:subresources|additionalPrinterColumns|selectableFields)\b)"), _ANY_VERSION),
)
"""Beginnings of the server's paths for what all versions share, and those of each version by itself."""


class BadBaseline(Exception):
    """A baseline cannot be read or written; the text names the file."""


@dataclass(slots=True)
class AcceptedFindings:
    """The entries of a file, and which of them a run has found."""

    entries: Counter[Key]
    found: set[Key] = field(default_factory=set)

    def divide(self, findings: Iterable[LintFinding]) -> tuple[list[LintFinding], list[LintFinding]]:
        """The new findings, and the known ones; for one field no more than were accepted.

        A finding about several fields, some of which were accepted, is in both, each with its fields.
        """
        new: list[LintFinding] = []
        known: list[LintFinding] = []
        used: dict[_Place, Counter[Key]] = {}
        for each in findings:
            counts = [used.setdefault(place, Counter()) for place in _places(each)]
            listed = [
                key
                for key in _keys(each)
                if all(of_one[key] < self.entries[key] for of_one in counts) and _is_kept(each)
            ]
            for of_one in counts:
                of_one.update(listed)
            self.found.update(listed)
            fields = {key[2] for key in listed}
            others = [path for path in each.paths if _anywhere(path) not in fields]
            if not others:
                known.append(each)
            elif listed:
                new.append(_only(each, others))
                known.append(_only(each, [path for path in each.paths if _anywhere(path) in fields]))
            else:
                new.append(each)
        return new, known

    def note(self, findings: Iterable[LintFinding]) -> None:
        """Record findings that exist, but are not reported for another reason."""
        self.found.update(key for each in findings for key in _keys(each) if key in self.entries)

    def stale(self, definitions: Iterable[str]) -> list[Key]:
        """The entries of these CRDs for which nothing was found."""
        looked_at = frozenset(definitions)
        return sorted(key for key in self.entries if key[0] in looked_at and key not in self.found)


def load(path: Path) -> AcceptedFindings:
    """Read a baseline. Raises BadBaseline."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadBaseline(f"{path}: bigger than {MAX_BYTES >> 20} MiB")
        content = orjson.loads(path.read_bytes())
    except OSError as error:
        raise BadBaseline(f"{path}: {error.strerror or error}") from None
    except orjson.JSONDecodeError as error:
        raise BadBaseline(f"{path}: not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise BadBaseline(f"{path}: not a baseline of version {_VERSION}")
    listed = content.get("findings")
    if not isinstance(listed, list):
        raise BadBaseline(f"{path}: findings must be a list")
    entries: Counter[Key] = Counter()
    for i, each in enumerate(listed):
        key, number = _entry(path, i, each)
        entries[key] = max(entries[key], number)
    return AcceptedFindings(entries)


def _entry(path: Path, i: int, entry: Any) -> tuple[Key, int]:
    values = entry if isinstance(entry, dict) else {}
    names = [each for each in map(values.get, ("definition", "id", "field")) if isinstance(each, str)]
    number = values.get("count", 1)
    if len(names) != 3:
        raise BadBaseline(f"{path}: findings[{i}]: must have definition, id and field")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise BadBaseline(f"{path}: findings[{i}].count: must be a positive integer")
    definition, id, field_ = names
    # Older files have the server's paths as they are.
    return (definition, id, _anywhere(field_)), number


def write(path: Path, findings: Iterable[LintFinding]) -> int:
    """Write a baseline with these findings, one per line; returns their number. Raises BadBaseline."""
    counts: dict[_Place, Counter[Key]] = {}
    for each in findings:
        for place in _places(each) if _is_kept(each) else []:
            counts.setdefault(place, Counter()).update(_keys(each))
    most: Counter[Key] = Counter()
    for of_one in counts.values():
        for key, number in of_one.items():
            most[key] = max(most[key], number)
    lines = ",\n".join(f"    {json.dumps(each, ensure_ascii=False)}" for each in _listed(most))
    text = f'{{\n  "version": {_VERSION},\n  "findings": [\n{lines}\n  ]\n}}\n'
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadBaseline(f"{path}: {error.strerror or error}") from None
    return len(most)


def _listed(counts: Counter[Key]) -> Iterator[dict[str, Any]]:
    for definition, id, field_ in sorted(counts):
        number = counts[definition, id, field_]
        more = {"count": number} if number > 1 else {}
        yield {"definition": definition, "id": id, "field": field_, **more}


def _only(finding: LintFinding, paths: list[str]) -> LintFinding:
    """The finding, reduced to some of its fields; the line remains that of its first field."""
    version, colon, _ = finding.field.partition(":")
    more = len(paths) - 1
    return replace(
        finding,
        field=f"{version}:{paths[0]}" if colon else paths[0],
        path=paths[0],
        fields=tuple(paths) if more else (),
        elsewhere=f" (and in {count(more, 'other field')} of the same type)" if more else "",
    )


def _is_kept(finding: LintFinding) -> bool:
    """Whether it can be accepted: not unchecked rules, and not findings about a file's own comments."""
    return bool(finding.definition) and finding.severity is not Severity.UNCHECKED


def _keys(finding: LintFinding) -> list[Key]:
    """An entry for each field of a finding."""
    return [(finding.definition, finding.rule.id, _anywhere(path)) for path in finding.paths]


def _places(finding: LintFinding) -> list[_Place]:
    """Where each entry counts for itself: files may contain the same CRD, and versions the same field."""
    path = finding.paths[0]
    own = _INDEX.match(path)
    version = finding.field.partition(":")[0] if finding.field != path else ""
    versions = (own[0],) if own is not None else finding.versions or (version,)
    return [(finding.file, finding.definition, each) for each in versions]


def _anywhere(path: str) -> str:
    """The path as it is for any version."""
    for beginning, replacement in ((_INDEX, _ANY_VERSION), *_SHARED):
        found = beginning.match(path)
        if found is not None:
            return f"{replacement}{path[found.end() :]}"
    return path
