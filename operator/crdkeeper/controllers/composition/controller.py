"""Compositions: compiles them, makes their CompositionRevisions, and writes their status.

In a queue of its own: however long a Composition takes, definitions do not wait for it.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from prometheus_client import Counter

from crdkeeper.api.composition import Composition, CompositionStatus
from crdkeeper.api.compositionrevision import CompositionRevision
from crdkeeper.api.meta import GROUP, STALLED, find_condition
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.resources.composites import COMPOSER, FIELD_MANAGER
from crdkeeper.cluster.resources.compositions import (
    COMPOSITIONS,
    REVISIONS,
    create_composition_revision,
    delete_composition_revision,
    get_composition,
    get_composition_revision,
    list_composition,
)
from crdkeeper.cluster.resources.events import send_event
from crdkeeper.cluster.resources.kinds import apply_status
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable, may_pass
from crdkeeper.cluster.transport.deadlines import WRITE_SECONDS, within
from crdkeeper.controllers.collection import SeenCollection
from crdkeeper.controllers.composition.collecting import RevisionCollector
from crdkeeper.controllers.composition.judging import CompositionJudging
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.composer.wording import own_rules
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.revisions import reasons
from crdkeeper.core.revisions.content import (
    CompositionContent,
    NewRevision,
    SeenRevision,
    changed_part,
    content_of,
    newest,
    seen_revision,
    wanted,
)
from crdkeeper.core.revisions.standing import CompositionFacts, kept_before, standing
from crdkeeper.core.templates.compilation import kinds_in
from crdkeeper.core.templates.kinds import group_of
from crdkeeper.operations.composition.targets import TargetKinds

_log = logging.getLogger(__name__)
_WORKERS: Final = 4
_GATHERING_SECONDS: Final = 0.25
"""Many changes of CRDs lead to one look."""
_SETTLING_SECONDS: Final = 5.0
"""Discovery and OpenAPI follow a CRD by about a second."""
_MISSING_SECONDS: Final = 15.0
"""Nobody announces that an aggregated API server serves a kind."""
_REFUSED_SECONDS: Final = 15.0
_LONGEST_REFUSED_SECONDS: Final = 600.0
_AGAIN_SECONDS: Final = 300.0
"""An API server that was upgraded has other schemas, and composites leave revisions."""
_RULE: Final = "{{apiGroups: [" + GROUP + "], resources: [{}], verbs: [{}]}}"


@dataclass(frozen=True, slots=True)
class SeenCompositionSpec:
    """A Composition, reduced to what tells whether it has to be looked at."""

    uid: str
    generation: int
    labels: tuple[tuple[str, str], ...]
    groups: frozenset[str]
    """The API groups of its kinds."""
    status: CompositionStatus


@dataclass(slots=True)
class _Unlike:
    """A content of which a revision was stored with another one, although a dry run showed the same."""

    hash: str
    why: str
    number: int
    """How often it was tried again."""
    due: float
    """In the loop's time: when it is tried again."""
    stored: SeenRevision | None
    """That revision, until it is deleted."""


