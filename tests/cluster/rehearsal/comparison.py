"""Compares the prediction for each object, and the report about all, with what really happened."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from crdkeeper.apiserver.objects.jsonvalue import same, stored
from crdkeeper.apiserver.objects.objectschema import Admitted
from crdkeeper.cluster.transport.client import Answer
from crdkeeper.core.rehearsal.differences import How, differences
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.judgement import Prediction
from crdkeeper.core.rehearsal.report import RehearsalReport
from tests.cluster.rehearsal.scene import Seen

Json = Any
_READ_KINDS = {How.GONE: EffectKind.PRUNED, How.NEW: EffectKind.DEFAULTED, How.CHANGED: EffectKind.CHANGED}
_ERROR = re.compile("invalid data, expected .* evaluating")
COUNTED = (
    EffectKind.PRUNED,
    EffectKind.DEFAULTED,
    EffectKind.CHANGED,
    EffectKind.UNREADABLE,
    EffectKind.WRITE_REFUSED,
    EffectKind.REFUSED,
)
"""What the API server's answers are counted for, too."""


@dataclass(slots=True)
class Tally:
    """The counts of a run, by kind of change."""

    definitions: int = 0
    objects: Counter[str] = field(default_factory=Counter)
    """Objects compared, by change; each with all of its reads and writes."""
    answers: int = 0
    affected: Counter[str] = field(default_factory=Counter)
    """Objects by kind of effect, according to the API server's own answers."""
    undecided: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    """Definitions that the API server rejected."""
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.definitions} changed definitions, {sum(self.rejected.values())} refused; "
            f"{self.objects.total()} objects by {len(self.objects)} kinds of change, {self.answers} answers "
            f"compared, {self.undecided.total()} undecided, {len(self.wrong)} wrong; affected: "
            f"{dict(self.affected)}; objects: {dict(self.objects)}; undecided: {dict(+self.undecided)}; "
            f"refused: {dict(self.rejected)}"
        )


def kinds_seen(before: Mapping[str, Json], obj: Json, seen: Seen, new_versions: set[str]) -> set[EffectKind]:
    """The effects on an object according to the API server's own answers."""
    found: set[EffectKind] = set()
    for version, read in seen.reads.items():
        if read.code != 200:
            found.add(EffectKind.UNREADABLE)
            continue
        was = before.get(version) if version not in new_versions else obj
        if was is not None:
            found |= {_READ_KINDS[each.how] for each in differences(was, read.json())}
    if any(each.code != 200 for each in seen.writes.values()):
        found.add(EffectKind.WRITE_REFUSED)
    if seen.recreation is not None and seen.recreation.code not in (201, 409):
        found.add(EffectKind.REFUSED)
    return found


def compare(prediction: Prediction, seen: Seen, expected: set[EffectKind]) -> list[str]:
    """Where a prediction was wrong."""
    wrong: list[str] = []
    for version, read in seen.reads.items():
        wrong += _one(f"GET at {version}", prediction.reads.get(version), read)
    for version, write in seen.writes.items():
        wrong += _one(f"PUT at {version}", prediction.writes.get(version), write)
    if seen.recreation is not None:
        wrong += _one("POST", prediction.recreation, seen.recreation, seen.recreated)
    said = {each.kind for each in prediction.effects} & set(COUNTED)
    if said != expected:
        wrong.append(f"effects {_names(said)}, but really {_names(expected)}")
    return wrong


def _names(kinds: set[EffectKind]) -> list[str]:
    return sorted(each.label for each in kinds)


def _one(what: str, ours: Admitted | None, answer: Answer, object: Json = None) -> list[str]:
    if ours is None:
        return [f"{what}: not predicted, but {answer.code}"]
    if answer.code in (200, 201, 409):
        if ours.violations:
            return [f"{what}: accepted, but predicted {[_said(each) for each in ours.violations]}"]
        actual = object if answer.code == 409 else answer.json()
        if actual is None:
            return []
        left, right = _content(ours.object), _content(actual)
        return [] if same(left, right) else [f"{what}: {_dumped(left)}\\n  really {_dumped(right)}"]
    body = answer.json()
    causes = {
        (each.get("field", ""), _steady(each["message"]))
        for each in (body.get("details") or {}).get("causes") or ()
    }
    if answer.code == 422:
        predicted = {(str(each.path), _steady(each.message)) for each in ours.violations}
        if predicted == causes:
            return []
        return [f"{what}: predicted only {predicted - causes}, really only {causes - predicted}"]
    if answer.code in (400, 500) and ours.object is None and ours.violations:
        return []
    return [
        f"{what}: {answer.code} {body.get('message')}, but predicted {[_said(e) for e in ours.violations]}"
    ]


def _steady(message: str) -> str:
    """Without which of several invalid values a rule met first: Go iterates over maps in random order."""
    return _ERROR.sub("invalid data evaluating", message)


def _said(violation: Any) -> str:
    return f"{violation.path}: {violation.message}"


def _content(obj: Json) -> Json:
    found = stored(obj)
    metadata = found.get("metadata") or {}
    return {**found, "metadata": {key: metadata.get(key) for key in ("labels", "annotations", "finalizers")}}


def _dumped(value: Json) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()[:2500]


def compare_report(report: RehearsalReport, expected: Counter[EffectKind], objects: int) -> list[str]:
    """Where the counts of a report differ from those of the API server's own answers."""
    wrong = []
    if report.tally.objects != objects:
        wrong.append(f"reported {report.tally.objects} objects instead of {objects}")
    for kind in COUNTED:
        if report.tally.affected.get(kind, 0) != expected[kind]:
            wrong.append(
                f"reported {report.tally.affected.get(kind, 0)} {kind.label}, really {expected[kind]}"
            )
    return wrong


def is_undecided(effects: list[Effect]) -> bool:
    """Whether a prediction is declared undecided."""
    return any(each.kind is EffectKind.INDETERMINATE for each in effects)
