"""Kopf's decorators and settings: turns watch events into the operator's state, and nothing else.

Only `on.event` handlers: they leave no annotation and no finalizer, neither on foreign objects nor on our
own, so nothing blocks a deletion when crdkeeper is gone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

import kopf
from pydantic import ValidationError

from crdkeeper.api.meta import GROUP, VERSION
from crdkeeper.api.texts import described
from crdkeeper.cluster.resources.definitions import DEFINITIONS_PATH
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.controllers.entry import Controller, Watch
from crdkeeper.controllers.misseddeletions import Shown
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.diagnosis.facts import SeenDefinition, seen_definition

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


def operator_settings() -> kopf.OperatorSettings:
    """Settings that keep Kopf from writing to other people's objects, and its memory small."""
    settings = kopf.OperatorSettings()
    # Kopf strips this finalizer from what it watches: the default name belongs to other Kopf operators.
    settings.persistence.finalizer = "crdkeeper.dev/kopf"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP, v1=False)
    settings.persistence.diffbase_storage = _NothingToCompare()
    # A foreign `default` peering object would pause us; our Lease decides who leads.
    settings.peering.standalone = True
    settings.posting.enabled = False
    # All kinds exist before Kopf starts; scanning would watch all CRDs a second time.
    settings.scanning.disabled = True
    # CRDs are large: 25 at a time take 4 MiB of memory more than 10.
    settings.watching.chunk_size = 10
    # Kopf keeps a worker alive this long after each object's last event; 2,000 of them take 200 MB.
    settings.queueing.idle_timeout = 0.1
    return settings


class _NothingToCompare(kopf.DiffBaseStorage):
    """Kopf's idea of an object before and after a change: empty, as no handler of ours asks for it.

    Otherwise Kopf makes two copies of each CRD for every event, and reads an annotation that anyone can set.
    """

    def build(
        self, *, body: kopf.Body, extra_fields: Iterable[kopf.FieldSpec] | None = None
    ) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        pass


def register(
    registry: kopf.OperatorRegistry,
    connection: Connection,
    state: ClusterState,
    controllers: Iterable[Controller],
    *,
    on_exit: Callable[[], Awaitable[None]],
) -> Sequence[Shown]:
    """Have Kopf log in by `connection` and update `state`; end the other tasks when Kopf ends itself.

    Returns what Kopf shows, by kind: it may miss deletions.
    """

    watching: WeakSet[asyncio.Task[Any]] = WeakSet()

    @kopf.on.cleanup(registry=registry)
    async def cleanup(**_: Any) -> None:
        # A watch that fails ends Kopf, but not its other watches. After this Kopf closes their session: they
        # would wait for a login that nobody answers, and take a cancellation for the end of one stream.
        for each in watching:
            each.cancel()
        # Kopf waits five seconds for tasks that it did not start, then cancels them: end ours first.
        await on_exit()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        return await connection.kopf_login(watching)

    definitions = Latest()

    @kopf.on.event("apiextensions.k8s.io", "v1", "customresourcedefinitions", registry=registry)
    async def definition(event: kopf.RawEvent, name: str, **_: Any) -> None:
        if definitions.accepts(event, name):
            _seen(event, name, seen_definition, partial(_saw_definition, state, event["object"]))
        # Kopf keeps the event for a while; the schemas of a page of CRDs take 30 MB.
        event["object"].pop("spec", None)

    def definition_gone(name: str) -> None:
        definitions.forget(name)
        state.saw_definition(name, None)

    shown = [Shown(DEFINITIONS_PATH, definitions.known, definition_gone)]
    for each in controllers:
        for kind, watch in each.watches().items():
            shown.append(_watch(registry, kind.plural, watch, state))
    return shown


def _saw_definition(
    state: ClusterState, crd: Mapping[str, Any], name: str, seen: SeenDefinition | None
) -> None:
    state.saw_definition(name, seen, crd)


def _watch(registry: kopf.OperatorRegistry, plural: str, watch: Watch, state: ClusterState) -> Shown:
    latest = Latest()

    @kopf.on.event(GROUP, VERSION, plural, registry=registry, id=plural)
    async def seen(event: kopf.RawEvent, name: str, **_: Any) -> None:
        if latest.accepts(event, name):
            _seen(event, name, watch.keep, partial(watch.saw, state))

    def gone(name: str) -> None:
        latest.forget(name)
        watch.saw(state, name, None)

    return Shown(f"/apis/{GROUP}/{VERSION}/{plural}", latest.known, gone)


class Latest:
    """Tells late events of an object from those of another one that has its name by now.

    Kopf keeps the order of events only for each uid. Of an object that is replaced, it may pass on the
    deletion after the creation of the new one, which would be forgotten then until it changes.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int]] = {}

    def known(self) -> Mapping[str, object]:
        """The objects by name, each with its uid and resourceVersion."""
        return self._known

    def forget(self, name: str) -> None:
        """The object of that name is gone."""
        self._known.pop(name, None)

    def accepts(self, event: kopf.RawEvent, name: str) -> bool:
        """Whether an event about the object of that name is news."""
        metadata = event["object"].get("metadata", {})
        uid, version = metadata.get("uid", ""), metadata.get("resourceVersion", "")
        number = int(version) if version.isdigit() else 0
        known_uid, known = self._known.get(name, (uid, 0))
        # A list, whose events have no type, shows what is there, also after etcd was restored.
        if event["type"] is not None and uid != known_uid and number < known:
            return False
        if event["type"] == "DELETED":
            self.forget(name)
        else:
            self._known[name] = uid, number
        return True


def _seen(
    event: kopf.RawEvent, name: str, parse: Callable[[Any], _T], tell: Callable[[str, _T | None], None]
) -> None:
    if event["type"] == "DELETED":
        tell(name, None)
        return
    try:
        parsed = parse(event["object"])
    except (ValueError, KeyError, StopIteration) as error:
        problem = described(error) if isinstance(error, ValidationError) else type(error).__name__
        _log.error("%s %s cannot be read and is ignored: %s", event["object"].get("kind"), name, problem)
        return
    tell(name, parsed)
