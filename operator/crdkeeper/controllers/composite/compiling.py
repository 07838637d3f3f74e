"""The compiled CompositionRevisions by which composites run: compiled once for the schemas that there are."""

import asyncio
import logging
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from crdkeeper.api.composition import CompositionSpec
from crdkeeper.api.compositionrevision import CompositionRevision, CompositionRevisionSpec
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition
from crdkeeper.apiserver.objects.objectschema import CannotCompile, ObjectSchema
from crdkeeper.cluster.resources.compositions import get_composition_revision
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.composites.inventory import KindKey
from crdkeeper.core.composites.reasons import FAILED, NO_REVISION, REVISION_UNUSABLE
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.revisions.content import SeenRevision
from crdkeeper.core.templates.compilation import compile_composition, kinds_in
from crdkeeper.core.templates.compiled import CompiledComposition
from crdkeeper.core.templates.kinds import KnownKinds, TargetKind
from crdkeeper.operations.composition.targets import TargetKinds

_log = logging.getLogger(__name__)
_MOST: Final = 200
"""Compiled revisions that are kept."""
_CHECKED_SECONDS: Final = 60.0
"""How long schemas count as unchanged if no CRD changes: others change with the API server."""
_DOUBTED_SECONDS: Final = 15.0
"""Until they are asked for again that could not be read."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A revision that can be rendered."""

    name: str
    composition: CompiledComposition
    schema: ObjectSchema
    """Of composites at its version."""
    kinds: frozenset[KindKey]
    """Of the objects that it makes."""


@dataclass(slots=True)
class _Known:
    key: object
    result: Compiled | Verdict
    until: float
    doubt: Verdict | None = None
    """Why it is not known whether this still holds."""


class CompiledRevisions:
    """Those that were used last."""

    def __init__(self, client: Client, seen: Callable[[], Iterable[DefinitionFacts]]) -> None:
        self._client = client
        self._targets = TargetKinds(client, seen)
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._reading: dict[str, asyncio.Lock] = {}
        """By the uid of a revision."""
        self._outdated: set[str] = set()
        """The uids of revisions for which other schemas came while they were being compiled."""
        self._turn = asyncio.Lock()
        """Of compiling: threads share one processor with the event loop."""

    async def of(self, revision: SeenRevision) -> Compiled | Verdict:
        """The revision, or why it cannot be used."""
        now = asyncio.get_running_loop().time()
        known = self._known.get(revision.uid)
        if known is not None and now < known.until:
            self._known.move_to_end(revision.uid)
            return known.result
        reading = self._reading.setdefault(revision.uid, asyncio.Lock())
        if known is not None and known.doubt is not None and reading.locked():
            # An API that does not answer holds up one composite at a time.
            return known.result
        # One that waits for an API server holds up only those that need the same revision.
        async with reading:
            self._reading[revision.uid] = reading  # it may have been forgotten between two that hold it
            known = self._known.get(revision.uid)
            if known is not None and now < known.until:
                return known.result
            self._outdated.discard(revision.uid)
            try:
                found = await self._compile(revision, known)
            except (ApiError, Unreachable) as error:
                found = _doubted(revision, known, error)
            if revision.uid in self._outdated:
                self._outdated.discard(revision.uid)
                found.until = 0.0
            self._known[revision.uid] = found
            self._known.move_to_end(revision.uid)
            self._forget()
            return found.result

    def _forget(self) -> None:
        """Forget those not used for longest, but none that is being compiled: `expire` looks for it."""
        for uid in list(self._known)[: max(0, len(self._known) - _MOST)]:
            reading = self._reading.get(uid)
            # None if it was forgotten between two readers: the second one's lock was free at that moment.
            if reading is None or not reading.locked():
                del self._known[uid]
                self._reading.pop(uid, None)

    def doubt(self, revision: SeenRevision) -> Verdict | None:
        """Why it is not known whether the revision would be compiled like this now."""
        known = self._known.get(revision.uid)
        return known.doubt if known is not None else None

    async def waves(
        self, deciding: Mapping[str, SeenRevision], names: Iterable[str], *, namespaced: bool
    ) -> dict[str, int]:
        """The waves of resources by name, each in the revision that decides. No schema changes them.

        `namespaced` is whether composites are in namespaces. Raises ApiError and Unreachable.
        """
        found: dict[str, int] = {}
        wanted = {name: deciding[name] for name in names if name in deciding}
        for uid, revision in {each.uid: each for each in wanted.values()}.items():
            order = await self._order(revision, namespaced)
            found |= {name: order.get(name, 0) for name, each in wanted.items() if each.uid == uid}
        return found

    def expire(self, revision: SeenRevision) -> None:
        """A CRD of one of its kinds has changed: the schemas are looked at again."""
        known = self._known.get(revision.uid)
        if known is not None:
            known.until = 0.0
        reading = self._reading.get(revision.uid)
        if reading is not None and reading.locked():
            self._outdated.add(revision.uid)

    async def _order(self, revision: SeenRevision, namespaced: bool) -> Mapping[str, int]:
        """The waves of a revision, empty if they cannot be known any more."""
        known = self._known.get(revision.uid)
        if known is not None and isinstance(known.result, Compiled):
            return known.result.composition.order
        value = await get_composition_revision(self._client, revision.name)
        if value is None or value["metadata"]["uid"] != revision.uid:
            return {}
        try:
            spec = CompositionRevision.model_validate(value).spec
        except ValueError:
            return {}
        async with self._turn:
            return await asyncio.to_thread(_order_or_none, revision, spec, namespaced)

    async def _compile(self, revision: SeenRevision, known: _Known | None) -> _Known:
        value = await get_composition_revision(self._client, revision.name)
        now = asyncio.get_running_loop().time()
        if value is None or value["metadata"]["uid"] != revision.uid:
            said = f"The CompositionRevision {revision.name} is gone."
            return _Known(None, Verdict(NO_REVISION, said), now)
        try:
            spec = CompositionRevision.model_validate(value).spec
        except ValueError:
            said = f"The CompositionRevision {revision.name} cannot be read."
            return _Known(None, Verdict(REVISION_UNUSABLE, said), now + _CHECKED_SECONDS)
        own = revision.api_version, revision.kind
        served = await self._targets.find((own, *kinds_in(spec)))
        key = served.key
        if known is not None and known.key == key:
            return _Known(key, known.result, now + _CHECKED_SECONDS)
        try:
            kinds = await self._targets.read(served)
        except UnreadableDefinition as error:
            return _Known(None, Verdict(FAILED, f"A CRD cannot be read: {error}"), now + 5.0)
        if own not in kinds:
            said = f"The API server does not serve {own[1]} of {own[0]} yet."
            return _Known(None, Verdict(FAILED, said), now)
        async with self._turn:
            result = await asyncio.to_thread(_compiled_or_failed, revision, spec, kinds)
        return _Known(key, result, now + _CHECKED_SECONDS)


