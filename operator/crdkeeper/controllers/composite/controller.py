"""Composites: a queue of all composites of definitions for which there are CompositionRevisions.

Where there are none, nothing is read and nothing is written: a definition may only serve an API.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.resources.compositions import REVISIONS
from crdkeeper.cluster.resources.kindpaths import KindPaths
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.collection import SeenCollection
from crdkeeper.controllers.composite.accounts import Accounts
from crdkeeper.controllers.composite.announcing import Announcer
from crdkeeper.controllers.composite.compiling import CompiledRevisions
from crdkeeper.controllers.composite.denials import Denials
from crdkeeper.controllers.composite.external import ExternalWatches
from crdkeeper.controllers.composite.lanes import Lanes, tenant_of
from crdkeeper.controllers.composite.looking import Looks
from crdkeeper.controllers.composite.metrics import ComposingMetrics
from crdkeeper.controllers.composite.news import News, Token
from crdkeeper.controllers.composite.ownrevisions import OwnRevisions
from crdkeeper.controllers.composite.placing import Place
from crdkeeper.controllers.composite.relevance import (
    GroupKind,
    Relevance,
    kinds_of_revision,
)
from crdkeeper.controllers.composite.report import PassReport
from crdkeeper.controllers.composite.room import ObjectMemory
from crdkeeper.controllers.composite.telling import CompositeTrouble
from crdkeeper.controllers.composite.watching import GONE, CompositeList, ObjectWatches, SeenComposite
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.composer.offering import revisions_not_listed
from crdkeeper.core.composites.choice import is_for
from crdkeeper.core.revisions.content import SeenRevision, seen_revision

_WORKERS: Final = 16
_GATHERING_SECONDS: Final = 0.02
"""Many events in a row lead to one pass."""
_LATER_SECONDS: Final = 2.0
"""A changed CRD or revision lets all composites be looked at: not all at once with what is new."""
_REST: Final = 3.0
"""A composite rests for this multiple of the time that its last pass took: others have their turn."""
_SLOWED_SECONDS: Final = 2.0
"""Or so long, while others change again and again what the composer leaves as it is."""
_FORBIDDEN_SECONDS: Final = 15.0
_PASSING: Final = (404, 409)
"""What a composite or its objects look like has changed since it was read."""
_TOLD: Final = (403, 422)
"""Refusals of a composite's status or finalizer, which the composite itself so cannot say."""
_TIDY_SECONDS: Final = 60.0
_GONE_SECONDS: Final = 1.0
"""Discovery and OpenAPI follow a CRD that is deleted."""


@dataclass(slots=True)
class _Watched:
    """A definition whose composites are watched, or were and may be again."""

    uid: str
    """Of the CRD."""
    path: str
    """Empty while they are not watched."""
    composites: CompositeList
    task: asyncio.Task[None]


