"""Which finalizers a DefinitionPolicy releases from objects that are being deleted, and what it found."""

from typing import Annotated, Any, Literal

from pydantic import Field

from crdkeeper.api.meta import ApiModel, Time

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_FINALIZER = rf"^({_LABEL}(\.{_LABEL})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_NOT_TO_BE_RELEASED: dict[str, Any] = {
    "x-kubernetes-validations": [
        {
            "rule": "!(self in ['foregroundDeletion', 'orphan', 'kubernetes', "
            "'customresourcecleanup.apiextensions.k8s.io'])",
            "message": "Kubernetes itself serves this finalizer",
        },
        {
            "rule": r"!self.matches('^([^/]*\\.)?crdkeeper\\.dev(/|$)')",
            "message": "crdkeeper itself serves this finalizer",
        },
    ]
}

FinalizerName = Annotated[
    str, Field(max_length=317, pattern=_FINALIZER, json_schema_extra=_NOT_TO_BE_RELEASED)
]


class FinalizerRule(ApiModel):
    """A finalizer whose controller may be gone, and when to release it."""

    name: FinalizerName
    """The finalizer, exactly. Those that Kubernetes or crdkeeper itself serves are refused."""
    release_after: Annotated[str, Field(max_length=16, pattern=r"^([0-9]{1,6}(h|m|s))+$")]
    """How long an object must have been in deletion, with no write by anybody, such as `24h` or `90m`.

    Choose more than the controller ever needs to clean up.
    """
    when: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """A condition in CEL on `object`, the whole object: it must be true for an object to be released."""
    mode: Literal["Plan", "Automatic"] = "Plan"
    """Plan shows in status what would be released. Automatic releases it, after status has shown it."""


class FinalizerStanding(ApiModel):
    """What a named finalizer holds up, in all CRDs that the policy governs."""

    name: str = ""
    held: int = 0
    """Number of objects in deletion that have the finalizer."""
    waiting: int = 0
    """Number of those that nobody has written since, but that have not been in deletion for releaseAfter.

    Also of those that the operator has watched for less than ten minutes and less than releaseAfter.
    """
    written: int = 0
    """Number of those that somebody has written in deletion and that otherwise are as the waiting ones."""
    unmet: int = 0
    """Number of those for which `when` is not true."""
    due: int = 0
    """Number of those that would be released now."""
    refused: int = 0
    """Number of those of which the API server refused to release it."""
    next_release_time: Time | None = None
    """When the next of the waiting and written ones is due, if nobody writes it."""
    examples: Annotated[
        list[str], Field(default_factory=list, json_schema_extra={"x-kubernetes-list-type": "atomic"})
    ]
    """Some objects, the due ones first, as `PLURAL.GROUP NAMESPACE/NAME`."""
