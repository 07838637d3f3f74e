"""Which refusals mean that a field cannot change, so that an object may be deleted and created again."""

from typing import Any, cast

import pytest

from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.composite.refusing import exists_already, is_immutable, refusal
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites.reasons import FAILED
from tests.unit.controllers.fakeapi import FakeApi

FORBIDDEN, INVALID = "FieldValueForbidden", "FieldValueInvalid"


def refused(*causes: Any, code: int = 422, message: str = "it is invalid") -> ApiError:
    """An answer of the API server."""
    listed = [{"reason": reason, "message": text, "field": "spec.x"} for reason, text in causes]
    return ApiError(code, {"reason": "Invalid", "message": message, "details": {"causes": listed}})


@pytest.mark.parametrize(
    ("causes", "so"),
    [
        ([(FORBIDDEN, "Forbidden: field is immutable when `immutable` is set")], True),
        ([(INVALID, 'Invalid value: {"matchLabels":{"a":"b"}}: field is immutable')], True),
        (
            [(FORBIDDEN, "Forbidden: updates to statefulset spec for fields other than 'x' are forbidden")],
            True,
        ),
        ([(FORBIDDEN, "Forbidden: pod updates may not change fields other than `x`")], True),
        ([(INVALID, 'Invalid value: "object": Value is immutable')], True),
        (
            [(INVALID, "Invalid value: 0: must be greater"), (FORBIDDEN, "Forbidden: field is immutable")],
            True,
        ),
        ([(INVALID, 'Invalid value: "immutable": must be one of a, b')], False),
        ([(INVALID, 'Invalid value: "x: field is immutable": must be short')], False),
        ([(FORBIDDEN, "Forbidden: may not be used with type ClusterIP")], False),
        ([("", "the policy says that it is immutable")], False),
        ([], False),
    ],
)
def test_only_a_cause_of_the_api_server_says_that_a_field_cannot_change(causes: Any, so: bool) -> None:
    name = 'ConfigMap "immutable-settings" is invalid: data[immutable]'
    assert is_immutable(refused(*causes, message=name)) == so
    assert not is_immutable(refused(*causes, code=403))


def test_an_answer_without_details_says_nothing() -> None:
    details: Any
    for details in (None, [], {"causes": "immutable"}, {"causes": ["immutable"]}):
        assert not is_immutable(ApiError(422, {"message": "field is immutable", "details": details}))
    assert not is_immutable(Unreachable("immutable"))


async def test_a_namespace_in_deletion_passes() -> None:
    kind = ServedKind("v1", "ConfigMap", "configmaps", namespaced=True)
    words = 'configmaps "x" is forbidden: unable to create new content in namespace a: it is being terminated'
    causes = [{"reason": "NamespaceTerminating", "message": "namespace a is being terminated"}]
    body = {"reason": "Forbidden", "message": words, "details": {"causes": causes}}
    found = await refusal(KnownRights(cast(Client, FakeApi())), kind, "ConfigMap a/x", ApiError(403, body))
    assert (found.reason, found.message) == (FAILED, f"ConfigMap a/x: {words}")


def test_a_conflict_is_not_an_object_that_exists() -> None:
    assert exists_already(ApiError(409, {"reason": "AlreadyExists"}))
    assert not exists_already(ApiError(409, {"reason": "Conflict"}))
    assert not exists_already(Unreachable("no answer"))


async def test_what_a_webhook_says_of_an_object_with_values_of_secrets_is_not_shown() -> None:
    kind = ServedKind("v1", "ConfigMap", "configmaps", namespaced=True)
    words = 'admission webhook "check.example.com" denied the request: hunter2 is no password'
    error, rights = refused(message=words), KnownRights(cast(Client, FakeApi({})))
    assert "hunter2" in (await refusal(rights, kind, "ConfigMap a/x", error)).message
    shown = (await refusal(rights, kind, "ConfigMap a/x", error, secret=True)).message
    assert "hunter2" not in shown and "check.example.com" in shown
