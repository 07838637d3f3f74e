"""The API server's answers to a patch, word for word, and what each proves.

The bodies are those of Kubernetes 1.37 (k8s.io/apimachinery/pkg/api/errors, k8s.io/apiserver, etcd).
"""

from typing import Any

import pytest

from crdkeeper.core.migration.evidence import (
    ObjectRef,
    Outcome,
    denied_by,
    is_webhook_outage,
    outcome_of,
    refusal,
)

REF = ObjectRef("default", "w1", "100")
KIND = {"name": "w1", "group": "example.com", "kind": "widgets"}

DENIED = 'admission webhook "policy.example.com" denied the request'
POLICY = (
    "widgets.example.com \"w1\" is forbidden: ValidatingAdmissionPolicy 'sizes.example.com' with binding "
    "'sizes' denied request: spec.size must be at least 3"
)
CALL_FAILED = 'Internal error occurred: failed calling webhook "policy.example.com": failed to call webhook: '
POST = 'Post "https://policy.default.svc:443/validate?timeout=10s": '
CONVERSION = "conversion webhook for example.com/v1, Kind=Widget "
RBAC = (
    'widgets.example.com "w1" is forbidden: User "system:serviceaccount:crdkeeper-system:crdkeeper" cannot '
    'patch resource "widgets" in API group "example.com" in the namespace "default"'
)
INVALID = (
    'Widget.example.com "w1" is invalid: spec.size: Invalid value: "string": spec.size in body must be of '
    'type integer: "string"'
)


def status(code: int, reason: str, message: str, **details: Any) -> tuple[int, dict[str, Any]]:
    """A metav1.Status as the API server sends it."""
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": code,
    }
    if reason:
        body["reason"] = reason
    if details:
        body["details"] = details
    return code, body


def text(code: int, message: str) -> tuple[int, dict[str, Any]]:
    """An answer that is not JSON, as returned by the client."""
    return code, {"message": message}


def stored(version: str, code: int = 200) -> tuple[int, dict[str, Any]]:
    metadata = {"namespace": "default", "name": "w1", "resourceVersion": version}
    return code, {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
    }