class Composites:
    """Reconciles each composite whenever it, one of its objects, its revisions or its definition change."""

    def __init__(
        self, client: Client, state: ClusterState, metrics: ComposingMetrics, *, identity: str
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._state = state
        self._served = KindPaths(client, self._crds)
        rights = KnownRights(client)
        self._accounts = Accounts(client, rights)
        self._revisions = SeenCollection(
            client, REVISIONS, seen_revision, self._revision_changed, self._revisions_denied
        )
        self._own = OwnRevisions(state, self._revisions)
        self._compiled = CompiledRevisions(client, self._crds)
        self._watched: dict[str, _Watched] = {}
        self._keys: dict[str, str] = {}
        """By the uid of a composite: its key in the queue."""
        self._uids: dict[str, str] = {}
        self._relevance = Relevance()
        self._rests: dict[str, float] = {}
        """By key: in the loop's time, until when it rests."""
        self._news = News()
        self._lanes = Lanes()
        self._room = ObjectMemory()
        self._teller = CompositeTrouble(client, identity, self._number, self._say)
        self._announcer = Announcer(client, metrics, identity)
        self._denials = Denials(rights, self._all_changed, self._say)
        self._group: asyncio.TaskGroup | None = None
        self._objects = ObjectWatches(client, self._served, rights, self._object_changed, self._listed)
        self._external = ExternalWatches(client, self._ask)
        self._looks = Looks(
            client,
            state,
            self._own,
            self._compiled,
            self._objects,
            self._external,
            self._served,
            self._accounts,
            self._news,
        )
        self.queue = WorkQueue(self._reconcile, _WORKERS)
        state.listen(self._saw)

    async def run(self) -> None:
        """Run until cancelled."""
        async with self._accounts, asyncio.TaskGroup() as group:
            self._group = group
            self._objects.begin(group)
            self._external.begin(group)
            group.create_task(self._revisions.follow())
            group.create_task(self._announcer.run())
            group.create_task(self._work())
            group.create_task(self._tidy())

    async def _tidy(self) -> None:
        """From time to time, forget what is not needed any more, and look what was left.

        By then all definitions are known: composites may wait whose definition went while no composer ran.
        """
        while True:
            await asyncio.sleep(_TIDY_SECONDS)
            for name in [*self._state.seen]:
                self._keep(name)
            if self._revisions.loaded.is_set():
                made = (each.made for each in self._revisions.all().values())
                self._objects.drop(self._looks.found_kinds().union(*made))

    async def _work(self) -> None:
        await self._revisions.loaded.wait()
        for name in self._state.of(CompositeResourceDefinition):
            self._keep(name)
        await self.queue.run()

    def _say(self, name: str) -> None:
        """There may be something else to say about a definition."""
        self._state.saw_composing(name, self._denials.verdict(name) or self._teller.verdict(name))

    def _revisions_denied(self, said: str) -> None:
        self._state.saw_composing("", revisions_not_listed(said) if said else None)

    def _crds(self) -> Iterable[DefinitionFacts]:
        return (each.definition for each in self._state.seen.values())

    # What changed, and which composites it affects

    def _saw(self, kind: str, name: str) -> None:
        if kind == CompositeResourceDefinition.plural:
            definition = self._state.of(CompositeResourceDefinition).get(name)
            if definition is None:
                self._denials.forget(name)
                self._say(name)
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
            if each == name or any(of.uid in concerned for of in self._own.known(each)):
                self._all_changed(each)
                continue
            for key in (_key(each, place) for place, _ in watched.composites.all()):
                if kinds & self._looks.listed(key):
                    self._ask(key, _LATER_SECONDS)

    def _revision_changed(self, _: str, before: SeenRevision | None, now: SeenRevision | None) -> None:
        for name, definition in self._state.of(CompositeResourceDefinition).items():
            if any(each is not None and is_for(definition.spec, each) for each in (before, now)):
                self._keep(name)
                self._all_changed(name, _GATHERING_SECONDS)

    def _object_changed(self, uid: str, token: Token) -> None:
        key = self._keys.get(uid)
        if key is not None and self._news.hear(key, token):
            self.queue.add_within(key, _GATHERING_SECONDS)

    def _listed(self, key: str) -> None:
        """A composite need not wait any more for where its objects are."""
        if key in self._uids:
            self._ask(key, 0.0)

    def _ask(self, key: str, seconds: float) -> None:
        """Look at a composite in so many seconds, whatever is heard of it."""
        self._news.ask(key, asyncio.get_running_loop().time() + seconds)
        self.queue.add_within(key, seconds)

    def _all_changed(self, name: str, seconds: float = _LATER_SECONDS) -> None:
        watched = self._watched.get(name)
        for place, seen in watched.composites.all() if watched is not None else ():
            if self._concerns(name, seen):
                self._ask(_key(name, place), seconds)

    def _concerns(self, name: str, seen: SeenComposite) -> bool:
        """Whether there may be something to do for a composite of a definition."""
        return seen.held or bool(self._own.usable(name))

    def _holds(self, name: str) -> bool:
        """Whether a composite of a definition is known to have the finalizer."""
        watched = self._watched.get(name)
        return watched is not None and any(each.held for _, each in watched.composites.all())

    def _number(self, name: str) -> int:
        """How many composites of a definition are known."""
        watched = self._watched.get(name)
        return watched.composites.number if watched is not None else 0

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
            if version is not None and (left or self._own.known(name) or self._holds(name)):
                wanted = f"/apis/{seen.definition.group}/{version}/{seen.definition.plural}"
        watched = self._watched.get(name)
        uid = seen.definition.uid if seen is not None else ""
        if watched is not None and watched.uid != uid:
            watched.task.cancel()
            del self._watched[name]
            for place, _ in watched.composites.all():
                # They went with their CRD, and nothing tells of that any more.
                self._composite_changed(name, place, GONE)
            watched = None
        if wanted == (watched.path if watched is not None else ""):
            return
        known: list[tuple[Place, SeenComposite]] = []
        if watched is not None:
            watched.task.cancel()
            known = watched.composites.all()
            if not wanted:
                # Some may still have to be let go, and which of them go meanwhile is told by the next watch.
                watched.path = ""
                for place, _ in known:
                    self._metrics.forget(_key(name, place))
                    self._teller.works(name, _shown(place))
                    self._looks.forget(_key(name, place))
                return

        def changed(place: Place, of: SeenComposite) -> None:
            self._composite_changed(name, place, of)

        composites = CompositeList(self._client, wanted, changed, known)
        task = self._group.create_task(composites.follow())
        self._watched[name] = _Watched(uid, wanted, composites, task)

    def _composite_changed(self, name: str, place: Place, seen: SeenComposite) -> None:
        key = _key(name, place)
        before = self._uids.pop(key, "")
        if before and before != seen.uid:
            self._keys.pop(before, None)
            self._looks.failures.forget(before)
        if not seen.uid:
            self._rests.pop(key, None)
            self._looks.forget(key)
            self._metrics.forget(key)
            self._news.forget(key)
            self._teller.works(name, _shown(place))
        if seen.uid != before:
            self._teller.counted(name)
        if not seen.uid:
            return
        self._uids[key] = seen.uid
        self._keys[seen.uid] = key
        if self._concerns(name, seen) and self._news.hear(key, hash(seen.digest)):
            self.queue.add(key)

    # One composite

    async def _reconcile(self, key: str) -> None:
        loop = asyncio.get_running_loop()
        tenant = tenant_of(key)
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
        due = self._news.wait(key, loop.time())
        if due:
            self.queue.add_within(key, due)
        if due is None or due:
            return
        if (wait := self._rests.get(key, 0.0) - loop.time()) > 0.0:
            self.queue.add_within(key, wait)
            return
        definition = self._state.of(CompositeResourceDefinition).get(key.partition("\n")[0])
        if definition is not None and (pause := await self._denials.wait(definition)) is not None:
            self.queue.add_within(key, pause)
            return
        began, share = loop.time(), self._room.share(tenant_of(key))
        report, result = PassReport(), "failed"
        again: float | None = 0.0
        self._news.begin(key)
        try:
            again = await self._looks.look(key, share, report)
            result = ""
            name, *place = key.split("\n")
            self._teller.works(name, _shown(place))
        except ApiError as error:
            result = "retried" if error.code in _PASSING else "failed"
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
            self._metrics.passed(key, report, error=result, gone=key not in self._uids)
            self._announcer.tell(tenant_of(key), report)
            self._ended(key, report, began, again)
        if again is not None:
            self.queue.add_within(key, again)

    def _ended(self, key: str, report: PassReport, began: float, again: float | None) -> None:
        if report.composite is not None and (uid := report.composite["metadata"]["uid"]) not in self._keys:
            self._looks.failures.forget(uid)  # what has failed since it went was not forgotten with it
        if key not in self._uids:
            self._news.forget(key)
            self._looks.forget(key)
            return
        now = asyncio.get_running_loop().time()
        rest = _REST * (now - began)
        self._rests[key] = now + (max(rest, _SLOWED_SECONDS) if report.slowed else rest)
        if again is not None:
            # Also if it has failed: the queue repeats that.
            self._news.ask(key, now + again)

    async def _tell(self, key: str, error: ApiError) -> None:
        name, namespace, of = key.split("\n")
        definition = self._state.of(CompositeResourceDefinition).get(name)
        if definition is not None:
            if error.code == 403:
                await self._denials.denied(definition)
            if key not in self._uids:
                return  # it has gone meanwhile, and nothing would take back what is said of it
            denied = error.code == 403 and self._denials.verdict(name) is not None
            await self._teller.tell(definition, _shown((namespace, of)), error, denied=denied)


def _key(name: str, place: Place) -> str:
    return "\n".join((name, *place))


def _shown(place: Sequence[str]) -> str:
    """A composite, as messages name it."""
    return "/".join(filter(None, place))


def begin_composites(context: Context) -> Coroutine[Any, Any, None]:
    """The task of the controller."""
    metrics = ComposingMetrics(context.metrics.registry, context.metrics.composer_writes)
    return Composites(context.client, context.state, metrics, identity=context.identity).run()
