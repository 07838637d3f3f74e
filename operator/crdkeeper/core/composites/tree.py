"""A composite as a tree for people: its resources in order, their objects, and what each of them waits for.

`crdkeeper compose trace -o json` prints it. As in an API, fields are only ever added to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from crdkeeper.api.composite import ComposedResource
from crdkeeper.api.meta import READY, ApiModel, Condition
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.inventory import Entry
from crdkeeper.core.composites.ownership import Composite, controller_of, outlives
from crdkeeper.core.composites.plan import CompositePlan, FoundObjects
from crdkeeper.core.composites.standing import PassOutcome, readiness_of, why_not_ready
from crdkeeper.core.templates.kinds import group_of
from crdkeeper.core.templates.namespaces import Identity
from crdkeeper.core.templates.rendered import ObjectReadiness, RenderedResource, ResourceState


class TracedState(StrEnum):
    """What is known of an object."""

    READY = "Ready"
    NOT_READY = "NotReady"
    MISSING = "Missing"
    """It does not exist."""
    TO_DELETE = "ToDelete"
    """It has to go, or to be left to nobody, and nothing has happened to it yet."""
    DELETING = "Deleting"
    """It has a deletionTimestamp."""
    NOT_OURS = "NotOurs"
    """It exists, and is not the composite's."""
    READ = "Read"
    """An externalRef reads it."""
    UNKNOWN = "Unknown"
    """It cannot be read, so it may or may not exist."""


class TracedObject(ApiModel):
    """One object of a composite."""

    api_version: str
    kind: str
    namespace: str | None = None
    name: str
    state: TracedState
    message: str | None = None
    """Why it is not ready."""
    deletion_timestamp: str | None = None
    finalizers: Annotated[list[str], Field(default_factory=list)]
    """Of an object in deletion: what it waits for."""
    deletion: Literal["Orphan"] | None = None
    """Orphan for an object that stays when the composite goes."""
    composite: "TracedComposite | None" = None
    """What it is composed of, if it is a composite itself."""

    @property
    def identity(self) -> Identity:
        """What tells it from all others."""
        return Identity(group_of(self.api_version), self.kind, self.namespace or "", self.name)


class TracedResource(ApiModel):
    """A resource of the Composition."""

    name: str
    wave: int = 0
    state: Literal["Rendered", "Read", "Waiting", "Pending", "Excluded", "Failed", "GivenUp", "Listed"]
    """GivenUp: the revision does not have it any more. Listed: it is not known what the revision says."""
    message: str | None = None
    """What it waits for, why it is excluded, or how it failed."""
    objects: Annotated[list[TracedObject], Field(default_factory=list)]


class TracedComposite(ApiModel):
    """A composite with all that is known of its objects."""

    api_version: str
    kind: str
    namespace: str | None = None
    name: str
    composition: str | None = None
    revision: str | None = None
    """By which it runs."""
    paused: bool = False
    deletion_timestamp: str | None = None
    finalizers: Annotated[list[str], Field(default_factory=list)]
    """Of a composite in deletion: what it waits for."""
    stale: bool = False
    """Whether the conditions are about an older generation of the composite."""
    conditions: Annotated[list[Condition], Field(default_factory=list)]
    resources: Annotated[list[TracedResource], Field(default_factory=list)]
    remarks: Annotated[list[str], Field(default_factory=list)]
    """What could not be found out, and why."""

    def nested(self) -> Iterator["TracedComposite"]:
        """This one, and all below it."""
        yield self
        for resource in self.resources:
            for each in resource.objects:
                if each.composite is not None:
                    yield from each.composite.nested()

    @property
    def complete(self) -> bool:
        """Whether everything could be found out."""
        return not any(
            node.remarks
            or any(each.state is TracedState.UNKNOWN for part in node.resources for each in part.objects)
            for node in self.nested()
        )

    @property
    def ready(self) -> bool:
        """Whether all composites of the tree are ready, as they say themselves."""
        return all(
            node.deletion_timestamp is None
            and not node.stale
            and any(each.type == READY and each.status == "True" for each in node.conditions)
            for node in self.nested()
        )


