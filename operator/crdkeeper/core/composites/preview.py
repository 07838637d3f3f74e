"""What a Composition would change in one composite, from a pass whose writes were dry runs."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from crdkeeper.api.meta import ApiModel
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.deeds import CompositeWrite
from crdkeeper.core.composites.difference import FieldChange, differences
from crdkeeper.core.composites.ownership import Composite, resource_of
from crdkeeper.core.composites.standing import PassOutcome
from crdkeeper.core.templates.namespaces import Identity
from crdkeeper.core.templates.rendered import ResourceState
from crdkeeper.core.templates.statusgap import StatusGapKind

MOST_FIELDS: Final = 100
"""Of one object that are listed."""

Change = Literal[
    "Created", "Changed", "Recreated", "Deleted", "Released", "Refused", "Waiting", "Held", "Unknown"
]
"""Held: it stays until something else has happened. Unknown: it could not be tried."""
_UNTRIED: Final = (reasons.FAILED, reasons.RIGHT_MISSING)


class PreviewedObject(ApiModel):
    """An object that would change, or a resource of which nothing can be said."""

    resource: str
    change: Change
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    message: str | None = None
    fields: Annotated[list[FieldChange], Field(default_factory=list)]
    more_fields: int = 0
    """How many are not listed."""


class PreviewedComposite(ApiModel):
    """What would become of a composite."""

    namespace: str | None = None
    name: str
    before: str | None = None
    """The CompositionRevision by which it runs now."""
    message: str | None = None
    """Why nothing would happen, or nothing can be said."""
    unchanged: int = 0
    """Objects that would stay as they are."""
    objects: Annotated[list[PreviewedObject], Field(default_factory=list)]

    @property
    def counts(self) -> "Counter[Change]":
        """How many objects of each change."""
        return Counter(each.change for each in self.objects)


@dataclass(slots=True)
class TriedWrite:
    """What a dry run has answered about one object."""

    before: Mapping[str, Any] | None = None
    """As it is; None if it does not exist."""
    after: Mapping[str, Any] | None = None
    """As it would be; None if it would be gone."""


def previewed(
    composite: Composite,
    before: str,
    outcome: PassOutcome | None,
    deeds: Sequence[tuple[CompositeWrite, Identity]],
    tried: Mapping[Identity, TriedWrite],
    copying: Collection[str],
) -> PreviewedComposite:
    """The result for one composite that was tried; `copying` are resources that may copy Secrets' values."""
    made = PreviewedComposite(
        namespace=composite.namespace or None, name=composite.name, before=before or None, objects=[]
    )
    plan = outcome.plan if outcome is not None else None
    if outcome is None or plan is None:
        obstacle = outcome.obstacle if outcome is not None else None
        said = obstacle.message if obstacle is not None else "It could not be tried."
        made.objects.append(PreviewedObject(resource="", change="Unknown", message=said, fields=[]))
        return made
    names = {
        str(each.after["metadata"].get("uid")): f"(uid of {identity})"
        for identity, each in tried.items()
        if each.before is None and each.after is not None
    }
    done = _by_identity(deeds)
    # Not by the objects' labels, which webhooks can change.
    open_ = {
        each.identity
        for resource in (outcome.rendering.resources if outcome.rendering is not None else ())
        for each in resource.objects
        if resource.name not in copying
    }
    for identity, writes in done.items():
        known = tried.get(identity, TriedWrite())
        found = _object(identity, writes, known, names, copies_secrets=identity not in open_)
        if found is not None:
            made.objects.append(found)
    for name, verdict in plan.problems.items():
        change: Change = "Unknown" if verdict.reason in _UNTRIED else "Refused"
        made.objects.append(PreviewedObject(resource=name, change=change, message=verdict.message, fields=[]))
    for gap in outcome.gaps:
        if gap.kind is StatusGapKind.FAILED:
            said = f"{str(gap.path).removeprefix('spec.')}: {gap.text}"
            made.objects.append(PreviewedObject(resource="", change="Refused", message=said, fields=[]))
    for identity, why in plan.held.items():
        made.objects.append(_named(identity, "", "Held", why))
    left = [each for each in plan.leaving if each.identity not in done and each.identity not in plan.held]
    going = {key for key, each in outcome.found.objects.items() if "deletionTimestamp" in each["metadata"]}
    for entry in left:
        why = "it is being deleted already" if entry.identity in going else "it is deleted after the rest"
        made.objects.append(_named(entry.identity, entry.resource, "Held", why))
    if plan.applies:
        said = f"{len(plan.applies):,} objects could not be tried in the time that there is."
        made.objects.append(PreviewedObject(resource="", change="Unknown", message=said, fields=[]))
    for each in outcome.rendering.resources if outcome.rendering is not None else ():
        if each.state in (ResourceState.WAITING, ResourceState.PENDING):
            what = "includeWhen waits" if each.state is ResourceState.PENDING else "waits"
            said = f"{what} for {each.why}"
            made.objects.append(
                PreviewedObject(resource=each.name, change="Waiting", message=said, fields=[])
            )
    told = {(each.kind, each.namespace, each.name) for each in made.objects}
    made.unchanged = sum(
        (key.kind, key.namespace or None, key.name) not in told for key in outcome.found.objects
    )
    return made


def _by_identity(
    deeds: Sequence[tuple[CompositeWrite, Identity]],
) -> dict[Identity, list[CompositeWrite]]:
    found: dict[Identity, list[CompositeWrite]] = {}
    for write, identity in deeds:
        found.setdefault(identity, []).append(write)
    return found


def _object(
    identity: Identity,
    writes: Sequence[CompositeWrite],
    tried: TriedWrite,
    names: Mapping[str, str],
    *,
    copies_secrets: bool,
) -> PreviewedObject | None:
    """What would become of an object; None if nothing that people would see."""
    resource = resource_of(tried.after or tried.before or {"metadata": {}})
    if CompositeWrite.RELEASED in writes:
        return _named(
            identity, resource_of(tried.before or {"metadata": {}}), "Released", "it belongs to nobody"
        )
    change: Change = "Changed"
    if CompositeWrite.DELETED in writes:
        change = "Recreated" if CompositeWrite.CREATED in writes else "Deleted"
    elif CompositeWrite.CREATED in writes:
        change = "Created"
    found = _named(identity, resource, change, None)
    if tried.after is None or change == "Deleted":
        return found
    found_fields = differences(tried.before, tried.after, names, copies_secrets=copies_secrets)
    # What can only be created once it is deleted, the API server has not completed: it lacks defaults.
    fields = (each for each in found_fields if each.after is not None or change != "Recreated")
    found.fields = list(islice(fields, MOST_FIELDS))
    found.more_fields = sum(1 for _ in fields)
    return found if found.fields or change != "Changed" else None


def _named(identity: Identity, resource: str, change: Change, message: str | None) -> PreviewedObject:
    return PreviewedObject(
        resource=resource,
        change=change,
        kind=identity.kind,
        namespace=identity.namespace or None,
        name=identity.name,
        message=message,
        fields=[],
    )
