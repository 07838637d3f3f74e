"""What an update of a CRD would do to the live objects, by the engine alone, beside other work.

Unlike a rehearsal of the command line, this counts only what is new: an object that the present schema
refuses is not hurt by the update. It creates nothing, and leaves the event loop free.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from functools import partial
from typing import Any, Final, TypeVar

from crdkeeper.apiserver.objects.effort import SharedAllowance
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.rehearsal.definition import CompiledDefinition, compile_definition
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.judgement import Judge, new_effects
from crdkeeper.core.rehearsal.report import RehearsalReport, doubts
from crdkeeper.operations.rehearsal.source import pages

Json = Any
_T = TypeVar("_T")
_PAGE_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 2 << 20
"""Of a page. An object has at most 1.5 MB in etcd; judged, it may take a hundred times as much memory."""
_PAGE_SECONDS: Final = 30.0
"""A conversion webhook that hangs must not hold up other rehearsals for longer."""
_NO_PAGE: Final = "no page of the composites"


async def predict(
    client: Client,
    live: Mapping[str, Any],
    document: Mapping[str, Any],
    before: Conversion | None,
    after: Conversion | None,
    allowance: SharedAllowance | None = None,
    turn: asyncio.Lock | None = None,
    place: AbstractAsyncContextManager[Any] | None = None,
) -> RehearsalReport:
    """The effects of `document`, which replaces the CRD `live`; the rules convert the one and the other.

    The `allowance` limits the work on all objects; what exceeds it is not predicted. Only who has the `turn`
    compiles CRDs and judges objects. All is done within the `place`, which is left after each page. Raises
    ApiError, Unreachable and UnreadableDefinition.
    """
    turn, place = turn or asyncio.Lock(), place or nullcontext()
    async with place:
        old, new = await _alone(turn, lambda: _compiled(live, document, before, after))
    stored_in = (live.get("status") or {}).get("storedVersions") or [old.storage]
    report = RehearsalReport(old.name, doubts=doubts(old, new, stored_in))
    version = old.endpoint
    if version is None:
        return report
    allowance = allowance or SharedAllowance()
    then, today = Judge(old, new, allowance), Judge(old, old, allowance)
    endpoint = Endpoint(old.group, version, old.plural)

    def unread(metadata: Mapping[str, Any], why: str) -> None:
        effects = [Effect(EffectKind.INDETERMINATE, "", version, why, why)]
        report.tally.add(metadata.get("namespace") or "", metadata["name"], effects)

    found = pages(
        client,
        endpoint,
        page_bytes=_PAGE_BYTES,
        most=_MOST_BYTES,
        seconds=_PAGE_SECONDS,
        what=_NO_PAGE,
        unread=unread,
    )
    async with aclosing(found) as listed:
        while await _next_page(listed, report, then, today, turn, place):
            pass
    return report


async def _next_page(
    listed: AsyncIterator[Sequence[Json]],
    report: RehearsalReport,
    then: Judge,
    today: Judge,
    turn: asyncio.Lock,
    place: AbstractAsyncContextManager[Any],
) -> bool:
    """Judge the objects of the next page, and forget them. Whether there was one."""
    async with place:
        items = await anext(listed, None)
        if items is None:
            return False
        if not items:
            return True
        found = await _alone(turn, partial(_effects, items, then, today))
    for obj, effects in zip(items, found, strict=True):
        metadata = obj["metadata"]
        report.tally.add(metadata.get("namespace") or "", metadata["name"], effects)
    return True


async def _alone(turn: asyncio.Lock, work: Callable[[], _T]) -> _T:
    """The result of the work, done in a thread by who has the turn.

    If this is cancelled, the thread goes on, with all the memory that it takes; the turn ends with it.
    """
    await turn.acquire()
    try:
        future = asyncio.get_running_loop().run_in_executor(None, work)
    except BaseException:
        turn.release()
        raise
    future.add_done_callback(lambda _: turn.release())
    return await asyncio.shield(future)


def _compiled(
    live: Mapping[str, Any],
    document: Mapping[str, Any],
    before: Conversion | None,
    after: Conversion | None,
) -> tuple[CompiledDefinition, CompiledDefinition]:
    old = compile_definition(live, before)
    return old, compile_definition(document, after, old)


def _effects(items: Sequence[Json], then: Judge, today: Judge) -> list[list[Effect]]:
    return [new_effects(each, then, today) for each in items]
