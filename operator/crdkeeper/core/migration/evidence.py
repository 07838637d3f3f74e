"""What the API server's answer to a rewriting patch proves about one object.

The server skips the write if the re-encoded bytes equal those in etcd. So a changed resourceVersion proves a
rewrite, and an unchanged one proves that the stored bytes were current (k8s.io/apiserver
pkg/storage/etcd3/store.go, GuaranteedUpdate).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from crdkeeper.api.storagemigration import RefusedObject
from crdkeeper.core.servermessages import of_a_secret, without_values


class Outcome(Enum):
    """The meaning of one answer."""

    REWRITTEN = "rewritten"
    CURRENT = "current"
    GONE = "gone"
    CONFLICT = "conflict"
    """Someone has written the object since it was listed: read it again."""
    THROTTLED = "throttled"
    """The server asks us to wait, or is still setting up its storage after a change of the CRD."""
    UNAVAILABLE = "unavailable"
    """The server or a proxy before it failed; proves nothing about the object."""
    REFUSED = "refused"
    """This object cannot be written at present."""
    FORBIDDEN = "forbidden"
    """Our account lacks a permission: this affects all objects, so no object is at fault."""
    UNSERVED = "unserved"
    """The resource itself is no longer served at this version."""


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """An object to rewrite, as in a metadata-only list."""

    namespace: str
    name: str
    resource_version: str
    managed_fields: bytes | None = None
    """The retargeted metadata.managedFields to write as well, if any entry needs it: as JSON, because many
    objects wait to be written, and values take more than ten times the memory."""
    uid: str = ""
    """Empty if unknown."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def concerns(body: Mapping[str, Any], namespace: str, name: str, uid: str = "") -> bool:
    """Whether a metadata-only body is about this object (with this uid, unless that is empty).

    An answer about another object proves nothing, however it got here.
    """
    metadata = body.get("metadata")
    if body.get("kind") != "PartialObjectMetadata" or not isinstance(metadata, Mapping):
        return False
    same = metadata.get("name") == name and (metadata.get("namespace") or "") == namespace
    return same and (not uid or metadata.get("uid") == uid)


_WEBHOOK = re.compile(r'(?:admission webhook|failed calling webhook|conversion webhook for) "?([^"\s:]+)"?')
_CONVERSION = re.compile(r"conversion webhook for ([^,]+(?:, Kind=\w+)?) (?:failed|returned)")
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)'")
_RBAC = re.compile(r'User "[^"]*" cannot \w+ resource')
_WEBHOOK_FAILED = re.compile(r"failed calling webhook|conversion webhook for .* (?:failed|returned)")
LASTING = frozenset((400, 401, 403, 413, 422))
"""Codes of answers that will not change by themselves; a webhook may deny with any code."""
DENIED = re.compile(
    r'admission webhook "[^"]*" denied the request|ValidatingAdmissionPolicy \'[^\']*\'.* denied request'
)
"""The API server's words about what admission denied, with any code."""
_TOO_LARGE = re.compile(r"request is too large|trying to send message larger than max")


def outcome_of(
    ref: ObjectRef, code: int, body: Mapping[str, Any], *, retry_after: float | None = None
) -> Outcome:
    """Classify an answer with status `code` and JSON `body` to a patch of `ref`.

    With Retry-After, a 5xx is a request to wait, as in client-go.
    """
    if 200 <= code < 300:
        version = (body.get("metadata") or {}).get("resourceVersion")
        if not version:
            return Outcome.UNAVAILABLE  # not the API server's answer
        return Outcome.CURRENT if version == ref.resource_version else Outcome.REWRITTEN
    message = str(body.get("message", ""))
    # Admission may deny with any code, even one that means something else when the API server uses it, such
    # as the 404 of another object that a webhook looked up. etcd's limits are reported as 500.
    if DENIED.search(message) or _TOO_LARGE.search(message):
        return Outcome.REFUSED
    if code == 429 or (retry_after is not None and code >= 500):
        return Outcome.THROTTLED
    if code == 404:
        return _not_found(ref, body.get("details") or {})
    if code == 409 and body.get("reason") == "Conflict":
        return Outcome.CONFLICT
    if code == 401 or lacks_right(code, message):
        return Outcome.FORBIDDEN
    # For a failing webhook the API server answers 500, even if it fails only for this object.
    if code >= 500 and not _WEBHOOK_FAILED.search(message):
        return Outcome.UNAVAILABLE
    return Outcome.REFUSED


def lacks_right(code: int, message: str) -> bool:
    """Whether the API server refuses because our account has no right, and not because admission denies."""
    return code == 403 and _RBAC.search(message) is not None


def _not_found(ref: ObjectRef, details: Mapping[str, Any]) -> Outcome:
    if details.get("kind") == "namespaces" and not details.get("group") and ref.namespace:
        return Outcome.REFUSED  # the object remains from a deleted namespace
    return Outcome.GONE if details.get("name") == ref.name else Outcome.UNSERVED


def is_webhook_outage(refused: RefusedObject) -> bool:
    """Whether a refusal is due to a broken webhook, rather than to one that denied the request."""
    return refused.code >= 500 and bool(refused.denied_by)


def refusal(ref: ObjectRef, code: int, body: Mapping[str, Any], *, secret: bool = False) -> RefusedObject:
    """Describe a refusal: who denied it, which field, the server's message without values.

    For a Secret (`secret`), also without what a webhook or a policy said.
    """
    message = str(body.get("message") or f"HTTP {code} without a message")
    causes = (body.get("details") or {}).get("causes") or ()
    field = next((str(each["field"]) for each in causes if each.get("field")), "")
    return RefusedObject(
        namespace=ref.namespace,
        name=ref.name,
        code=code,
        reason=str(body.get("reason") or "Unknown"),
        denied_by=denied_by(message),
        field=field.removeprefix("<nil>"),
        message=of_a_secret(message) if secret else without_values(message),
    )


def denied_by(message: str) -> str:
    """The webhook, policy or conversion that a message blames, or an empty string."""
    if found := _POLICY.search(message):
        return f"ValidatingAdmissionPolicy {found[1]}"
    if found := _CONVERSION.search(message):
        return f"conversion webhook for {found[1]}"
    if found := _WEBHOOK.search(message):
        return f"webhook {found[1]}"
    return ""
