"""Fences: before the CRD of a definition with deletion Protect is deleted, its API refuses new composites.

Without one, a composite would be lost that is created after the last count. An API server validates an object
by the CRD that it knew when the request came. So the composites count only once the fence has stood for
some time, in which such requests end and all API servers hear of it. How long it has stood is known only to
this process: its successor waits again, and no clocks are compared.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.composites import FIELD_MANAGER, patch_crd
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.compositeresourcedefinition.due import Dues, Sent, key_of
from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.fence import fencing, is_fenced, setters, unfencing
from crdkeeper.core.composer.overwriting import Applied
from crdkeeper.core.composer.plan import ComposerStep, Gathered, Plan
from crdkeeper.core.composer.wording import SHOWN
from crdkeeper.core.diagnosis.verdict import Verdict

_log = logging.getLogger(__name__)
_OURS: Final = (FIELD_MANAGER, "Update")
"""Who has set the versions if nobody has changed them since the fence was put up."""
_OFTEN: Final = 3
"""So often a fence may have been off without a word: people edit CRDs, too."""


@dataclass(slots=True)
class _Known:
    """The fence of one CRD."""

    uid: str
    """That of the CRD."""
    generation: int
    """Of the CRD when it was seen last."""
    since: float
    """In the loop's time: when the fence was seen first."""
    broken: int = 0
    """How often the fence may have been taken off and put up again since."""

    def see(self, crd: Mapping[str, Any], now: float) -> None:
        """Begin again if the fence may have been off since the CRD was seen last."""
        generation = crd["metadata"]["generation"]
        # Each change of the spec raises it by one: with a single one, the fence was there before and after.
        if generation > self.generation + 1 and _OURS not in setters(crd):
            self.since = now
            self.broken += 1
        self.generation = generation

    def verdict(self, crd: Mapping[str, Any]) -> Verdict:
        """What to say if that happens again and again."""
        who = ", ".join(sorted(manager for manager, _ in setters(crd))[:SHOWN])
        return Verdict(
            reasons.OVERWRITTEN,
            f"The versions of the CRD are changed again and again by {who or 'somebody unknown'}, so far "
            f"{self.broken:,} times since the API takes no new composites: each time, the rule that refuses "
            "them may have been off for a moment. The CRD is deleted when that has not happened for some "
            "seconds. Or set spec.deletion to Cascade or Orphan.",
        )


class Fences:
    """Those of all definitions."""

    def __init__(self, client: Client, dues: Dues, seconds: float) -> None:
        """`seconds` is how long a fence has to stand before composites are counted for the last time."""
        self._client = client
        self._dues = dues
        self._seconds = seconds
        self._known: dict[str, _Known] = {}
        self._changed: dict[str, tuple[ComposerStep, Applied]] = {}
        """The last step of each, and the uid of its CRD as the content."""

    def has_settled(self, live: Mapping[str, Any] | None) -> bool:
        """Whether the fence of a CRD that was just read has stood long enough."""
        if live is None:
            return False
        name, metadata = live["metadata"]["name"], live["metadata"]
        if not is_fenced(live):
            self._known.pop(name, None)
            return False
        known = self._known.get(name)
        if known is None or known.uid != metadata["uid"]:
            known = self._known[name] = _Known(metadata["uid"], metadata["generation"], _now())
        known.see(live, _now())
        return _now() >= known.since + self._seconds

    def left(self, name: str) -> float:
        """Seconds until the fence of a definition's CRD will have stood long enough."""
        known = self._known.get(name)
        return max(0.0, known.since + self._seconds - _now()) if known is not None else self._seconds

    def paced(self, gathered: Gathered, decided: Plan) -> Plan:
        """The step; or none, with a refusal, as long as what others undo is not done again."""
        definition, live = gathered.definition, gathered.live
        known = self._known.get(definition.metadata.name)
        if decided.step is ComposerStep.SETTLE and known is not None and live is not None:
            return replace(decided, refusal=known.verdict(live)) if known.broken >= _OFTEN else decided
        step, changed = self._changed.get(definition.metadata.name, (None, None))
        if changed is None or decided.step is not step or not changed.is_paused(_now()):
            return decided
        return replace(decided, step=ComposerStep.NOTHING, refusal=changed.verdict())

    async def change(
        self, step: ComposerStep, definition: CompositeResourceDefinition, crd: Mapping[str, Any]
    ) -> None:
        """Let the API refuse new composites, or take them again: FENCE or UNFENCE.

        Raises ApiError and Unreachable, for a while those of the last attempt.
        """
        fences = step is ComposerStep.FENCE
        sent, operations = (Sent.FENCE, fencing) if fences else (Sent.UNFENCE, unfencing)
        name, key = definition.metadata.name, key_of(definition, crd)
        changed = await self._dues.send(
            name, sent, key, lambda: patch_crd(self._client, crd, operations(crd))
        )
        self.has_settled(changed)
        self._count(name, step, crd, changed)

    def _count(
        self, name: str, step: ComposerStep, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        """How often the same had to be done."""
        uid = before["metadata"]["uid"]
        last, changed = self._changed.get(name, (None, None))
        if changed is None or (last, changed.content) != (step, uid):
            changed = Applied(uid)
        else:
            changed = changed.again(before, after, _now())
        self._changed[name] = step, changed
        _log.info("%s: %s. %s", name, step.value, changed.who)

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._known.pop(name, None)
        self._changed.pop(name, None)


def _now() -> float:
    return asyncio.get_running_loop().time()
