"""CompositeResourceDefinitions: gathers what is known of one, takes the next step, and writes its status."""

import logging
from collections.abc import Coroutine
from typing import Any

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.meta import READY, find_condition
from crdkeeper.cluster.resources.composites import (
    apply_crd,
    count_composites,
    delete_composites,
    delete_crd,
    disown_crd,
    get_composite_definition,
    set_finalizers,
)
from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.resources.events import send_event
from crdkeeper.cluster.resources.kinds import apply_status
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.composing.plan import FINALIZER, ComposerStep, Gathered, Plan, Refusal, plan
from crdkeeper.core.composing.standing import standing
from crdkeeper.core.composition.acceptance import accept, with_server_errors

_log = logging.getLogger(__name__)
_REFUSED = frozenset((400, 403, 422))
_AGAIN_SECONDS = 2.0
"""Until composites are counted again, while something waits for their end."""
_RECOUNT_SECONDS = 60.0


class CompositeDefinitions:
    """Reconciles each definition whenever it or its CRD changes."""

    def __init__(self, client: Client, state: ClusterState, *, identity: str) -> None:
        self._client = client
        self._state = state
        self._identity = identity
        self.queue = WorkQueue(self._reconcile)
        state.listen(self._saw)

    def _saw(self, kind: str, name: str) -> None:
        known = self._state.of(CompositeResourceDefinition)
        if kind == CompositeResourceDefinition.plural or (kind == "definitions" and name in known):
            self.queue.add(name)

    async def _reconcile(self, name: str) -> None:
        found = await get_composite_definition(self._client, name)
        if found is None:
            return
        gathered = await self._gather(found)
        decided = plan(gathered)
        try:
            await self._carry_out(gathered, decided)
        except ApiError as error:
            if error.code not in _REFUSED:
                raise
            # It would be refused again: only a change of the definition or of rights helps.
            decided = Plan(
                ComposerStep.NOTHING,
                Refusal(error.reason or "Refused", f"{decided.step.value}: {error.message}"),
            )
        if decided.step is ComposerStep.LET_GO:
            return
        await self._write_status(gathered, decided)
        waiting = decided.step in (
            ComposerStep.DELETE_COMPOSITES,
            ComposerStep.DELETE_DEFINITION,
            ComposerStep.DISOWN,
        ) or (decided.refusal is not None)
        self.queue.add_after(name, _AGAIN_SECONDS if waiting else _RECOUNT_SECONDS)

    async def _gather(self, found: dict[str, Any]) -> Gathered:
        definition = CompositeResourceDefinition.model_validate(found)
        live = await get_definition_object(self._client, definition.metadata.name)
        composites = await count_composites(self._client, live) if live is not None else 0
        return Gathered(definition, with_server_errors(accept(found)), live, composites)

    async def _carry_out(self, gathered: Gathered, decided: Plan) -> None:
        definition, live = gathered.definition, gathered.live
        match decided.step:
            case ComposerStep.HOLD_ON:
                await set_finalizers(self._client, definition, [*definition.metadata.finalizers, FINALIZER])
            case ComposerStep.APPLY if gathered.judged.definition is not None:
                await apply_crd(self._client, gathered.judged.definition, live)
            case ComposerStep.DELETE_COMPOSITES if live is not None:
                await delete_composites(self._client, live)
            case ComposerStep.DELETE_DEFINITION if live is not None:
                await delete_crd(self._client, live)
            case ComposerStep.DISOWN if live is not None:
                await disown_crd(self._client, live)
            case ComposerStep.LET_GO:
                left = [each for each in definition.metadata.finalizers if each != FINALIZER]
                await set_finalizers(self._client, definition, left)

    async def _write_status(self, gathered: Gathered, decided: Plan) -> None:
        definition = gathered.definition
        status = standing(gathered, decided, self._client.now())
        if status == definition.status:
            return
        before, now = (find_condition(each.conditions, READY) for each in (definition.status, status))
        updated: CompositeResourceDefinition = definition.model_copy(update={"status": status})
        if not await apply_status(self._client, updated) or now is None:
            return
        if now.status == "False" and (before is None or before.reason != now.reason):
            _log.info("CompositeResourceDefinition %s: %s", definition.metadata.name, now.message)
            await send_event(
                self._client, definition, "Warning", now.reason, now.message, instance=self._identity
            )


def begin_composite_definitions(context: Context) -> Coroutine[Any, Any, None]:
    """The task of the controller."""
    return CompositeDefinitions(context.client, context.state, identity=context.identity).queue.run()
