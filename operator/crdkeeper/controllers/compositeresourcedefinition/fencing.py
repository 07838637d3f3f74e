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
from typing import Any

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.composites import patch_crd
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.compositeresourcedefinition.due import Dues, Sent
from crdkeeper.core.composer.fence import fencing, is_fenced, unfencing
from crdkeeper.core.composer.overwriting import Applied
from crdkeeper.core.composer.plan import ComposerStep, Plan

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """The fence of one CRD."""

    crd: tuple[str, int]
    """The uid and generation of the CRD. Whoever changes the spec may have taken the fence off meanwhile."""
    since: float
    """In the loop's time: when the fence was seen first."""


class Fences:
    """Those of all definitions."""

    def __init__(self, client: Client, dues: Dues, seconds: float) -> None:
        """`seconds` is how long a fence has to stand before composites are counted for the last time."""
        self._client = client
        self._dues = dues
        self._seconds = seconds
        self._known: dict[str, _Known] = {}
        self._raised: dict[str, Applied] = {}

    def has_settled(self, live: Mapping[str, Any] | None) -> bool:
        """Whether the fence of a CRD that was just read has stood long enough."""
        if live is None:
            return False
        name, metadata = live["metadata"]["name"], live["metadata"]
        if not is_fenced(live):
            self._known.pop(name, None)
            return False
        crd = metadata["uid"], metadata["generation"]
        known = self._known.get(name)
        if known is None or known.crd != crd:
            known = self._known[name] = _Known(crd, _now())
        return _now() >= known.since + self._seconds

    def left(self, name: str) -> float:
        """Seconds until the fence of a definition's CRD will have stood long enough."""
        known = self._known.get(name)
        return max(0.0, known.since + self._seconds - _now()) if known is not None else self._seconds

    def paced(self, definition: CompositeResourceDefinition, decided: Plan) -> Plan:
        """The step; or none, with a refusal, as long as a fence that others take off is not put up again."""
        raised = self._raised.get(definition.metadata.name)
        if decided.step is not ComposerStep.FENCE or raised is None or not raised.is_paused(_now()):
            return decided
        return replace(decided, step=ComposerStep.NOTHING, refusal=raised.verdict())

    async def change(
        self, step: ComposerStep, definition: CompositeResourceDefinition, crd: Mapping[str, Any]
    ) -> None:
        """Let the API refuse new composites, or take them again: FENCE or UNFENCE.

        Raises ApiError and Unreachable, for a while those of the last attempt.
        """
        fences = step is ComposerStep.FENCE
        sent, operations = (Sent.FENCE, fencing) if fences else (Sent.UNFENCE, unfencing)
        name, uid = definition.metadata.name, crd["metadata"]["uid"]
        changed = await self._dues.send(
            name, sent, uid, lambda: patch_crd(self._client, crd, operations(crd))
        )
        self.has_settled(changed)
        if fences:
            self._count(name, uid, crd, changed)

    def _count(self, name: str, uid: str, crd: Mapping[str, Any], fenced: Mapping[str, Any]) -> None:
        """How often a fence had to be put up."""
        raised = self._raised.get(name)
        if raised is None or raised.content != uid:
            self._raised[name] = Applied(uid)
            _log.info("%s has no composites. Its API takes no new ones, and is deleted soon.", name)
        else:
            self._raised[name] = raised.again(crd, fenced, _now())
            _log.info("Put up the fence of %s again: %s", name, self._raised[name].who)

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._known.pop(name, None)
        self._raised.pop(name, None)


def _now() -> float:
    return asyncio.get_running_loop().time()
