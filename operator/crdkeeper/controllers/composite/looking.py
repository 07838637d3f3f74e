"""One look at one composite: what is asked for it, by which revision, and the pass that sees to it."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.resources.composed import get_object, pin_revision, set_finalizers_of
from crdkeeper.cluster.resources.composites import get_composite_definition
from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.composite.accounts import Accounts, Actor, TokensBusy
from crdkeeper.controllers.composite.compiling import CompiledRevisions
from crdkeeper.controllers.composite.external import ExternalWatches
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.news import News, token_of
from crdkeeper.controllers.composite.ownrevisions import OwnRevisions
from crdkeeper.controllers.composite.placing import Whereabouts
from crdkeeper.controllers.composite.reconciling import CompositePass
from crdkeeper.controllers.composite.refusing import NoToken
from crdkeeper.controllers.composite.relevance import GroupKind, groups_and_kinds, kinds_of_revision
from crdkeeper.controllers.composite.report import PassReport
from crdkeeper.controllers.composite.room import Share
from crdkeeper.controllers.composite.watching import ObjectWatches, seen_composite
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.composites.accounts import account_of, account_to_delete_by
from crdkeeper.core.composites.choice import Chosen, choose, deciding_revisions, used_revision
from crdkeeper.core.composites.deeds import CompositeWrite
from crdkeeper.core.composites.inventory import KindKey
from crdkeeper.core.composites.ownership import FINALIZER, Composite
from crdkeeper.core.composites.reasons import FAILED, PAUSED
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.revisions.content import SeenRevision

_FAILED_SECONDS: Final = 15.0
"""Until another look at a composite whose revision could not be compiled."""
_UNUSABLE_SECONDS: Final = 60.0
"""The same if it cannot be used: only other schemas would change that, and a CRD that changes is seen."""
_BUSY_SECONDS: Final = 1.0
"""Until another look at a composite whose account gets its token then."""
_BLIND_SECONDS: Final = 15.0
"""Until another look at a composite of which something that it makes or reads cannot be watched."""


class Looks:
    """Looks at composites, each when its turn has come."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        revisions: OwnRevisions,
        compiled: CompiledRevisions,
        objects: ObjectWatches,
        external: ExternalWatches,
        served: KindPaths,
        accounts: Accounts,
        news: News,
    ) -> None:
        self._client = client
        self._state = state
        self._revisions = revisions
        self._compiled = compiled
        self._objects = objects
        self._external = external
        self._served = served
        self._accounts = accounts
        self._news = news
        self._where = Whereabouts(objects)
        self.failures = Failures()
        self._listed: dict[str, frozenset[GroupKind]] = {}
        """By key: the kinds in its status that no revision has."""
        self._found: dict[str, frozenset[KindKey]] = {}
        """By key: the kinds of its objects that no revision has."""

    def listed(self, key: str) -> frozenset[GroupKind]:
        """The kinds in the status of a composite that no revision has."""
        return self._listed.get(key, frozenset())

    def forget(self, key: str) -> None:
        """The composite is gone."""
        self._listed.pop(key, None)
        self._found.pop(key, None)
        self._external.forget(key)

    def found_kinds(self) -> frozenset[KindKey]:
        """The kinds of composites' objects that no revision has."""
        return frozenset[KindKey]().union(*self._found.values())

    async def look(self, key: str, share: Share, report: PassReport) -> float | None:
        """Make one pass, and report it; returns in how many seconds to look again.

        Raises:
            ApiError: The API server has refused a request without which there is no pass.
            Unreachable: It cannot be reached.
        """
        name, namespace, of = key.split("\n")
        definition, seen = self._state.of(CompositeResourceDefinition).get(name), self._state.seen.get(name)
        version = seen.definition.endpoint_version if seen is not None else None
        if seen is None or version is None:
            return None
        kind = home = _kind(seen.definition, version)
        value = await get_object(self._client, kind, namespace, of)
        if value is None:
            return None
        report.composite, composite = value, Composite.of(value)
        if composite.deleting and not composite.holds:
            return None
        if _is_orphaned(definition) if definition is not None else not seen.definition_uid:
            # Left to nobody, perhaps while the finalizer was being added.
            if composite.holds:
                await self._let_go(kind, value, report)
            return None
        work = self._pass(kind, home, value, share, report, self._accounts.own)
        self._remember_listed(key, work)
        if composite.paused:
            if composite.holds or (value.get("status") or {}).get("conditions"):
                await work.say(Verdict(PAUSED, f"{PAUSED.meaning} {PAUSED.remedy}"))
            return None
        revisions = self._revisions.usable(name)
        if composite.deleting:
            served = seen.definition.served_versions
            own = choose(definition.spec, value, revisions, served) if definition is not None else None
            used = own.revision if isinstance(own, Chosen) else None
            try:
                actor, without = await self._deletes(definition, value, used)
            except TokensBusy:
                return _BUSY_SECONDS
            except NoToken as error:
                return await self._wait_for_token(work, composite, error)
            work = self._pass(kind, home, value, share, report, actor)
            wait = await self._delete(key, work, used, value, without)
            if wait is not None:
                return wait
            self._end(key, work)
            await self._watch_found(key, work)
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
            return _FAILED_SECONDS if compiled.reason is FAILED else _UNUSABLE_SECONDS
        if chosen.pin:
            value = await pin_revision(self._client, kind, value, chosen.revision.name)
            report.wrote(CompositeWrite.REVISION)
        account = account_of(chosen.revision, namespace)
        try:
            actor = await self._accounts.find(account)
        except TokensBusy:
            return _BUSY_SECONDS
        except NoToken as error:
            return await self._wait_for_token(work, composite, error)
        if value["apiVersion"] != chosen.revision.api_version:
            kind = _kind(seen.definition, chosen.revision.api_version.rpartition("/")[2])
            known = value["metadata"]["resourceVersion"]
            value = await get_object(self._client, kind, namespace, of)
            if value is None:
                return None
            if value["metadata"]["resourceVersion"] != known:
                # What was decided so far was decided of another state: it may be in deletion by now.
                return 0.0
        work = self._pass(kind, home, value, share, report, actor)
        await self._objects.keep(compiled.kinds)
        if (wait := self._objects.wait(compiled.kinds, key)) is not None:
            return wait
        doubt = self._compiled.doubt(chosen.revision)
        # What only the account may use is nothing that the composer should be given a right on.
        unwatched = await self._objects.refused(compiled.kinds) if account is None else None
        await work.reconcile(compiled, unwatched or doubt)
        self._end(key, work)
        await self._watch_found(key, work)
        external = self._external.keep(key, work.external)
        if doubt is not None or not external or self._objects.blind(compiled.kinds):
            work.again = min(work.again or _BLIND_SECONDS, _BLIND_SECONDS)
        if work.held and not await self._is_kept(definition):
            # The definition was left to nobody meanwhile, and so are its composites.
            await self._let_go(home, work.value, report)
        return work.again

    def _end(self, key: str, work: CompositePass) -> None:
        known = [*map(token_of, work.objects)]
        if not work.overtaken:
            known.append(hash(seen_composite(work.value).digest))
        self._news.end(key, known)

    def _remember_listed(self, key: str, work: CompositePass) -> None:
        known = (kinds_of_revision(each) for each in self._revisions.known(key.partition("\n")[0]))
        listed = groups_and_kinds(work.listed_kinds()).difference(*known)
        self._listed.pop(key, None)
        if listed:
            self._listed[key] = listed

    async def _watch_found(self, key: str, work: CompositePass) -> None:
        """Watch what is the composite's, also if no revision has it: not what its status only says."""
        kinds = work.found_kinds()
        await self._objects.keep(kinds)
        self._found.pop(key, None)
        if more := kinds.difference(*(each.made for each in self._revisions.known(key.partition("\n")[0]))):
            self._found[key] = more

    async def _wait_for_token(
        self, work: CompositePass, composite: Composite, error: NoToken
    ) -> float | None:
        await work.say(error.verdict)
        # Like a kind that is missing, it is what many composites may wait for.
        return self.failures.waits_for(composite, [(error.verdict.reason.name, str(error))])

    async def _let_go(self, kind: ServedKind, value: Mapping[str, Any], report: PassReport) -> None:
        left = [each for each in value["metadata"].get("finalizers") or () if each != FINALIZER]
        await set_finalizers_of(self._client, kind, value, left)
        report.wrote(CompositeWrite.FINALIZER)

    async def _delete(
        self,
        key: str,
        work: CompositePass,
        chosen: SeenRevision | None,
        value: dict[str, Any],
        without: NoToken | None,
    ) -> float | None:
        """Returns in how many seconds to begin, if that has to wait."""
        revisions = self._revisions.known(key.partition("\n")[0])
        kinds = frozenset[KindKey]().union(*(each.made for each in revisions))
        await self._objects.keep(kinds)
        if (wait := self._objects.wait(kinds, key)) is not None:
            return wait
        deciding = deciding_revisions(revisions, chosen)
        keeps = {name: each.keeps[name] for name, each in deciding.items()}
        waves = partial(self._compiled.waves, deciding, namespaced="namespace" in value["metadata"])
        own = chosen.keeps if chosen is not None else {}
        await work.delete(sorted(kinds), keeps, waves, own, used_revision(value), without)
        return None

    async def _deletes(
        self,
        definition: CompositeResourceDefinition | None,
        value: Mapping[str, Any],
        chosen: SeenRevision | None,
    ) -> tuple[Actor, NoToken | None]:
        """Who deletes the objects; and why that is the composer in place of an account.

        Raises NoToken and TokensBusy.
        """
        own = self._accounts.own
        if definition is None:
            return own, None
        enforced = definition.spec.enforced_composition_ref
        account = account_to_delete_by(
            chosen,
            self._revisions.known(definition.metadata.name),
            used_revision(value),
            enforced.name if enforced is not None else "",
            value["metadata"].get("namespace", ""),
        )
        try:
            return await self._accounts.find(account), None
        except NoToken as error:
            if not error.gone:
                raise
            return own, error

    async def _is_kept(self, definition: CompositeResourceDefinition) -> bool:
        found = await get_composite_definition(self._client, definition.metadata.name)
        if found is None or found["metadata"]["uid"] != definition.metadata.uid:
            return False
        return not _is_orphaned(CompositeResourceDefinition.model_validate(found))

    def _pass(
        self,
        kind: ServedKind,
        home: ServedKind,
        value: dict[str, Any],
        share: Share,
        report: PassReport,
        actor: Actor,
    ) -> CompositePass:
        known = self._served, self.failures, share, actor
        return CompositePass(self._client, *known, kind, home, value, report, self._where)


def _kind(crd: DefinitionFacts, version: str) -> ServedKind:
    return ServedKind(f"{crd.group}/{version}", crd.kind, crd.plural, crd.namespaced)


def _is_orphaned(definition: CompositeResourceDefinition) -> bool:
    return definition.metadata.deletion_timestamp is not None and definition.spec.deletion == "Orphan"
