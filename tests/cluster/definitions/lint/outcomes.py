"""Compares our prediction for a CRD with the API server's answer: its warnings and its changes."""

from dataclasses import dataclass
from typing import Any

from tests.cluster.definitions.lint.agreement import Verdict
from tests.cluster.definitions.lint.prediction import RequestOutcome

_TRUNCATED = 4096
"""If the warnings are longer than this in total, the server truncates them."""

_NO_NAMES = {"plural": "", "kind": ""}


@dataclass(frozen=True, slots=True)
class OutcomeComparison:
    """The differences, and what could be compared."""

    warned: bool
    several_stored: bool
    disagreement: str | None


def compare_outcome(outcome: RequestOutcome, verdict: Verdict, warnings: frozenset[str]) -> OutcomeComparison:
    """Where the two differ; whether and why a CRD is rejected is compared elsewhere."""
    stored = (verdict.body.get("status") or {}) if verdict.code in (200, 201) else {}
    several = len(stored.get("storedVersions", ())) > 1
    return OutcomeComparison(bool(warnings), several, _disagreement(outcome, verdict, warnings))


def _disagreement(outcome: RequestOutcome, verdict: Verdict, warnings: frozenset[str]) -> str | None:
    if verdict.code not in (200, 201, 422) or (verdict.code == 422) is not bool(outcome.report.violations):
        return None
    wrong = []
    if frozenset(outcome.warnings) != warnings and sum(map(len, outcome.warnings)) < _TRUNCATED:
        wrong.append(f"warnings: we {sorted(outcome.warnings)}, the server {sorted(warnings)}")
    if outcome.result is not None and verdict.code != 422:
        ours, theirs = _said(outcome), _shown(verdict.body)
        wrong += [
            f"{key}: we {ours[key]}, the server {theirs[key]}" for key in ours if ours[key] != theirs[key]
        ]
    return "\n".join(wrong) or None


def _said(outcome: RequestOutcome) -> dict[str, Any]:
    assert outcome.result is not None
    result = outcome.result
    return {
        "generation": result.generation,
        "names": dict(result.names),
        "conversion": dict(result.conversion),
        "status": dict(result.status),
    }


def _shown(crd: Any) -> dict[str, Any]:
    spec, status = crd["spec"], dict(crd["status"])
    # Fields that nobody has set yet are returned all the same.
    if not status.get("conditions"):
        status.pop("conditions", None)
    if status.get("acceptedNames") == _NO_NAMES:
        del status["acceptedNames"]
    return {
        "generation": crd["metadata"]["generation"],
        "names": spec["names"],
        "conversion": spec["conversion"],
        "status": status,
    }
