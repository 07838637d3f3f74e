"""What a cluster shows of the use of a version: who writes it, who reads it, and what a step would break.

Names and messages in it come from strangers: bounded here, and escaped where they are printed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

SHOWN: Final = 50
"""Writers that the evidence lists; the others are only counted."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The entries of one manager in managedFields that name the version, in the objects of one namespace."""

    manager: str
    operation: str
    """Apply or Update."""
    subresource: str
    namespace: str
    """Of the objects; empty if they are in none."""
    objects: int
    """How many objects have such an entry."""
    last: datetime | None
    """The time of the newest entry, one in the future as when it was counted; None if no entry has a time."""
    examples: tuple[str, ...] = ()
    """The first few objects, as `namespace/name` or `name`."""
    ahead: str = ""
    """The time of an entry in the future, `of` the object that has it; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The requests at the version that one API server has counted since it started."""

    server: str
    """The address that it advertises, which several may share; empty if it says none."""
    what: str
    """The requests, such as `12 x LIST, 1 open WATCH`."""
    since: datetime | None
    """When that API server started."""
    message: str
    """A full sentence for a status."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The requests by verb, so that two looks can be compared."""


@dataclass(frozen=True, slots=True)
class Applier:
    """Somebody who applies the CRD, and so may put the version back."""

    tool: str
    """Helm, Argo CD, Flux and so on; empty for another."""
    manager: str
    """The field manager; empty if only labels or annotations show the owner."""
    detail: str
    """What shows it, and where the change belongs."""


Whose = Literal["client", "crdkeeper", "Kubernetes"]
"""Who sends requests: only those of clients are uses."""


@dataclass(frozen=True, slots=True)
class Requester:
    """The requests of one user in audit logs that have not failed."""

    user: str
    """The name; of somebody who is impersonated, `name (by the one who impersonates)`."""
    whose: Whose
    agents: tuple[str, ...]
    """The programs, as they call themselves: the first few, then `…`."""
    namespaces: tuple[str, ...]
    """The first few, then `…`; none if there are only requests in no namespace, such as a list of all."""
    reads: int
    writes: int
    last: datetime | None
    """When the newest request ended; None if no event has a time."""


@dataclass(frozen=True, slots=True)
class AuditedUses:
    """Everything that audit logs say about the use of a version."""

    requesters: tuple[Requester, ...]
    """At most `SHOWN`: clients first, of these and the others the newest first."""
    requester_count: int
    """All of them, as far as they are counted separately."""
    newest: datetime | None
    """When the newest request of a client ended."""
    newest_by: str
    """Who that was."""
    events: int
    """Number of events read, also about other resources."""
    first: datetime | None
    last: datetime | None
    """The times of the oldest and the newest of these events: nothing is known of other times."""
    failed: int = 0
    """Requests at the version that were refused, or failed."""
    undated: int = 0
    """Requests of clients whose events have no time that can be read."""
    unreadable: int = 0
    """Lines that are no event of audit.k8s.io/v1."""
    too_long: int = 0
    """Lines that are too long to be read."""


HeldStep = Literal["Deprecated", "NotServed", "Removed"]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that a step would break."""

    step: HeldStep
    """The first step that it holds."""
    reason: str
    """ConversionWebhook, VersionConversion, Composition, CompositeResourceDefinition, AdmissionWebhook,
    AdmissionPolicy or NotPermitted."""
    name: str
    message: str
    """A full sentence, with what to do."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that a look at the cluster has shown."""

    writers: tuple[Writer, ...]
    """At most `SHOWN`, the newest first."""
    writer_count: int
    """All of them, as far as they are counted separately."""
    objects: int
    """Number of objects with an entry that names the version."""
    counted: int
    """Number of objects looked at."""
    complete: bool
    """Whether these are all objects."""
    failure: str
    """Why they are not, with what to do; empty if they are."""
    newest: datetime | None
    """The newest write at the version by anybody."""
    readers: tuple[Reader, ...]
    owners: tuple[Applier, ...]
    holds: tuple[Obstacle, ...]
    warnings: tuple[str, ...]
    """What changes for others with a step and holds none, as sentences."""
    unknown: tuple[str, ...]
    """What cannot be known, as sentences."""
    audit: AuditedUses | None = None
    """What audit logs say; None if there are none: no API shows them."""
    forbidden: bool = False
    """Whether the look is not complete because a right is missing."""
