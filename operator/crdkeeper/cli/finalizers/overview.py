"""Objects that finalizers hold in deletion, as records: `crdkeeper finalizers -o json` prints them.

As in an API, fields are only ever added to them.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from crdkeeper.api.meta import ApiModel, Time
from crdkeeper.core.finalizers.holding import Held
from crdkeeper.core.finalizers.listing import HeldList
from crdkeeper.core.finalizers.rule import decide
from crdkeeper.core.finalizers.tally import NamedFinalizer


class PlannedRelease(ApiModel):
    """What the DefinitionPolicy that governs the CRD will do about a finalizer that it names."""

    policy: str
    mode: Literal["Plan", "Automatic"]
    state: Literal["waiting", "written", "due"]
    """As in the status of the policy."""
    due_time: Time
    """When it is due, if nobody writes the object."""
    when: str = ""
    """The condition that the object must meet then; empty without one."""


class HeldFinalizer(ApiModel):
    """A finalizer of an object."""

    name: str
    release: PlannedRelease | None = None
    """None if the policy does not name it."""


class HeldObject(ApiModel):
    """An object in deletion."""

    namespace: str
    """Empty for a cluster-scoped object."""
    name: str
    uid: str
    deletion_timestamp: Time
    finalizers: list[HeldFinalizer]
    last_written_time: Time | None = None
    """The newest time in managedFields; none if there is none."""
    last_writer: str = ""
    """The manager of that time."""


class HeldObjectList(ApiModel):
    """The output of `crdkeeper finalizers -o json` and `-o yaml`."""

    api_version: Literal["cli.crdkeeper.dev/v1alpha1"] = "cli.crdkeeper.dev/v1alpha1"
    kind: Literal["HeldObjectList"] = "HeldObjectList"
    resource: str
    """The CRD, as PLURAL.GROUP."""
    total: int
    """How many objects are held; more than there are items if there are too many to list."""
    items: Annotated[list[HeldObject], Field(default_factory=list)]


def held_objects(
    resource: str, listed: HeldList, policy: str, rules: Sequence[NamedFinalizer], now: datetime
) -> HeldObjectList:
    """One record for each object that was listed. `policy` governs the CRD, with these rules."""
    by_name = {each.name: each for each in rules}

    def finalizer(found: Held, name: str) -> HeldFinalizer:
        rule = by_name.get(name)
        if rule is None:
            return HeldFinalizer(name=name)
        decision = decide(found, rule.after, now)
        release = PlannedRelease(
            policy=policy,
            mode="Automatic" if rule.automatic else "Plan",
            state=decision.release.value,
            due_time=decision.due,
            when=rule.when,
        )
        return HeldFinalizer(name=name, release=release)

    records = [
        HeldObject(
            namespace=each.namespace,
            name=each.name,
            uid=each.uid,
            deletion_timestamp=each.since,
            finalizers=[finalizer(each, name) for name in each.finalizers],
            last_written_time=each.written,
            last_writer=each.writer,
        )
        for each in listed.objects
    ]
    return HeldObjectList(resource=resource, total=listed.total, items=records)
