"""The status of a VersionConversion: its steps as conditions, in order, and Ready as their summary."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from crdkeeper.api.meta import READY, ConditionStatus, find_condition, set_condition, summarize
from crdkeeper.api.texts import bounded
from crdkeeper.api.versionconversion import VersionConversion

COMPILED: Final = "Compiled"
PERMITTED: Final = "Permitted"
VERIFIED: Final = "Verified"
SERVING: Final = "Serving"
CONFIGURED: Final = "Configured"
CONVERTING: Final = "Converting"
IN_USE: Final = "InUse"
"""Not a step: whether the rules could be removed safely. The manifests' admission policy reads it."""
STEPS: Final = (COMPILED, PERMITTED, VERIFIED, SERVING, CONFIGURED, CONVERTING)
_PASSING: Final = frozenset(("DefinitionNotFound", "NoCertificate", "WebhookUnreachable"))
"""Reasons of a step that is not complete yet and needs no person."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one step: the condition's status, reason and message."""

    status: ConditionStatus
    reason: str
    message: str

    @property
    def done(self) -> bool:
        """Whether the next step may be taken."""
        return self.status == "True"


@dataclass(slots=True)
class StatusDraft:
    """A new status of a VersionConversion in progress."""

    owner: VersionConversion
    now: datetime
    changed: list[tuple[str, StepResult]] = field(default_factory=list)
    """Conditions whose status or reason has changed."""

    def put(self, condition: str, step: StepResult) -> bool:
        """Set a condition. Returns whether the next step may be taken."""
        step = replace(step, message=bounded(step.message))
        generation = self.owner.metadata.generation
        if set_condition(
            self.owner.status.conditions,
            condition,
            step.status,
            step.reason,
            step.message,
            generation=generation,
            now=self.now,
        ):
            self.changed.append((condition, step))
        return step.done

    def conclude(self, final: StepResult | None = None) -> None:
        """Set Ready: to `final`, or by the first incomplete step; later steps that were not taken wait."""
        status, generation = self.owner.status, self.owner.metadata.generation
        status.observed_generation = generation
        missing = None
        for each in STEPS:
            known = find_condition(status.conditions, each)
            if missing is not None and (known is None or not status.served_generation):
                self.put(each, StepResult("Unknown", "Waiting", f"Waits for {missing}."))
            elif known is None or known.status != "True":
                missing = missing or each
        step = final or self._ready(missing)
        self.put(READY, step)
        stalled = step.status == "False" and step.reason not in _PASSING
        summarize(status.conditions, stalled=stalled, now=self.now)

    def _ready(self, missing: str | None) -> StepResult:
        status, generation = self.owner.status, self.owner.metadata.generation
        if missing is None:
            return StepResult("True", "Converting", "All versions are converted by the rules.")
        found = find_condition(status.conditions, missing)
        if found is None:
            return StepResult("Unknown", "Waiting", f"Waits for {missing}.")
        message = found.message
        if status.served_generation and status.served_generation != generation:
            message += f" The rules of generation {status.served_generation} are still served."
        return StepResult("Unknown" if found.status == "Unknown" else "False", found.reason, message)