def _doubted(revision: SeenRevision, known: _Known | None, error: ApiError | Unreachable) -> _Known:
    until = asyncio.get_running_loop().time() + _DOUBTED_SECONDS
    said = f"The kinds of the CompositionRevision {revision.name} cannot be looked up: {error}"
    doubt = Verdict(FAILED, said)
    if known is None or known.key is None:
        return _Known(None, doubt, until, doubt)
    return replace(known, until=until, doubt=doubt)


def _compiled_or_failed(
    revision: SeenRevision, spec: CompositionRevisionSpec, kinds: KnownKinds
) -> Compiled | Verdict:
    try:
        return compiled_by(revision, spec, kinds)
    except Exception as error:
        # Else each composite would compile it again.
        kind = _log_error(revision, error)
        said = f"The CompositionRevision {revision.name} cannot be compiled: an error in crdkeeper ({kind}); "
        return Verdict(REVISION_UNUSABLE, f"{said}the composer's log says where.")


def _order_or_none(
    revision: SeenRevision, spec: CompositionRevisionSpec, namespaced: bool
) -> Mapping[str, int]:
    try:
        made = compile_composition(spec, TargetKind(None, namespaced), {})
    except Exception as error:
        # A deletion must not wait for another version of crdkeeper.
        _log_error(revision, error)
        return {}
    return made.composition.order if made.composition is not None else {}


def _log_error(revision: SeenRevision, error: Exception) -> str:
    """Returns the kind of an error in crdkeeper, whose text may have parts of templates."""
    kind, where = type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
    _log.error("The CompositionRevision %s cannot be compiled: %s in\n%s", revision.name, kind, where)
    return kind


def compiled_by(
    revision: SeenRevision, spec: CompositionSpec | CompositionRevisionSpec, kinds: KnownKinds
) -> Compiled | Verdict:
    """The revision with this content, or why it cannot be used."""
    composite = kinds[revision.api_version, revision.kind]
    assert composite.schema is not None
    try:
        schema = ObjectSchema.of(composite.schema)
    except CannotCompile as error:
        said = f"The schema of {revision.kind} cannot be evaluated: {error}"
        return Verdict(REVISION_UNUSABLE, said)
    result = compile_composition(spec, composite, kinds)
    if result.composition is None:
        first = result.own_problems[0]
        said = f"The CompositionRevision {revision.name} is not valid: {first}. {first.hint}".strip()
        return Verdict(REVISION_UNUSABLE, said)
    made = frozenset(
        (each.api_version, each.kind) for each in result.composition.resources if not each.external
    )
    return Compiled(revision.name, result.composition, schema, made)
