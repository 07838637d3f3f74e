"""Judges updates of CRDs beside other work: each change once, in a thread, and its rehearsal in a task."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.composites import is_served
from crdkeeper.cluster.resources.versionconversions import read_conversion
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.compositeresourcedefinition.storing import known_migrations
from crdkeeper.core.composer.plan import takes
from crdkeeper.core.composer.update import Update, UpdateFacts, judge
from crdkeeper.core.composer.updaterefusal import needs_rehearsal
from crdkeeper.core.composition.acceptance import Acceptance, accept
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.core.rehearsal.report import RehearsalReport
from crdkeeper.core.rehearsal.update import applied
from crdkeeper.operations.rehearsal.prediction import predict

_AT_ONCE: Final = 2
"""Rehearsals; all of them share one processor."""
_VALID_SECONDS: Final = 10.0
"""How long a rehearsal counts: composites may change, and with them the result."""
_REST: Final = 20.0
"""How long one counts that takes long, as a multiple of its time."""

Key = tuple[Any, ...]


@dataclass(slots=True)
class _Rehearsal:
    key: Key
    task: "asyncio.Task[RehearsalReport]"
    before: RehearsalReport | None
    """The previous result, if it says why the update is refused."""
    due: float
    """When it began; once it has ended, until when it counts."""


class Judging:
    """The judgements of all definitions. Calls `on_rehearsed` with the name of each that was rehearsed."""

    def __init__(self, client: Client, on_rehearsed: Callable[[str], None]) -> None:
        self._client = client
        self._on_rehearsed = on_rehearsed
        self._known: dict[str, tuple[Key, Acceptance, Update]] = {}
        self._rehearsals: dict[str, _Rehearsal] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def of(
        self,
        found: Mapping[str, Any],
        definition: CompositeResourceDefinition,
        live: Mapping[str, Any] | None,
        composites: int | None,
    ) -> tuple[Acceptance, UpdateFacts]:
        """The judgement; without a rehearsal as long as one is needed and not finished.

        Raises ApiError and Unreachable, also for the rehearsal.
        """
        name = definition.metadata.name
        conversion = await self._conversion(name)
        migrations = await known_migrations(self._client, live)
        ours = live if live is not None and takes(definition, live) else None
        key = (_revision(found), _revision(ours), _stored(ours), _revision(conversion), _serves(conversion))
        known = self._known.get(name)
        if known is None or known[0] != key:
            accepted, update = await asyncio.to_thread(_judge, found, ours, conversion)
            known = self._known[name] = key, accepted, update
        _, accepted, update = known
        made = accepted.crd
        going = definition.metadata.deletion_timestamp is not None
        if ours is None or made is None or going or not needs_rehearsal(definition, composites, update):
            self._end(name)
            return accepted, UpdateFacts(update, None, conversion, migrations)

        def run() -> Coroutine[Any, Any, RehearsalReport]:
            after = applied(ours, made)
            return predict(self._client, ours, after, update.rules.before, update.rules.after)

        rehearsal = self._rehearsed(name, key, run)
        return accepted, UpdateFacts(update, rehearsal, conversion, migrations)

    async def _conversion(self, name: str) -> dict[str, Any] | None:
        """The VersionConversion of the CRD; None if there is none, or none that may be read."""
        try:
            return await read_conversion(self._client, name)
        except ApiError as error:
            if error.code == 403:
                return None
            raise

    def forget(self, name: str) -> None:
        """Drop everything about a definition that is gone."""
        self._known.pop(name, None)
        self._end(name)

    def _end(self, name: str) -> None:
        running = self._rehearsals.pop(name, None)
        if running is not None:
            running.task.cancel()

    def _rehearsed(
        self, name: str, key: Key, run: Callable[[], Coroutine[Any, Any, RehearsalReport]]
    ) -> RehearsalReport | None:
        loop = asyncio.get_running_loop()
        known = self._rehearsals.get(name)
        before = None
        if known is not None and known.key != key:
            self._end(name)
        elif known is not None and not known.task.done():
            return known.before
        elif known is not None:
            del self._rehearsals[name]
            before = known.task.result()
            if loop.time() < known.due:
                self._rehearsals[name] = known
                return before
        begun = _Rehearsal(key, loop.create_task(self._run(run)), _if_harmful(before), loop.time())
        self._rehearsals[name] = begun

        def done(task: "asyncio.Task[RehearsalReport]") -> None:
            if not task.cancelled():
                task.exception()  # raised where the result is used, if it still is
            if self._rehearsals.get(name) is begun:
                now = loop.time()
                begun.due = now + max(_VALID_SECONDS, _REST * (now - begun.due))
                self._on_rehearsed(name)

        begun.task.add_done_callback(done)
        return begun.before

    async def _run(self, run: Callable[[], Coroutine[Any, Any, RehearsalReport]]) -> RehearsalReport:
        async with self._places:
            return await run()


def _if_harmful(report: RehearsalReport | None) -> RehearsalReport | None:
    """An earlier result that is a reason to refuse; one that allows the update is no proof any more."""
    if report is None:
        return None
    kinds = report.tally.affected
    return report if any(each.is_harm or each is EffectKind.INDETERMINATE for each in kinds) else None


def _judge(
    found: Mapping[str, Any], live: Mapping[str, Any] | None, conversion: Mapping[str, Any] | None
) -> tuple[Acceptance, Update]:
    return judge(accept(found), live, conversion)


def _revision(found: Mapping[str, Any] | None) -> Key:
    """What changes with everything that a judgement depends on, and not with a status."""
    if found is None:
        return ()
    metadata = found["metadata"]
    return metadata["uid"], metadata["generation"]


def _stored(live: Mapping[str, Any] | None) -> Key:
    if live is None:
        return (), False
    return tuple((live.get("status") or {}).get("storedVersions") or ()), is_served(live)


def _serves(conversion: Mapping[str, Any] | None) -> bool:
    return bool(((conversion or {}).get("status") or {}).get("servedGeneration"))
