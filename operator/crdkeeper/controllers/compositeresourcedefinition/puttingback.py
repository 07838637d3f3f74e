"""Remembers how often each CRD was put back, so that it is not overwritten in turns for ever."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crdkeeper.core.composer.overwriting import Applied
from crdkeeper.core.composer.plan import ComposerStep, Gathered, Plan

_log = logging.getLogger(__name__)


class PuttingBack:
    """What was applied last for each definition."""

    def __init__(self) -> None:
        self._known: dict[str, Applied] = {}

    def paced(self, gathered: Gathered, decided: Plan) -> Plan:
        """The step; or none, with a refusal, as long as a CRD that others overwrite is not put back."""
        known = self._known.get(gathered.definition.metadata.name)
        if decided.step is not ComposerStep.APPLY or gathered.live is None or known is None:
            return decided
        if known.content != _content(gathered, decided) or not known.is_paused(_now()):
            return decided
        return replace(decided, step=ComposerStep.NOTHING, refusal=known.verdict())

    def applied(self, gathered: Gathered, decided: Plan, now: Mapping[str, Any]) -> None:
        """The CRD was applied, and is as it is now."""
        name, live, content = gathered.definition.metadata.name, gathered.live, _content(gathered, decided)
        known = self._known.get(name)
        if known is None or known.content != content:
            self._known[name] = Applied(content)
        elif live is not None and is_changed(live, now):
            known = self._known[name] = known.again(live, now, _now())
            _log.info("Put back the CRD of CompositeResourceDefinition %s: %s", name, known.who)

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._known.pop(name, None)


def is_changed(live: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    """Whether an apply changed something: the API server does not store a CRD again that it has."""
    return live is None or live["metadata"]["resourceVersion"] != now["metadata"]["resourceVersion"]


def _content(gathered: Gathered, decided: Plan) -> tuple[Any, ...]:
    """Differs if the definition does, or what is left out of its CRD for the time being."""
    metadata = gathered.definition.metadata
    return metadata.uid, metadata.generation, decided.held


def _now() -> float:
    return asyncio.get_running_loop().time()
