"""Composites: a queue of all composites of definitions for which there are CompositionRevisions.

Where there are none, nothing is read and nothing is written: a definition may only serve an API.
"""

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.resources.composed import get_object, pin_revision, set_finalizers_of
from crdkeeper.cluster.resources.composites import get_composite_definition
from crdkeeper.cluster.resources.compositions import REVISIONS
from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.collection import SeenCollection
from crdkeeper.controllers.composite.compiling import CompiledRevisions
from crdkeeper.controllers.composite.denials import Denials
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.lanes import Lanes
from crdkeeper.controllers.composite.reconciling import CompositePass, paused
from crdkeeper.controllers.composite.relevance import (
    GroupKind,
    Relevance,
    groups_and_kinds,
    kinds_of_revision,
)
from crdkeeper.controllers.composite.room import ObjectMemory, Share
from crdkeeper.controllers.composite.telling import CompositeTrouble
from crdkeeper.controllers.composite.watching import CompositeList, ObjectWatches, Place, SeenComposite
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.composites.choice import Chosen, choose, is_for, revisions_of
from crdkeeper.core.composites.inventory import KindKey
from crdkeeper.core.composites.ownership import FINALIZER, Composite
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.revisions.content import SeenRevision, seen_revision

_WORKERS: Final = 16
_GATHERING_SECONDS: Final = 0.1
"""Many events in a row lead to one pass."""
_LATER_SECONDS: Final = 2.0
"""A changed CRD or revision lets all composites be looked at: not all at once with what is new."""
_REST: Final = 3.0
"""A composite rests for this multiple of the time that its last pass took: others have their turn."""
_FORBIDDEN_SECONDS: Final = 15.0
_BLIND_SECONDS: Final = 15.0
"""Until another look at a composite whose objects cannot be watched."""
_TOLD: Final = (403, 422)
"""Refusals of a composite's status or finalizer, which the composite itself so cannot say."""
_GONE_SECONDS: Final = 1.0
"""Discovery and OpenAPI follow a CRD that is deleted."""


@dataclass(slots=True)
class _Watched:
    """A definition whose composites are watched."""

    uid: str
    path: str
    composites: CompositeList
    task: asyncio.Task[None]


