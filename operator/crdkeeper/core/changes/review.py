"""AdmissionReview: a change or deletion of a CRD that the API server asks about, and the answer.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from crdkeeper.core.conversion.nesting import loads
from crdkeeper.core.conversion.review import MAX_VALUES, BadReview

_VERSION: Final = "admission.k8s.io/v1"
_TEXTS: Final = "labels", "annotations"


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Somebody creates a CRD, or changes its spec."""

    uid: str
    """The request's."""
    name: str
    group: str
    plural: str
    kind: str
    old: Mapping[str, Any] | None
    """None if the CRD is being created."""
    new: Mapping[str, Any]

    @property
    def labels(self) -> Mapping[str, str]:
        """Those before the change: it cannot take the CRD out of a policy that judges it."""
        found: Mapping[str, str] = (self.old or self.new)["metadata"].get("labels") or {}
        return found

    def annotation(self, name: str) -> str:
        """The value after the change; empty if there is none."""
        return str((self.new["metadata"].get("annotations") or {}).get(name) or "")


@dataclass(frozen=True, slots=True)
class DeletionRequest:
    """Somebody deletes a CRD, by itself or in a collection."""

    uid: str
    """The request's."""
    old: Mapping[str, Any]


def read_change(body: bytes) -> ChangeRequest | DeletionRequest:
    """What an AdmissionReview is about. Raises BadReview."""
    if sum(map(body.count, (b",", b"[", b"{"))) > 2 * MAX_VALUES:
        raise BadReview(f"more than {2 * MAX_VALUES:,} commas and brackets")
    try:
        review = loads(body)
    except orjson.JSONDecodeError as error:
        raise BadReview(str(error)) from None
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        raise BadReview("kind: must be AdmissionReview")
    if review.get("apiVersion") != _VERSION:
        raise BadReview(f"apiVersion: must be {_VERSION}")
    request = review.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
        raise BadReview("request.uid: must be a string")
    new: Any = request.get("object")
    old: Any = request.get("oldObject")
    if request.get("operation") == "DELETE":
        _names(old)
        return DeletionRequest(request["uid"], old)
    group, plural, kind, name = _names(new)
    if old is not None and _names(old)[0] != group:
        raise BadReview("request.oldObject: is another CRD")
    return ChangeRequest(request["uid"], name, group, plural, kind, old, new)


def _names(crd: Any) -> tuple[str, str, str, str]:
    """Group, plural name, kind and name of a CRD. Raises BadReview."""
    try:
        spec, metadata = crd["spec"], crd["metadata"]
        found = spec["group"], spec["names"]["plural"], spec["names"]["kind"], metadata["name"]
        texts = [metadata.get(each) or {} for each in _TEXTS]
        values = [value for each in texts for value in each.values()]
    except (LookupError, TypeError, AttributeError):
        raise BadReview("request: is not about a CRD") from None
    if not all(isinstance(each, str) for each in (*found, *values)):
        raise BadReview("request: is not about a CRD")
    return found


def response(uid: str, warnings: Sequence[str] = (), refusal: str = "") -> dict[str, Any]:
    """The AdmissionReview to answer with: the request passes, unless there is a refusal."""
    answer: dict[str, Any] = {"uid": uid, "allowed": not refusal}
    if warnings:
        answer["warnings"] = list(warnings)
    if refusal:
        answer["status"] = {"code": 403, "reason": "Forbidden", "message": refusal}
    return {"apiVersion": _VERSION, "kind": "AdmissionReview", "response": answer}
