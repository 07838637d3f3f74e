"""Compiles Compositions by the schemas of the cluster: each change once, in a thread, beside other work."""

import asyncio
import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.composition import Composition, CompositionSpec
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.revisions import reasons
from crdkeeper.core.revisions.content import MOST_LEVELS, is_too_deep
from crdkeeper.core.revisions.standing import judged
from crdkeeper.core.templates.compilation import compile_composition, kinds_in
from crdkeeper.core.templates.kinds import KnownKinds, TargetKind
from crdkeeper.operations.composition.targets import KindKey, TargetKinds

_log = logging.getLogger(__name__)
_REST: Final = 4.0
"""How long a Composition rests after it was compiled, as a multiple of the time that this took."""


@dataclass(frozen=True, slots=True)
class _Judged:
    key: object
    verdict: Verdict
    rests_until: float


class CompositionJudging:
    """The condition Valid of each Composition."""

    def __init__(self, kinds: TargetKinds) -> None:
        self._kinds = kinds
        self._known: dict[str, _Judged] = {}
        self._place = asyncio.Semaphore(1)
        """All threads share one processor, and with it the event loop."""

    def wait(self, name: str) -> float:
        """Seconds for which a Composition rests, so that its author cannot have it compiled all the time."""
        known = self._known.get(name)
        return max(0.0, known.rests_until - asyncio.get_running_loop().time()) if known is not None else 0.0

    async def of(self, composition: Composition, written: Mapping[str, Any]) -> Verdict:
        """What to say of it; `written` is its spec as it is stored. Raises ApiError and Unreachable."""
        if is_too_deep(written):
            return Verdict(reasons.INVALID, f"spec has more than {MOST_LEVELS} levels: nest it less deep.")
        name, spec = composition.metadata.name, composition.spec
        reference = spec.composite_type_ref
        own = reference.api_version, reference.kind
        served = await self._kinds.find((own, *kinds_in(spec)))
        if not served.belongs_to_definition(own):
            said = f"No CompositeResourceDefinition serves {own[1]} of {own[0]}."
            return Verdict(reasons.DEFINITION_MISSING, f"{said} {reasons.DEFINITION_MISSING.remedy}")
        key = composition.metadata.uid, composition.metadata.generation, served.key
        known = self._known.get(name)
        if known is not None and known.key == key:
            return known.verdict
        try:
            kinds = await self._kinds.read(served)
        except UnreadableDefinition as error:
            return Verdict(reasons.NOT_READ, f"a CRD cannot be read: {error}")
        loop = asyncio.get_running_loop()
        async with self._place:
            began = loop.time()
            verdict = await asyncio.to_thread(_judge, name, spec, own, kinds)
            now = loop.time()
        self._known[name] = _Judged(key, verdict, now + _REST * (now - began))
        return verdict

    def forget(self, name: str) -> None:
        """The Composition is gone."""
        self._known.pop(name, None)


def _judge(name: str, spec: CompositionSpec, own: KindKey, kinds: KnownKinds) -> Verdict:
    composite = kinds.get(own, TargetKind(None, None))
    try:
        return judged(compile_composition(spec, composite, kinds), kinds_in(spec) - kinds.keys())
    except Exception as error:
        # Nothing that is wrong in one may stop the others. Its text may have parts of templates.
        kind, where = type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
        _log.error("The Composition %s cannot be compiled: %s in\n%s", name, kind, where)
        said = f"It cannot be compiled: an error in crdkeeper ({kind}); the composer's log says where."
        return Verdict(reasons.INVALID, said)