def traced(
    value: Mapping[str, Any], composition: str, outcome: PassOutcome | None, remarks: Sequence[str]
) -> TracedComposite:
    """The tree of one composite, without what its objects are composed of."""
    composite = Composite.of(value)
    metadata, status = value["metadata"], value.get("status")
    of = status if isinstance(status, Mapping) else {}
    state = of.get("crdkeeper") if isinstance(of.get("crdkeeper"), Mapping) else {}
    revision = state.get("revision") if isinstance(state, Mapping) else None
    listed = _listed(state)
    return TracedComposite(
        api_version=composite.api_version,
        kind=composite.kind,
        namespace=composite.namespace or None,
        name=composite.name,
        composition=composition or None,
        revision=revision if isinstance(revision, str) else None,
        paused=composite.paused,
        deletion_timestamp=metadata.get("deletionTimestamp"),
        finalizers=list(composite.finalizers) if composite.deleting else [],
        stale=of.get("observedGeneration") != composite.generation,
        conditions=_conditions(of.get("conditions")),
        resources=_Resources(composite, outcome, listed).result() if outcome is not None else [],
        remarks=list(remarks),
    )


def is_composite(live: Mapping[str, Any]) -> bool:
    """Whether an object says that it is composed of others. Who follows it has to bound how far."""
    status = live.get("status")
    return isinstance(status, Mapping) and isinstance(status.get("crdkeeper"), Mapping)