class Compositions:
    """Reconciles each Composition whenever it, one of its revisions, or a CRD that it depends on changes."""

    def __init__(self, client: Client, state: ClusterState, writes: Counter, *, identity: str) -> None:
        """`writes` counts all changes of the composer, by what it changed."""
        self._client = client
        self._writes = writes
        self._state = state
        self._identity = identity
        self._written: dict[str, CompositionStatus] = {}
        """What this process has written last."""
        self._unlike: dict[str, _Unlike] = {}
        """By Composition: a content of which a revision was stored with another one."""
        self._settling: dict[str, float] = {}
        """By API group: until when its kinds may not be what discovery says."""
        self.queue = WorkQueue(self._reconcile, _WORKERS)
        self._seen = SeenCollection(client, COMPOSITIONS, _read, self._saw_composition)
        self._revisions = SeenCollection(client, REVISIONS, seen_revision, self._saw_revision)
        self._judging = CompositionJudging(TargetKinds(client, self._definitions))
        self._collector = RevisionCollector(client, self.queue.add_within, writes)
        state.listen(self._saw)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._seen.follow())
            group.create_task(self._revisions.follow())
            group.create_task(self._work())

    async def _work(self) -> None:
        # Before that, each Composition would seem to have no revision.
        await self._seen.loaded.wait()
        await self._revisions.loaded.wait()
        await self.queue.run()

    def _definitions(self) -> Iterator[DefinitionFacts]:
        return (each.definition for each in self._state.seen.values())

    # What changed, and which Compositions it affects

    def _saw_composition(
        self, name: str, before: SeenCompositionSpec | None, now: SeenCompositionSpec | None
    ) -> None:
        own = now is not None and now.status == self._written.get(name)
        if before is None or now is None or replace(before, status=now.status) != now:
            self.queue.add(name)
        elif not own:
            # Only the status, by somebody else: this must not end the backoff.
            self.queue.add_within(name, _REFUSED_SECONDS)

    def _saw_revision(self, name: str, before: SeenRevision | None, now: SeenRevision | None) -> None:
        for each in {each.composition for each in (before, now) if each is not None}:
            self.queue.add_within(each, _GATHERING_SECONDS)

    def _saw(self, kind: str, name: str) -> None:
        if kind == "definitions":
            group = name.partition(".")[2]
            self._settling[group] = asyncio.get_running_loop().time() + _SETTLING_SECONDS
            for each, seen in self._seen.all().items():
                if group in seen.groups:
                    self.queue.add_within(each, _GATHERING_SECONDS)

    # Gather, plan, apply

    async def _reconcile(self, name: str) -> None:
        if wait := self._judging.wait(name):
            self.queue.add_within(name, wait)
            return
        try:
            found = await get_composition(self._client, name)
        except ApiError as error:
            if error.code != 403:
                raise
            await self._cannot_read(name, error)
            return
        if found is None:
            self._judging.forget(name)
            self._written.pop(name, None)
            self._unlike.pop(name, None)
            await self._collector.collect(name, None, self._own(name))
            if self._own(name):
                # A composite may leave one at any time.
                self.queue.add_within(name, _AGAIN_SECONDS)
            return
        composition = Composition.model_validate(found)
        failure: ApiError | Unreachable | None = None
        try:
            valid = await self._judging.of(composition, found["spec"])
        except (ApiError, Unreachable) as error:
            valid, failure = Verdict(reasons.NOT_READ, f"{reasons.NOT_READ.meaning} {error}"), error
        problem, passing = "", False
        if valid.reason.status == "True" and composition.metadata.deletion_timestamp is None:
            problem, passing = await self._make_revision(content_of(found), composition.status.revision)
        facts = CompositionFacts(valid, *self._newest(name), problem, passing)
        limit = composition.spec.revision_history_limit
        status = await self._write_status(composition, replace(facts, kept=self._kept(composition)))
        if failure is not None:
            raise failure
        self.queue.add_within(name, self._pause(composition, valid, problem))
        # Not before the status: a look at all composites takes its time.
        await self._collector.collect(name, limit, self._own(name))
        written = composition.model_copy(update={"status": status})
        await self._write_status(written, replace(facts, kept=self._kept(composition)))

    def _kept(self, composition: Composition) -> str:
        """Why revisions that nobody needs cannot be deleted; empty if nothing is known to be in the way."""
        kept = self._collector.kept(composition.metadata.name)
        # A process that starts must not say until its first look that nothing is in the way.
        return kept_before(composition) if kept is None else kept

    async def _cannot_read(self, name: str, error: ApiError) -> None:
        """Say so: a Composition that may not be read can be listed, since the composer knows of it."""
        found = await list_composition(self._client, name)
        if found is not None:
            rule = own_rules(_RULE.format(Composition.plural, "get"))
            valid = Verdict(reasons.NOT_READ, f"The Composition cannot be read: {error.message}. {rule}")
            facts = CompositionFacts(valid, *self._newest(name))
            await self._write_status(Composition.model_validate(found), facts)
        self.queue.add_within(name, _REFUSED_SECONDS)

    def _newest(self, name: str) -> tuple[str, int]:
        """The name and the number of a Composition's newest revision."""
        current = newest(self._own(name))
        return (current.name, current.number) if current is not None else ("", 0)

    def _own(self, name: str) -> list[SeenRevision]:
        return [each for each in self._revisions.all().values() if each.composition == name]

    def _pause(self, composition: Composition, valid: Verdict, problem: str) -> float:
        """Seconds until the next look, if no event comes before."""
        now = asyncio.get_running_loop().time()
        if any(self._settling.get(each, 0.0) > now for each in _groups(composition)):
            return _SETTLING_SECONDS
        if problem:
            return _REFUSED_SECONDS
        if valid.reason in (reasons.KIND_MISSING, reasons.DEFINITION_MISSING):
            return _MISSING_SECONDS
        return _AGAIN_SECONDS

    async def _make_revision(self, content: CompositionContent, last: int) -> tuple[str, bool]:
        """Create the revision that is needed, if it is not there.

        Returns why it cannot be created, and whether that may pass.
        """
        before = self._unlike.get(content.composition)
        if before is not None and (left := await self._delete(before)) and before.hash == content.hash:
            return f"{before.why} {left}", False
        needed = wanted(content, self._revisions.all().values(), last)
        if not isinstance(needed, NewRevision):
            return "", False
        if before is not None and before.hash != content.hash:
            before = None
        now = asyncio.get_running_loop().time()
        if before is not None and now < before.due:
            return before.why, False
        try:
            # One with other content would lead to the next one, and so on; and composites would run by it.
            tried = await create_composition_revision(self._client, needed, dry_run=True)
            if part := changed_part(needed, tried):
                return _unlike(needed.name, part), False
            made = await create_composition_revision(self._client, needed)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.code == 409:
                # Made by a composer that was killed, or before this one's watch has shown it.
                there = await get_composition_revision(self._client, needed.name)
                if there is not None:
                    self._revisions.saw(there)
                raise
            return await self._refusal(needed.name, error), may_pass(error)
        self._writes.labels("revision").inc()
        if part := changed_part(needed, made):
            # By a webhook that does nothing in a dry run. Composites would run by what nobody wrote.
            number = before.number + 1 if before is not None else 0
            due = now + backoff(number, _REFUSED_SECONDS, _LONGEST_REFUSED_SECONDS)
            why = _unlike(needed.name, part)
            unlike = _Unlike(content.hash, why, number, due, seen_revision(made))
            self._unlike[content.composition] = unlike
            return f"{why} {await self._delete(unlike)}".strip(), False
        self._unlike.pop(content.composition, None)
        self._revisions.saw(made)
        _log.info("CompositionRevision %s was created.", needed.name)
        return "", False

    async def _delete(self, unlike: _Unlike) -> str:
        """Delete what was stored, unless that is done. Returns why it cannot be."""
        stored = unlike.stored
        if stored is None:
            return ""
        try:
            # As it is now: who changes it when it is created may do so later, too.
            there = await get_composition_revision(self._client, stored.name)
            if there is not None and there["metadata"]["uid"] == stored.uid:
                await delete_composition_revision(self._client, seen_revision(there))
        except (ApiError, Unreachable) as error:
            return f"The revision exists with that change, and cannot be deleted: {error}"
        unlike.stored = None
        return ""

    async def _refusal(self, name: str, error: ApiError | Unreachable) -> str:
        """Why a revision was not created, and what to do."""
        said = f"CompositionRevision {name} cannot be created: {error}"
        if not isinstance(error, ApiError) or error.code != 403:
            return said
        right = Right("create", GROUP, CompositionRevision.plural)
        return (
            f"{said}. {own_rules(_RULE.format(right.resource, right.verb))}"
            if await missing_rights(self._client, [right])
            else said
        )

    async def _write_status(self, composition: Composition, facts: CompositionFacts) -> CompositionStatus:
        """Write the status unless it is so already; returns it."""
        status = standing(composition, facts, self._client.now())
        if status == composition.status:
            return status
        name = composition.metadata.name
        before, now = (find_condition(each.conditions, STALLED) for each in (composition.status, status))
        self._written[name] = status
        updated = composition.model_copy(update={"status": status})
        if not await within(WRITE_SECONDS, apply_status(self._client, updated, manager=FIELD_MANAGER)):
            return status
        self._writes.labels("composition-status").inc()
        if now is not None and (before is None or before.reason != now.reason):
            _log.info("Composition %s: %s", name, now.message)
            await send_event(
                self._client,
                composition,
                "Warning",
                now.reason,
                now.message,
                instance=self._identity,
                controller=COMPOSER,
            )
        return status


def _unlike(name: str, part: str) -> str:
    return (
        f"CompositionRevision {name} cannot be created: the API server changes {part}. The CRD of "
        "CompositionRevisions may be of another release than that of Compositions, or an admission webhook "
        "changes it."
    )


def _groups(composition: Composition) -> frozenset[str]:
    own = composition.spec.composite_type_ref.api_version
    return frozenset(map(group_of, (own, *(each for each, _ in kinds_in(composition.spec)))))


def _read(found: Mapping[str, Any]) -> SeenCompositionSpec:
    composition = Composition.model_validate(found)
    metadata = composition.metadata
    return SeenCompositionSpec(
        metadata.uid or "",
        metadata.generation,
        tuple(sorted(metadata.labels.items())),
        _groups(composition),
        composition.status,
    )


def begin_compositions(context: Context) -> Coroutine[Any, Any, None]:
    """The task of the controller."""
    writes = context.metrics.composer_writes
    return Compositions(context.client, context.state, writes, identity=context.identity).run()