ANSWERS: dict[str, tuple[tuple[int, dict[str, Any]], Outcome]] = {
    "rewritten": (stored("101"), Outcome.REWRITTEN),
    "unchanged": (stored("100"), Outcome.CURRENT),
    "a page of a proxy": (text(200, "<html>Welcome</html>"), Outcome.UNAVAILABLE),
    "no body": (text(200, ""), Outcome.UNAVAILABLE),
    "gone": (status(404, "NotFound", 'widgets.example.com "w1" not found', **KIND), Outcome.GONE),
    "resource not served": (text(404, "404 page not found"), Outcome.UNSERVED),
    "resource unknown": (
        status(404, "NotFound", "the server could not find the requested resource"),
        Outcome.UNSERVED,
    ),
    "namespace gone": (
        status(404, "NotFound", 'namespaces "w1" not found', name="w1", kind="namespaces"),
        Outcome.REFUSED,
    ),
    "changed meanwhile": (
        status(
            409,
            "Conflict",
            'Operation cannot be fulfilled on widgets.example.com "w1": the object has been modified; '
            "please apply your changes to the latest version and try again",
            **KIND,
        ),
        Outcome.CONFLICT,
    ),
    "created again": (
        status(
            409,
            "Conflict",
            'Operation cannot be fulfilled on widgets.example.com "w1": StorageError: invalid object, Code: '
            "4, Key: /registry/example.com/widgets/default/w1, ResourceVersion: 0, AdditionalErrorMsg: "
            "Precondition failed: UID in precondition: u1, UID in object meta: u2",
            **KIND,
        ),
        Outcome.CONFLICT,
    ),
    "storage starting": (
        status(429, "TooManyRequests", "storage is (re)initializing", retryAfterSeconds=1),
        Outcome.THROTTLED,
    ),
    "priority and fairness": (
        text(429, "Too many requests, please try again later."),
        Outcome.THROTTLED,
    ),
    "webhook denied": (status(403, "Forbidden", f"{DENIED}: too small", **KIND), Outcome.REFUSED),
    "webhook denied without a word": (status(400, "", f"{DENIED} without explanation"), Outcome.REFUSED),
    "webhook denied with 404": (
        status(404, "NotFound", f'{DENIED}: secrets "w1" not found', name="w1", kind="secrets"),
        Outcome.REFUSED,
    ),
    "webhook denied with 409": (status(409, "Conflict", f"{DENIED}: in use"), Outcome.REFUSED),
    "webhook denied with 429": (status(429, "TooManyRequests", f"{DENIED}: slow down"), Outcome.REFUSED),
    "webhook denied with 401": (status(401, "Unauthorized", f"{DENIED}: no token"), Outcome.REFUSED),
    "webhook denied with 500": (status(500, "InternalError", f"{DENIED}: crash"), Outcome.REFUSED),
    "webhook asked for a right": (
        status(403, "Forbidden", f'{DENIED}: User "bob" cannot update resource "widgets"'),
        Outcome.REFUSED,
    ),
    "policy": (status(422, "Invalid", POLICY, **KIND), Outcome.REFUSED),
    "policy with reason Unauthorized": (status(401, "Unauthorized", POLICY, **KIND), Outcome.REFUSED),
    "policy with reason RequestEntityTooLarge": (
        status(413, "RequestEntityTooLarge", POLICY, **KIND),
        Outcome.REFUSED,
    ),
    "policy without a binding": (
        status(422, "Invalid", "ValidatingAdmissionPolicy 'sizes' denied request: no"),
        Outcome.REFUSED,
    ),
    "webhook down": (
        status(
            500, "InternalError", f"{CALL_FAILED}{POST}dial tcp 10.0.0.1:443: connect: connection refused"
        ),
        Outcome.REFUSED,
    ),
    "webhook slow": (
        status(500, "InternalError", f"{CALL_FAILED}{POST}context deadline exceeded"),
        Outcome.REFUSED,
    ),
    "conversion down": (
        status(500, "", f"{CONVERSION}failed: {POST}dial tcp 10.0.0.1:443: connect: connection refused"),
        Outcome.REFUSED,
    ),
    "conversion answers nonsense": (
        status(500, "", f"{CONVERSION}returned 0 objects, expected 1"),
        Outcome.REFUSED,
    ),
    "invalid": (status(422, "Invalid", INVALID, **KIND), Outcome.REFUSED),
    "bad request": (status(400, "BadRequest", "strict decoding error: unknown field"), Outcome.REFUSED),
    "request too large": (
        status(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
        Outcome.REFUSED,
    ),
    "too large for etcd": (status(500, "", "etcdserver: request is too large"), Outcome.REFUSED),
    "too large for the way to etcd": (
        status(
            500,
            "",
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097419 vs. "
            "2097152)",
        ),
        Outcome.REFUSED,
    ),
    "right is missing": (status(403, "Forbidden", RBAC, **KIND), Outcome.FORBIDDEN),
    "token expired": (status(401, "Unauthorized", "Unauthorized"), Outcome.FORBIDDEN),
    "etcd without leader": (status(500, "", "etcdserver: leader changed"), Outcome.UNAVAILABLE),
    "etcd slow": (status(500, "", "etcdserver: request timed out"), Outcome.UNAVAILABLE),
    "etcd full": (status(500, "", "etcdserver: mvcc: database space exceeded"), Outcome.UNAVAILABLE),
    "timeout": (
        status(504, "Timeout", "Timeout: request did not complete within requested timeout", **KIND),
        Outcome.UNAVAILABLE,
    ),
    "shutting down": (
        status(503, "ServiceUnavailable", "apiserver is shutting down"),
        Outcome.UNAVAILABLE,
    ),
    "load balancer": (text(502, "<html><body><h1>502 Bad Gateway</h1></body></html>"), Outcome.UNAVAILABLE),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_judge(name: str) -> None:
    (code, body), outcome = ANSWERS[name]
    assert outcome_of(REF, code, body) is outcome


@pytest.mark.parametrize("name", ["etcd without leader", "shutting down", "timeout"])
def test_a_failure_with_retry_after_asks_to_wait(name: str) -> None:
    (code, body), _ = ANSWERS[name]
    assert outcome_of(REF, code, body, retry_after=5.0) is Outcome.THROTTLED


@pytest.mark.parametrize("name", ["gone", "invalid", "right is missing", "rewritten"])
def test_retry_after_changes_no_other_answer(name: str) -> None:
    (code, body), outcome = ANSWERS[name]
    assert outcome_of(REF, code, body, retry_after=5.0) is outcome


def test_a_namespace_that_is_itself_migrated_can_be_gone() -> None:
    code, body = status(404, "NotFound", 'namespaces "w1" not found', name="w1", kind="namespaces")
    assert outcome_of(ObjectRef("", "w1", "100"), code, body) is Outcome.GONE


@pytest.mark.parametrize(
    ("message", "who"),
    [
        (f"{DENIED}: no", "webhook policy.example.com"),
        (f"{CALL_FAILED}{POST}EOF", "webhook policy.example.com"),
        (POLICY, "ValidatingAdmissionPolicy sizes.example.com"),
        (f"{CONVERSION}failed: {POST}EOF", "conversion webhook for example.com/v1, Kind=Widget"),
        (f"{CONVERSION}returned 0 objects, expected 1", "conversion webhook for example.com/v1, Kind=Widget"),
        (INVALID, ""),
        (RBAC, ""),
    ],
)
def test_who_denied_it(message: str, who: str) -> None:
    assert denied_by(message) == who


def test_a_refusal_names_object_and_field() -> None:
    causes = [
        {"reason": "FieldValueTypeInvalid", "message": "must be of type integer", "field": "spec.size"},
        {
            "reason": "FieldValueInvalid",
            "message": "some validation rules were not checked",
            "field": "<nil>",
        },
    ]
    code, body = status(422, "Invalid", INVALID, **KIND, causes=causes)
    found = refusal(REF, code, body)
    assert (found.namespace, found.name, found.code, found.reason) == ("default", "w1", 422, "Invalid")
    assert (found.field, found.denied_by, found.message) == ("spec.size", "", INVALID)


def test_a_refusal_of_the_whole_object_names_no_field() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "failed rule: self.a > 1", "field": "<nil>"}]
    assert refusal(REF, *status(422, "Invalid", INVALID, causes=causes)).field == ""


@pytest.mark.parametrize(
    ("code", "body", "message"),
    [
        (422, {"message": "x" * 5000}, "x" * 1021 + "…"),
        (422, {"weird": 1}, "HTTP 422 without a message"),
        (422, {}, "HTTP 422 without a message"),
    ],
    ids=["long", "without a message", "empty"],
)
def test_a_refusal_always_has_a_message(code: int, body: dict[str, Any], message: str) -> None:
    found = refusal(REF, code, body)
    assert found.message == message
    assert found.reason == "Unknown"


@pytest.mark.parametrize(
    ("name", "outage"),
    [
        ("webhook down", True),
        ("webhook slow", True),
        ("conversion down", True),
        ("webhook denied with 500", True),
        ("webhook denied", False),
        ("policy", False),
        ("too large for etcd", False),
    ],
)
def test_a_webhook_that_does_not_work_is_told_from_one_that_says_no(name: str, outage: bool) -> None:
    (code, body), _ = ANSWERS[name]
    assert is_webhook_outage(refusal(REF, code, body)) is outage


def test_a_reference_as_people_write_it() -> None:
    assert str(REF) == "default/w1"
    assert str(ObjectRef("", "w1", "100")) == "w1"
