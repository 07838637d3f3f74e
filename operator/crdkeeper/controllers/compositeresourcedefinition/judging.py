"""Judges updates of CRDs: each change once, in a thread, beside other work."""

import asyncio
import zlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.composites import is_served
from crdkeeper.cluster.resources.versionconversions import read_conversion
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.compositeresourcedefinition.rehearsing import Place, Rehearsals
from crdkeeper.core.composer.advice import Advice, advise
from crdkeeper.core.composer.plan import takes
from crdkeeper.core.composer.update import Rest, Update, UpdateFacts, judge, resting
from crdkeeper.core.composer.updaterefusal import held_versions, needs_rehearsal
from crdkeeper.core.composition.acceptance import Acceptance, accept
from crdkeeper.core.conversion.nesting import dumps, loads
from crdkeeper.core.conversion.target import serving_address
from crdkeeper.core.rehearsal.report import RehearsalReport
from crdkeeper.core.rehearsal.update import applied
from crdkeeper.operations.rehearsal.prediction import predict

_AT_ONCE: Final = 4
"""Judgements; all threads share one processor, and with it the event loop."""

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Judged:
    """What is kept for a definition as long as it exists."""

    key: Key
    accepted: Acceptance
    """Without the CRD."""
    crd: bytes | None
    """Compressed: as objects, CRDs of some hundred KiB would take all of the memory."""
    update: Update
    advice: Advice


class Judging:
    """The judgements of all definitions. Calls `on_rehearsed` with the name of each that was rehearsed."""

    def __init__(self, client: Client, on_rehearsed: Callable[[str], None]) -> None:
        self._client = client
        self._known: dict[str, _Judged] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._turn = asyncio.Lock()
        """Of rehearsals in threads: a large object may take hundreds of megabytes meanwhile."""
        self._rehearsals = Rehearsals(client, on_rehearsed)

    async def of(
        self,
        found: Mapping[str, Any],
        definition: CompositeResourceDefinition,
        live: Mapping[str, Any] | None,
        composites: int | None,
        rest: Callable[[Mapping[str, Any], Sequence[str]], Rest | None],
    ) -> tuple[Acceptance, UpdateFacts]:
        """The judgement; without a rehearsal as long as one is needed and not finished. Empty in a deletion.

        `rest` says why nothing would be sent for now to apply the CRD, while these versions are held
        back. Raises ApiError and Unreachable.
        """
        name = definition.metadata.name
        if definition.metadata.deletion_timestamp is not None:
            # What cannot be read for a judgement must not hold up a deletion, which needs none.
            self.forget(name)
            return Acceptance(None, ()), UpdateFacts()
        conversion = await read_conversion(self._client, name)
        ours = live if live is not None and takes(definition, live) else None
        key = (_revision(found), _revision(ours), _stored(ours), _revision(conversion), _serves(conversion))
        known = self._known.get(name)
        if known is None or known.key != key:
            async with self._places:
                known = await asyncio.to_thread(_judge, key, found, ours, conversion)
            self._known[name] = known
        update, made = known.update, _unpacked(known.crd)
        accepted = replace(known.accepted, crd=made)
        facts = UpdateFacts(update, conversion=conversion, advice=known.advice)
        found_rest = rest(ours, held_versions(definition, ours, facts)) if ours is not None else None
        if found_rest is not None:
            # What the last attempt has cost still counts.
            return accepted, resting(facts, found_rest)
        if ours is None or made is None or not needs_rehearsal(definition, composites, update):
            if composites is not None:
                # If they only cannot be counted for now, what the last attempt has cost still counts.
                self._rehearsals.end(name)
            return accepted, facts

        def run(place: Place) -> Coroutine[Any, Any, RehearsalReport]:
            after = applied(ours, made)
            rules = update.rules
            return predict(self._client, ours, after, rules.before, rules.after, None, self._turn, place)

        rehearsal = self._rehearsals.of(name, key, run)
        return accepted, replace(facts, rehearsal=rehearsal)

    def forget(self, name: str) -> None:
        """Drop everything about a definition that is gone."""
        self._known.pop(name, None)
        self._rehearsals.end(name)


def _judge(
    key: Key,
    found: Mapping[str, Any],
    live: Mapping[str, Any] | None,
    conversion: Mapping[str, Any] | None,
) -> _Judged:
    accepted, update = judge(accept(found), live, conversion)
    advice = advise(found, accepted, live)
    return _Judged(key, replace(accepted, crd=None), _packed(accepted.crd), update, advice)


def _packed(crd: Mapping[str, Any] | None) -> bytes | None:
    return zlib.compress(dumps(crd), level=1) if crd is not None else None


def _unpacked(packed: bytes | None) -> dict[str, Any] | None:
    return dict(loads(zlib.decompress(packed))) if packed is not None else None


def _revision(found: Mapping[str, Any] | None) -> Key:
    """What changes with all that a judgement depends on but statuses: see `_stored` and `_serves`."""
    if found is None:
        return ()
    metadata = found["metadata"]
    return metadata["uid"], metadata["generation"]


def _stored(live: Mapping[str, Any] | None) -> Key:
    if live is None:
        return (), False
    return tuple((live.get("status") or {}).get("storedVersions") or ()), is_served(live)


def _serves(conversion: Mapping[str, Any] | None) -> Key:
    """Of the status, whether rules are served, and where: the operator may move without a new generation."""
    if conversion is None:
        return ()
    return bool((conversion.get("status") or {}).get("servedGeneration")), serving_address(conversion)
