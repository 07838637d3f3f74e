"""What the composer does to a composite and to its objects, as it is counted and told."""

from enum import StrEnum


class CompositeWrite(StrEnum):
    """What a request has changed."""

    CREATED = "object-created"
    APPLIED = "object-applied"
    DELETED = "object-deleted"
    RELEASED = "object-released"
    FINALIZER = "composite-finalizer"
    REVISION = "composite-revision"
    STATUS = "composite-status"
