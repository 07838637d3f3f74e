"""The API server's result for single objects: by a shadow, created when the first object needs it."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from enum import Enum
from types import TracebackType
from typing import Any, Self

from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.conversion.values import Unconvertible
from crdkeeper.core.rehearsal.definition import NONE, CompiledDefinition, version_of
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.judgement import Judge, Prediction
from crdkeeper.core.rehearsal.shadow import agrees, confirm
from crdkeeper.operations.rehearsal.rights import rights_for_a_shadow
from crdkeeper.operations.rehearsal.shadow import Shadow, ShadowFailed
from crdkeeper.operations.rights import NotPermitted, check_rights

Json = Any
_PROVED = frozenset((EffectKind.REFUSED, EffectKind.STATUS_REFUSED))
"""What a creation shows."""


class ShadowUse(Enum):
    """Which objects the API server judges."""

    AUTO = "auto"
    """Objects for which the engine is uncertain."""
    ALWAYS = "always"
    NEVER = "never"


class Proof:
    """Asks the API server about objects; an async context manager.

    Raises ApiError and Unreachable; ShadowFailed if all objects are to be proved, and if the shadow can no
    longer be used or removed.
    """

    def __init__(
        self,
        client: Client,
        accepted: Mapping[str, Any],
        judge: Judge,
        version: str,
        use: ShadowUse,
        left: Callable[[str], None],
    ) -> None:
        """`accepted` is the new CRD as the API server would store it; objects are read at `version`.

        `left`: see Shadow.
        """
        new = judge.new
        judged_at = judge.creation_version({"apiVersion": f"{new.group}/{version}"})
        self._use = use if judged_at is not None else ShadowUse.NEVER
        self._client = client
        self._judge = judge
        self._new: CompiledDefinition = new
        self._make: Callable[[], Shadow] = lambda: Shadow(
            client, accepted, judged_at=(judged_at or "") if new.strategy != NONE else "", left=left
        )
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._shadow: Shadow | None = None
        self.asked = 0
        """Objects about which the API server was asked."""
        self.denied = ""
        """Why the API server was not asked although it should have been."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def of(self, obj: Json, prediction: Prediction) -> list[Effect] | None:
        """The effects on an object: predicted, and confirmed or corrected if the API server is asked.

        None if its namespace is gone.
        """
        try:
            sent = self._judge.to_send(obj)
        except Unconvertible:
            sent = None
        if sent is None:
            return self._not_sent(obj, prediction)
        shadow = await self._shadow_for(prediction)
        if shadow is None:
            return prediction.effects
        answer = await shadow.judge(sent)
        if answer is None:
            return None
        self.asked += 1
        effects = prediction.effects
        if agrees(prediction, answer):
            effects = [replace(each, by_server=each.kind in _PROVED) for each in effects]
        elif answer.accepts:
            effects = [each for each in effects if each.kind not in _PROVED]
        return [*effects, *self._judge.placed(confirm(prediction, answer, sent, self._new))]

    def _not_sent(self, obj: Json, prediction: Prediction) -> list[Effect]:
        known = any(each.kind is EffectKind.UNCONVERTIBLE for each in prediction.effects)
        if known or self._use is ShadowUse.NEVER:
            return prediction.effects
        reason = "not sent to the API server: no known conversion to the version it would be created at"
        return [*prediction.effects, Effect(EffectKind.INDETERMINATE, "", version_of(obj), reason, reason)]

    async def _shadow_for(self, prediction: Prediction) -> Shadow | None:
        """The shadow if the object needs it, and if there is one."""
        certain = self._use is ShadowUse.AUTO and prediction.creation_is_certain
        if self._use is ShadowUse.NEVER or certain or self.denied:
            return None
        async with self._lock:
            if self._shadow is None and not self.denied:
                self._shadow = await self._made()
        return self._shadow

    async def _made(self) -> Shadow | None:
        """The shadow; None if it cannot be created and is not required."""
        if self._use is ShadowUse.ALWAYS:
            return await self._stack.enter_async_context(self._make())
        try:
            await check_rights(self._client, rights_for_a_shadow())
            return await self._stack.enter_async_context(self._make())
        except NotPermitted as error:
            self.denied = error.missing
        except ShadowFailed as error:
            self.denied = str(error)
        return None