class Composites:
    """Reconciles each composite whenever it, one of its objects, its revisions or its definition change."""

    def __init__(self, client: Client, state: ClusterState, *, identity: str) -> None:
        self._client = client
        self._state = state
        self._served = KindPaths(client, self._crds)
        self._rights = KnownRights(client)
        self._revisions = SeenCollection(client, REVISIONS, seen_revision, self._revision_changed)
        self._compiled = CompiledRevisions(client, self._crds)
        self._failures = Failures()
        self._settled: dict[str, str] = {}
        self._watched: dict[str, _Watched] = {}
        self._keys: dict[str, str] = {}
        """By the uid of a composite: its key in the queue."""
        self._uids: dict[str, str] = {}
        self._relevance = Relevance()
        self._listed: dict[str, frozenset[GroupKind]] = {}
        """By key: the kinds in its status that no revision has."""
        self._rests: dict[str, float] = {}
        """By key: in the loop's time, until when it rests."""
        self._lanes = Lanes()
        self._room = ObjectMemory()
        self._teller = CompositeTrouble(client, identity)
        self._denials = Denials(client, self._all_changed, state.saw_rights)
        self._group: asyncio.TaskGroup | None = None
        self._objects = ObjectWatches(client, self._served, self._rights, self._object_changed)
        self.queue = WorkQueue(self._reconcile, _WORKERS)
        state.listen(self._saw)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._objects.begin(group)
            group.create_task(self._revisions.follow())
            group.create_task(self._work())

    async def _work(self) -> None:
        await self._revisions.loaded.wait()
        for name in self._state.of(CompositeResourceDefinition):
            self._keep(name)
        await self.queue.run()

    def _crds(self) -> Iterable[DefinitionFacts]:
        return (each.definition for each in self._state.seen.values())

    # What changed, and which composites it affects

    def _saw(self, kind: str, name: str) -> None:
        if kind == CompositeResourceDefinition.plural:
            definition = self._state.of(CompositeResourceDefinition).get(name)
            if definition is None:
                self._denials.forget(name)
            self._keep(name)
            if self._relevance.of_definition(name, definition):
                self._all_changed(name)
        elif kind == "definitions":
            self._keep(name)
            self._kinds_changed(name, self._relevance.of_crd(name, self._state.seen.get(name)))

    def _kinds_changed(self, name: str, kinds: frozenset[GroupKind]) -> None:
        """A CRD has changed: of composites, or of what they are composed of now or were before."""
        if not kinds:
            return
        concerned = {
            each.uid: each for each in self._revisions.all().values() if kinds & kinds_of_revision(each)
        }
        for revision in concerned.values():
            self._compiled.expire(revision)
        for each, watched in self._watched.items():
            if each == name or any(of.uid in concerned for of in self._revisions_for(each)):
                self._all_changed(each)
                continue
            for key in (_key(each, place) for place, _ in watched.composites.all()):
                if kinds & self._listed.get(key, frozenset()):
                    self.queue.add_within(key, _LATER_SECONDS)

    def _revision_changed(self, _: str, before: SeenRevision | None, now: SeenRevision | None) -> None:
        for name, definition in self._state.of(CompositeResourceDefinition).items():
            if any(each is not None and is_for(definition.spec, each) for each in (before, now)):
                self._keep(name)
                self._all_changed(name, _GATHERING_SECONDS)

    def _object_changed(self, uid: str) -> None:
        key = self._keys.get(uid)
        if key is not None:
            self.queue.add_within(key, _GATHERING_SECONDS)

    def _all_changed(self, name: str, seconds: float = _LATER_SECONDS) -> None:
        watched = self._watched.get(name)
        for place, seen in watched.composites.all() if watched is not None else ():
            if self._concerns(name, seen):
                self.queue.add_within(_key(name, place), seconds)

    def _concerns(self, name: str, seen: SeenComposite) -> bool:
        """Whether there may be something to do for a composite of a definition."""
        return seen.held or bool(self._usable(name))

    def _holds(self, name: str) -> bool:
        """Whether a composite of a definition is known to have the finalizer."""
        watched = self._watched.get(name)
        return watched is not None and any(each.held for _, each in watched.composites.all())

    def _revisions_for(self, name: str) -> list[SeenRevision]:
        """The revisions for composites of a definition, also at versions that are not served any more."""
        definition = self._state.of(CompositeResourceDefinition).get(name)
        known = self._revisions.all().values() if definition is not None else ()
        return [each for each in known if definition is not None and is_for(definition.spec, each)]

    def _usable(self, name: str) -> list[SeenRevision]:
        """The revisions for composites of a definition."""
        definition, seen = self._state.of(CompositeResourceDefinition).get(name), self._state.seen.get(name)
        if definition is None or seen is None:
            return []
        served = seen.definition.served_versions
        return revisions_of(definition.spec, self._revisions.all().values(), served)

    def _keep(self, name: str) -> None:
        """Watch the composites of a definition, if they may be composed; or do not any more.

        Also if there are no revisions any more, while composites wait for the composer or may do so.
        """
        if self._group is None or not self._revisions.loaded.is_set():
            return
        definition, seen = self._state.of(CompositeResourceDefinition).get(name), self._state.seen.get(name)
        wanted = ""
        if seen is not None and seen.definition_uid and seen.definition.established:
            version = seen.definition.endpoint_version
            left = definition is None or definition.metadata.deletion_timestamp is not None
            if version is not None and (left or self._revisions_for(name) or self._holds(name)):
                wanted = f"/apis/{seen.definition.group}/{version}/{seen.definition.plural}"
        watched = self._watched.get(name)
        uid = seen.definition.uid if seen is not None else ""
        if watched is not None and (watched.path, watched.uid) != (wanted, uid):
            watched.task.cancel()
            del self._watched[name]
            watched = None
        if wanted and watched is None:

            def changed(place: Place, of: SeenComposite) -> None:
                self._composite_changed(name, place, of)

            composites = CompositeList(self._client, wanted, changed)
            task = self._group.create_task(composites.follow())
            self._watched[name] = _Watched(uid, wanted, composites, task)

    def _composite_changed(self, name: str, place: Place, seen: SeenComposite) -> None:
        key = _key(name, place)
        before = self._uids.pop(key, "")
        if before and before != seen.uid:
            self._keys.pop(before, None)
            self._failures.forget(before)
        if not seen.uid:
            self._rests.pop(key, None)
            self._listed.pop(key, None)
            return
        self._uids[key] = seen.uid
        self._keys[seen.uid] = key
        if self._concerns(name, seen):
            self.queue.add(key)

    # One composite

    async def _reconcile(self, key: str) -> None:
        loop = asyncio.get_running_loop()
        # A namespace of one API counts as a tenant.
        tenant = key.rpartition("\n")[0]
        if not self._lanes.enter(tenant, key, loop.time()):
            return
        try:
            await self._turn(key)
        finally:
            for each in self._lanes.leave(tenant, key, loop.time()):
                self.queue.add(each)

    async def _turn(self, key: str) -> None:
        loop = asyncio.get_running_loop()
        if key not in self._uids:
            return
        if (wait := self._rests.get(key, 0.0) - loop.time()) > 0.0:
            self.queue.add_within(key, wait)
            return
        definition = self._state.of(CompositeResourceDefinition).get(key.partition("\n")[0])
        if definition is not None and (pause := await self._denials.wait(definition)) is not None:
            self.queue.add_within(key, pause)
            return
        began, share = loop.time(), self._room.share()
        try:
            again = await self._look(key, share)
        except ApiError as error:
            if error.code == 404:
                # It is gone, or a kind is: its own, or that of an object.
                again = _GONE_SECONDS
            elif error.code == 409:
                # Somebody has changed it since it was read.
                again = _GATHERING_SECONDS
            elif error.code in _TOLD:
                await self._tell(key, error)
                again = _FORBIDDEN_SECONDS
            else:
                raise
        finally:
            share.end()
            now = loop.time()
            self._rests[key] = now + _REST * (now - began)
        if again is not None:
            self.queue.add_within(key, again)

    async def _tell(self, key: str, error: ApiError) -> None:
        name, namespace, of = key.split("\n")
        definition = self._state.of(CompositeResourceDefinition).get(name)
        if definition is not None:
            await self._teller.tell(definition, f"{namespace}/{of}" if namespace else of, error)
            if error.code == 403:
                await self._denials.denied(definition)

    async def _look(self, key: str, share: Share) -> float | None:
        """One pass; returns in how many seconds to look again."""
        name, namespace, of = key.split("\n")
        definition, seen = self._state.of(CompositeResourceDefinition).get(name), self._state.seen.get(name)
        version = seen.definition.endpoint_version if seen is not None else None
        if seen is None or version is None:
            return None
        kind = home = _kind(seen.definition, version)
        value = await get_object(self._client, kind, namespace, of)
        if value is None:
            return None
        composite = Composite.of(value)
        if composite.deleting and not composite.holds:
            return None
        if _is_orphaned(definition) if definition is not None else not seen.definition_uid:
            # Left to nobody, perhaps while the finalizer was being added.
            if composite.holds:
                await self._let_go(kind, value)
            return None
        work = self._pass(kind, home, value, share)
        self._remember_listed(key, work)
        if composite.paused:
            if composite.holds or (value.get("status") or {}).get("conditions"):
                await work.say(paused())
            return None
        revisions = self._usable(name)
        if composite.deleting:
            served = seen.definition.served_versions
            own = choose(definition.spec, value, revisions, served) if definition is not None else None
            await self._delete(work, self._revisions_for(name), own, value)
            return work.again
        if definition is None or seen.definition_uid != definition.metadata.uid:
            return None
        chosen = choose(definition.spec, value, revisions, seen.definition.served_versions)
        if isinstance(chosen, Verdict):
            await work.say(chosen)
            return None
        compiled = await self._compiled.of(chosen.revision)
        if isinstance(compiled, Verdict):
            await work.say(compiled)
            return _FORBIDDEN_SECONDS
        if chosen.pin:
            await pin_revision(self._client, kind, value, chosen.revision.name)
        if chosen.pin or value["apiVersion"] != chosen.revision.api_version:
            kind = _kind(seen.definition, chosen.revision.api_version.rpartition("/")[2])
            value = await get_object(self._client, kind, namespace, of)
            if value is None:
                return None
            work = self._pass(kind, home, value, share)
        await self._objects.keep(compiled.kinds | work.listed_kinds())
        doubt = self._compiled.doubt(chosen.revision)
        await work.reconcile(compiled, await self._objects.refused(compiled.kinds) or doubt)
        if doubt is not None or self._objects.blind(compiled.kinds):
            work.again = min(work.again or _BLIND_SECONDS, _BLIND_SECONDS)
        self._teller.works(definition)
        if work.held and not await self._is_kept(definition):
            # The definition was left to nobody meanwhile, and so are its composites.
            await self._let_go(home, work.value)
        return work.again

    def _remember_listed(self, key: str, work: CompositePass) -> None:
        known = (kinds_of_revision(each) for each in self._revisions_for(key.partition("\n")[0]))
        listed = groups_and_kinds(work.listed_kinds()).difference(*known)
        self._listed.pop(key, None)
        if listed:
            self._listed[key] = listed

    async def _let_go(self, kind: ServedKind, value: Mapping[str, Any]) -> None:
        left = [each for each in value["metadata"].get("finalizers") or () if each != FINALIZER]
        await set_finalizers_of(self._client, kind, value, left)

    async def _delete(
        self,
        work: CompositePass,
        revisions: Collection[SeenRevision],
        chosen: Chosen | Verdict | None,
        value: dict[str, Any],
    ) -> None:
        used = chosen.revision if isinstance(chosen, Chosen) else None
        resources, own, unknown = await self._compiled.of_all(revisions, used)
        kinds = frozenset[KindKey]().union(*(each.made for each in revisions))
        await self._objects.keep(kinds | work.listed_kinds())
        state = (value.get("status") or {}).get("crdkeeper") or {}
        await work.delete(sorted(kinds), resources, own, str(state.get("revision") or ""), unknown)

    async def _is_kept(self, definition: CompositeResourceDefinition) -> bool:
        found = await get_composite_definition(self._client, definition.metadata.name)
        if found is None or found["metadata"]["uid"] != definition.metadata.uid:
            return False
        return not _is_orphaned(CompositeResourceDefinition.model_validate(found))

    def _pass(self, kind: ServedKind, home: ServedKind, value: dict[str, Any], share: Share) -> CompositePass:
        known = self._served, self._failures, self._settled, share, self._rights
        return CompositePass(self._client, *known, kind, home, value)


def _kind(crd: DefinitionFacts, version: str) -> ServedKind:
    return ServedKind(f"{crd.group}/{version}", crd.kind, crd.plural, crd.namespaced)


def _key(name: str, place: Place) -> str:
    return "\n".join((name, *place))


def _is_orphaned(definition: CompositeResourceDefinition) -> bool:
    return definition.metadata.deletion_timestamp is not None and definition.spec.deletion == "Orphan"


def begin_composites(context: Context) -> Coroutine[Any, Any, None]:
    """The task of the controller."""
    return Composites(context.client, context.state, identity=context.identity).run()