class _Resources:
    def __init__(
        self, composite: Composite, outcome: PassOutcome, listed: Mapping[Identity, ComposedResource]
    ) -> None:
        self._composite = composite
        self._found: FoundObjects = outcome.found
        self._plan: CompositePlan = outcome.plan or CompositePlan()
        self._rendered: Sequence[RenderedResource] | None = (
            outcome.rendering.resources if outcome.rendering is not None else None
        )
        self._readiness: Mapping[Identity, ObjectReadiness] = readiness_of(outcome.rendering)
        self._listed = listed
        self._leaving = {each.identity for each in self._plan.leaving}

    def result(self) -> list[TracedResource]:
        """All of them, those that the revision has first, in its order."""
        objects: dict[str, dict[Identity, TracedObject]] = {}
        waves: dict[str, int] = {}
        for entry in self._plan.inventory:
            objects.setdefault(entry.resource, {})[entry.identity] = self._object(entry)
            waves.setdefault(entry.resource, entry.wave)
        for identity, each in self._listed.items():
            if identity in self._found.strangers and identity not in objects.get(each.name, {}):
                objects.setdefault(each.name, {})[identity] = self._stranger(
                    each.object.api_version, identity
                )
                waves.setdefault(each.name, each.wave)
        made = [self._resource(each, objects.pop(each.name, {})) for each in self._rendered or ()]
        state: Literal["Listed", "GivenUp"] = "Listed" if self._rendered is None else "GivenUp"
        made += [
            TracedResource(
                name=name,
                wave=waves[name],
                state=state,
                message=self._said(name),
                objects=list(left.values()),
            )
            for name, left in objects.items()
        ]
        return made

    def _resource(self, rendered: RenderedResource, known: dict[Identity, TracedObject]) -> TracedResource:
        read = rendered.state is ResourceState.READ
        for each in rendered.objects:
            if each.value is None:
                external = self._external(rendered.api_version, each.identity)
                if external is not None:
                    known[each.identity] = external
            elif each.identity not in known:
                known[each.identity] = self._stranger(each.value["apiVersion"], each.identity)
        said = {
            ResourceState.WAITING: f"waits for {rendered.why}",
            ResourceState.PENDING: f"includeWhen waits for {rendered.why}",
            ResourceState.EXCLUDED: rendered.why,
        }.get(rendered.state)
        return TracedResource.model_validate(
            {
                "name": rendered.name,
                "wave": rendered.wave,
                "state": rendered.state.value.capitalize(),
                "message": said or (rendered.unready if read else self._said(rendered.name)),
                "objects": list(known.values()),
            }
        )

    def _external(self, api_version: str, identity: Identity) -> TracedObject | None:
        """What an externalRef reads; None if there is none, which the resource itself waits for."""
        live = self._found.external.get(identity)
        if live is not None:
            return _of(identity, live["apiVersion"], TracedState.READ)
        unread = self._found.unread.get(identity)
        if unread is not None:
            return _of(identity, api_version, TracedState.UNKNOWN, unread.message)
        return self._stranger(api_version, identity) if identity[:2] in self._found.unreadable else None

    def _said(self, name: str) -> str | None:
        problem = self._plan.problems.get(name)
        return problem.message if problem is not None else None

    def _object(self, entry: Entry) -> TracedObject:
        identity = entry.identity
        live = self._found.objects.get(identity)
        if live is None:
            return self._absent(entry)
        metadata = live["metadata"]
        why = why_not_ready(entry, live, self._readiness, self._plan)
        # Without a rendering, all that there is would seem to have to go.
        leaves = identity in self._leaving and (self._composite.deleting or self._rendered is not None)
        state = TracedState.NOT_READY if why else TracedState.READY
        if "deletionTimestamp" in metadata:
            state = TracedState.DELETING
        elif leaves:
            state = TracedState.TO_DELETE
            why = self._plan.held.get(identity, "")
        found = _of(identity, entry.api_version, state, why)
        found.deletion = "Orphan" if entry.orphan or outlives(live) else None
        if state is TracedState.DELETING:
            found.deletion_timestamp = str(metadata["deletionTimestamp"])
            found.finalizers = [str(each) for each in metadata.get("finalizers") or ()]
        return found

    def _absent(self, entry: Entry) -> TracedObject:
        identity = entry.identity
        if identity in self._found.absent:
            known = self._listed.get(identity)
            said = known.message if known is not None else None
            return _of(identity, entry.api_version, TracedState.MISSING, said or "it does not exist")
        return self._stranger(entry.api_version, identity)

    def _stranger(self, api_version: str, identity: Identity) -> TracedObject:
        """An object that is not the composite's, as far as that is known."""
        unreadable = self._found.unreadable.get(identity[:2])
        if unreadable is not None:
            missing = unreadable.reason is reasons.KIND_MISSING
            state = TracedState.MISSING if missing else TracedState.UNKNOWN
            return _of(identity, api_version, state, unreadable.message)
        live = self._found.strangers.get(identity)
        if live is not None:
            whose = controller_of(live)
            said = f"it belongs to {whose}" if whose else "it is not the composite's"
            return _of(identity, api_version, TracedState.NOT_OURS, said)
        return _of(identity, api_version, TracedState.MISSING, "it does not exist")


def _of(identity: Identity, api_version: str, state: TracedState, message: str = "") -> TracedObject:
    return TracedObject(
        api_version=api_version,
        kind=identity.kind,
        namespace=identity.namespace or None,
        name=identity.name,
        state=state,
        message=message or None,
        finalizers=[],
    )


def _listed(state: Any) -> dict[Identity, ComposedResource]:
    """What the status says of objects; others may have written it."""
    found: dict[Identity, ComposedResource] = {}
    resources = state.get("resources") if isinstance(state, Mapping) else None
    for each in resources if isinstance(resources, list) else ():
        try:
            read = ComposedResource.model_validate(each)
        except ValueError:
            continue
        at = read.object
        found[Identity(group_of(at.api_version), at.kind, at.namespace or "", at.name)] = read
    return found


def _conditions(listed: Any) -> list[Condition]:
    found = []
    for each in listed if isinstance(listed, list) else ():
        try:
            found.append(Condition.model_validate(each))
        except ValueError:
            continue
    return found
