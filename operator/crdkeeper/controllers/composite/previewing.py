"""Tries a Composition on the composites that would run by it, with the rights of whoever asks."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.composition import Composition, CompositionSpec
from crdkeeper.api.compositionrevision import CompositionRevision
from crdkeeper.api.meta import GROUP
from crdkeeper.apiserver.definitions.facts import definition_facts
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.composed import get_object
from crdkeeper.cluster.resources.composites import get_composite_definition
from crdkeeper.cluster.resources.compositions import get_composition, list_revisions
from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.boundedpages import PageSize, bounded_page
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.composite.accounts import Actor
from crdkeeper.controllers.composite.compiling import Compiled, compiled_by
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.inspecting import AskersRights
from crdkeeper.controllers.composite.reconciling import CompositePass
from crdkeeper.controllers.composite.report import PassReport
from crdkeeper.controllers.composite.room import ObjectMemory
from crdkeeper.controllers.composite.trying import TrialClient
from crdkeeper.core.composites.choice import Chosen, choose
from crdkeeper.core.composites.ownership import Composite
from crdkeeper.core.composites.preview import PreviewedComposite, PreviewedObject, previewed
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.revisions import reasons
from crdkeeper.core.revisions.content import NewRevision, SeenRevision, content_of, seen_revision, wanted
from crdkeeper.core.revisions.retention import running_by
from crdkeeper.core.revisions.standing import judged
from crdkeeper.core.templates.compilation import compile_composition, kinds_in
from crdkeeper.core.templates.compiled import CompilationResult, copying_secrets
from crdkeeper.core.templates.kinds import KnownKinds, TargetKind
from crdkeeper.operations.composition.targets import TargetKinds
from crdkeeper.operations.rights import DEFINITIONS, explained

_AT_ONCE: Final = 4
_FIRST_PAGE: Final = 20
_PAGE: Final = 100
_WANTED_BYTES: Final = 1 << 20
_PAGE_BYTES: Final = 16 << 20
_PAGE_SECONDS: Final = 30.0
_VERBS: Final = ("get", "list", "create", "patch", "delete")


class NotPreviewed(Exception):
    """A Composition cannot be tried; the text says why."""


@dataclass(slots=True)
class CompositionTrial:
    """A Composition that is to be tried."""

    kind: ServedKind
    """Of the composites, at its version."""
    definition: CompositeResourceDefinition
    served: Collection[str]
    revisions: Sequence[SeenRevision]
    """Those that exist."""
    revision: SeenRevision
    """The one that it would have, or has."""
    new: bool
    compiled: Compiled

    def chosen(self, value: Mapping[str, Any]) -> bool | str:
        """Whether a composite would run by it; why it would run by none, if it does by one now."""
        spec = self.definition.spec
        after = choose(
            spec, value, [*self.revisions, self.revision] if self.new else self.revisions, self.served
        )
        if isinstance(after, Chosen):
            return after.revision.uid == self.revision.uid
        before = choose(spec, value, self.revisions, self.served)
        return after.message if isinstance(before, Chosen) else False


@dataclass(slots=True)
class Rejected:
    """A Composition that would have no revision."""

    result: CompilationResult
    verdict: Verdict


async def prepare(
    client: Client, value: Mapping[str, Any], spec: CompositionSpec
) -> CompositionTrial | Rejected:
    """Compile a Composition by the schemas of the cluster.

    Raises ApiError, NotPermitted, Unreachable and NotPreviewed.
    """
    own = spec.composite_type_ref.api_version, spec.composite_type_ref.kind
    targets = TargetKinds(client, tuple)
    async with explained(client, [Right("get", *DEFINITIONS)]):
        served = await targets.find((own, *kinds_in(spec)))
    crd = served.crds.get(own)
    if crd is None or not served.belongs_to_definition(own):
        said = f"No CompositeResourceDefinition serves {own[1]} of {own[0]}."
        raise NotPreviewed(f"{said} {reasons.DEFINITION_MISSING.remedy}")
    facts, name = definition_facts(crd), value["metadata"]["name"]
    needed = [
        Right("get", GROUP, CompositeResourceDefinition.plural, name=facts.name),
        Right("get", GROUP, Composition.plural, name=name),
        Right("list", GROUP, CompositionRevision.plural),
    ]
    async with explained(client, needed):
        found = await get_composite_definition(client, facts.name)
        live = await get_composition(client, name)
        revisions = await list_revisions(client)
    if found is None:
        raise NotPreviewed(f"There is no CompositeResourceDefinition {facts.name}.")
    kinds: KnownKinds = await targets.read(served)
    result = await asyncio.to_thread(compile_composition, spec, kinds.get(own, TargetKind(None, None)), kinds)
    verdict = judged(result, kinds_in(spec) - kinds.keys())
    if verdict.reason is not reasons.VALID_ALL:
        return Rejected(result, verdict)
    if live is not None and live["spec"].get("compositeTypeRef") != value["spec"].get("compositeTypeRef"):
        raise NotPreviewed("spec.compositeTypeRef is immutable: give the Composition another name.")
    last = int(((live or {}).get("status") or {}).get("revision") or 0)
    content = content_of({"metadata": value["metadata"], "spec": value["spec"]})
    revision = wanted(content, revisions, last)
    new = isinstance(revision, NewRevision)
    seen = _would_be(revision) if isinstance(revision, NewRevision) else revision
    compiled = await asyncio.to_thread(compiled_by, seen, spec, kinds)
    if isinstance(compiled, Verdict):
        raise NotPreviewed(compiled.message)
    kind = ServedKind(own[0], own[1], facts.plural, facts.namespaced)
    definition = CompositeResourceDefinition.model_validate(found)
    return CompositionTrial(kind, definition, facts.served_versions, revisions, seen, new, compiled)


def _would_be(revision: NewRevision) -> SeenRevision:
    value = revision.to_object()
    return seen_revision(
        {**value, "metadata": {**value["metadata"], "uid": "preview", "resourceVersion": ""}}
    )


class Preview:
    """Tries one Composition on composites, a few at once."""

    def __init__(self, client: Client, trial: CompositionTrial) -> None:
        self._client = client
        self._trial = trial
        self._served = KindPaths(client)
        self._rights = AskersRights(client)
        self._memory = ObjectMemory()
        self.others = 0
        """Composites that run by another revision, also then."""

    async def of_all(self, selector: str, limit: int) -> AsyncGenerator[PreviewedComposite, None]:
        """All composites that would run by it, in pages. Raises ApiError, NotPermitted and Unreachable."""
        left = limit or -1
        async with aclosing(self._pages(selector)) as pages:
            async for page in pages:
                concerned = [each for each in page if self._concerns(each)]
                if left >= 0:
                    concerned = concerned[:left]
                    left -= len(concerned)
                for begin in range(0, len(concerned), _AT_ONCE):
                    some = concerned[begin : begin + _AT_ONCE]
                    for done in await asyncio.gather(*(self._try(each) for each in some)):
                        yield done
                if left == 0:
                    return

    async def of(self, namespace: str, name: str) -> PreviewedComposite:
        """One composite. Raises ApiError, NotPermitted and Unreachable, and NotPreviewed if there is none."""
        kind = self._trial.kind
        shown = f"{namespace}/{name}" if namespace else name
        needed = [Right("get", kind.group, kind.plural, name=name, namespace=namespace)]
        async with explained(self._client, needed):
            value = await get_object(self._client, kind, namespace, name)
        if value is None:
            raise NotPreviewed(f"There is no {kind.kind} {shown}.")
        if not self._concerns(value):
            raise NotPreviewed(f"{kind.kind} {shown} would not run by this Composition.")
        return await self._try(value)

    def _concerns(self, value: Mapping[str, Any]) -> bool:
        concerned = bool(self._trial.chosen(value))
        self.others += not concerned
        return concerned

    async def _pages(self, selector: str) -> AsyncGenerator[list[dict[str, Any]], None]:
        kind, token = self._trial.kind, ""
        size = PageSize(_FIRST_PAGE, _PAGE, _WANTED_BYTES, _PAGE_BYTES, _PAGE_SECONDS)
        while True:
            async with explained(self._client, [Right("list", kind.group, kind.plural)]):
                body = await bounded_page(
                    self._client, kind.path(), token, size, selector=quote(selector, safe="")
                )
            items = body["items"] or []
            size.fit(items)
            yield [{**each, "apiVersion": kind.api_version, "kind": kind.kind} for each in items]
            token = str(body["metadata"].get("continue") or "")
            if not token:
                return

    async def _try(self, value: dict[str, Any]) -> PreviewedComposite:
        composite, trial = Composite.of(value), self._trial
        before = running_by(value)
        none = PreviewedComposite(
            namespace=composite.namespace or None, name=composite.name, before=before or None, objects=[]
        )
        if composite.deleting or composite.paused:
            none.message = "it is being deleted" if composite.deleting else "it is paused: nothing changes"
            return none
        chosen = trial.chosen(value)
        if isinstance(chosen, str):
            none.objects = [PreviewedObject(resource="", change="Refused", message=chosen, fields=[])]
            return none
        client = TrialClient(self._client, value, trial.kind)
        share, report = self._memory.share(composite.uid), PassReport()
        actor = Actor(client, self._rights)
        work = CompositePass(
            client, self._served, Failures(), share, actor, trial.kind, trial.kind, value, report
        )
        try:
            await work.reconcile(trial.compiled)
        except (ApiError, Unreachable) as error:
            none.objects = [PreviewedObject(resource="", change="Unknown", message=str(error), fields=[])]
            return none
        finally:
            share.end()
        copying = copying_secrets(trial.compiled.composition.resources)
        result = previewed(composite, before, work.outcome, report.objects, client.tried, copying)
        for each in result.objects:
            remedy = self._rights.remedy(each.message or "", *_VERBS)
            if remedy:
                each.change, each.message = "Unknown", f"{(each.message or '').rstrip('.')}. {remedy}"
        return result
