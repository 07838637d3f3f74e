"""Requests of the composer that fail: nothing is lost, the status says why, and all ends well afterwards."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.core.composer.wording import LABEL
from tests.unit.controllers.compositeresourcedefinition.scene import (
    ALL,
    COMPOSITIONS,
    CRD,
    NAME,
    OBJECTS,
    PATH,
    Server,
    play,
)
from tests.unit.controllers.compositeresourcedefinition.test_controller import (
    OURS,
    TWO,
    with_policy,
)
from tests.unit.controllers.fakeapi import OURS as SERVED

Json = Any
STATUS = f"{PATH}/status"
TROUBLES = {
    "no answer": Unreachable("connection reset by peer"),
    "404": ApiError(404, {"message": "gone", "reason": "NotFound"}),
    "409": ApiError(409, {"message": "the object has been modified", "reason": "Conflict"}),
    "410": ApiError(410, {"message": "too old", "reason": "Expired"}),
    "429": ApiError(429, {"message": "too many requests", "reason": "TooManyRequests"}),
    "500": ApiError(500, {"message": "etcdserver: leader changed", "reason": "InternalError"}),
    "503": ApiError(503, {"message": "no endpoints", "reason": "ServiceUnavailable"}),
    "422": ApiError(422, {"message": "spec.x: Invalid", "reason": "Invalid"}),
}


def denied(verb: str, resource: str, group: str) -> ApiError:
    """As the API server's authorization refuses."""
    said = (
        f'{resource}.{group} is forbidden: User "system:serviceaccount:a:b" cannot {verb} resource '
        f'"{resource}" in API group "{group}" at the cluster scope'
    )
    return ApiError(403, {"message": said, "reason": "Forbidden"})


def failing(server: Server, method: str, path: str, error: Exception, times: int) -> Callable[[], int]:
    """Has the next such requests fail; returns how many are still to come."""
    left = [times]

    async def fail(with_: str, to: str) -> None:
        if (with_, to) == (method, path) and left[0]:
            left[0] -= 1
            raise error

    server.before = fail
    return lambda: left[0]


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", PATH), ("PATCH", PATH), ("GET", CRD), ("PATCH", CRD), ("PATCH", STATUS)],
    ids=["read", "finalizer", "read the CRD", "apply", "status"],
)
def test_creating_gets_over_it(method: str, path: str, trouble: str) -> None:
    if (method, trouble) == ("GET", "404"):
        pytest.skip("the API server says what is so")

    async def people(server: Server) -> None:
        left = failing(server, method, path, TROUBLES[trouble], 3)
        server.make()
        await asyncio.sleep(300.0)
        server.make(TWO)
        await asyncio.sleep(300.0)
        assert left() == 0
        assert server.held()
        assert server.ready() == OURS

    play(people)


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", CRD), ("GET", ALL), ("DELETE", OBJECTS), ("DELETE", CRD), ("PATCH", PATH)],
    ids=["read the CRD", "list", "delete a composite", "delete the CRD", "let go"],
)
def test_deleting_gets_over_it(method: str, path: str, trouble: str) -> None:
    if (method, path, trouble) == ("GET", CRD, "404"):
        pytest.skip("the API server says what is so")

    async def people(server: Server) -> None:
        first = f"{OBJECTS}/{server.composites()[0]['metadata']['name']}"
        left = failing(server, method, first if path == OBJECTS else path, TROUBLES[trouble], 3)
        server.delete()
        await asyncio.sleep(300.0)
        assert left() == 0
        assert PATH not in server.objects
        assert CRD not in server.objects
        assert server.lost == []

    play(people, begin=with_policy("Cascade", 3))


APPLY = "Apply manifests/composer, whose ClusterRole has the missing rule: "


def own_rule(verb: str) -> str:
    """The rule about CRDs that the composer needs."""
    resources = "apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions]"
    return f"{APPLY}{{{resources}, verbs: [{verb}]}}"


GET_DENIED = denied("get", "customresourcedefinitions", "apiextensions.k8s.io")
READ_DENIED = denied("get", "compositeresourcedefinitions", "crdkeeper.dev")
CREATE_DENIED = denied("create", "customresourcedefinitions", "apiextensions.k8s.io")
PATCH_DENIED = denied("patch", "compositeresourcedefinitions", "crdkeeper.dev")
WEBHOOK_DENIES = ApiError(
    403, {"message": 'admission webhook "w" denied the request: no', "reason": "Forbidden"}
)
WEBHOOK_FAILS = ApiError(500, {"message": 'failed calling webhook "w": deadline exceeded'})
CONVERSION = f"{SERVED}/versionconversions/{NAME}"
CONVERSION_DENIED = denied("get", "versionconversions", "crdkeeper.dev")
TOO_LARGE = {
    "etcd": ApiError(500, {"message": "etcdserver: request is too large"}),
    "client of etcd": ApiError(
        500,
        {
            "message": "rpc error: code = ResourceExhausted desc = trying to send message larger than max "
            "(2399994 vs. 2097152)"
        },
    ),
    "API server": ApiError(
        413,
        {"message": "Request entity too large: limit is 3145728", "reason": "RequestEntityTooLarge"},
    ),
}
STOPPED = ("False", "Stalled")
FAILED = ("False", "Reconciling")
UNKNOWN = ("Unknown", "Reconciling")


@pytest.mark.parametrize(
    ("method", "path", "error", "missing", "state", "reason", "said"),
    [
        ("GET", CRD, GET_DENIED, "get", STOPPED, "RightMissing", own_rule("get")),
        ("GET", PATH, READ_DENIED, "get", STOPPED, "RightMissing", "[compositeresourcedefinitions]"),
        ("PATCH", CRD, CREATE_DENIED, "create", STOPPED, "RightMissing", own_rule("create")),
        ("PATCH", PATH, PATCH_DENIED, "patch", STOPPED, "RightMissing", "[compositeresourcedefinitions]"),
        ("PATCH", CRD, WEBHOOK_DENIES, "", STOPPED, "Refused", 'webhook "w" denied the request: no'),
        ("PATCH", CRD, WEBHOOK_FAILS, "", FAILED, "Failed", 'apply the CRD: failed calling webhook "w"'),
        ("PATCH", CRD, TOO_LARGE["etcd"], "", STOPPED, "TooLarge", "is too large. The CRD has "),
        ("PATCH", CRD, TOO_LARGE["client of etcd"], "", STOPPED, "TooLarge", "remove versions."),
        ("PATCH", CRD, TOO_LARGE["API server"], "", STOPPED, "TooLarge", "limit is 3145728. The CRD has "),
        ("PATCH", PATH, TOO_LARGE["etcd"], "", STOPPED, "TooLarge", "The definition is too large"),
        ("GET", CONVERSION, CONVERSION_DENIED, "get", STOPPED, "RightMissing", "[versionconversions]"),
        ("GET", CONVERSION, TROUBLES["503"], "", UNKNOWN, "NotRead", "no endpoints"),
        ("PATCH", CRD, TROUBLES["429"], "", FAILED, "Failed", "too many requests"),
        ("PATCH", CRD, TROUBLES["409"], "", FAILED, "Failed", "has been modified"),
        ("PATCH", CRD, TROUBLES["no answer"], "", FAILED, "Failed", "connection reset"),
        ("PATCH", PATH, TROUBLES["503"], "", FAILED, "Failed", "cannot add the finalizer: no endpoints"),
        ("GET", CRD, TROUBLES["500"], "", UNKNOWN, "NotRead", "leader changed"),
        ("GET", CRD, TROUBLES["no answer"], "", UNKNOWN, "NotRead", "connection reset"),
        ("GET", ALL, TROUBLES["429"], "", FAILED, "NotListed", "too many requests"),
        ("GET", ALL, TROUBLES["410"], "", FAILED, "NotListed", "too old"),
    ],
)
def test_what_lasts_is_a_condition(
    method: str,
    path: str,
    error: Exception,
    missing: str,
    state: tuple[str, str],
    reason: str,
    said: str,
) -> None:
    async def people(server: Server) -> None:
        failing(server, method, path, error, 1_000_000)
        server.missing = {missing}
        server.make()
        await asyncio.sleep(120.0)
        found = server.condition("Ready")
        assert found[:2] == (state[0], reason)
        assert said in found[2]
        assert server.condition(state[1])[0] == "True"
        assert server.objects[PATH]["status"]["observedGeneration"] == 1
        server.before = _nothing
        await asyncio.sleep(120.0)
        assert server.ready() == OURS
        assert server.condition("Accepted")[:2] == ("True", "Accepted")

    play(people)


def test_compositions_that_may_not_be_listed_are_unknown() -> None:
    async def people(server: Server) -> None:
        refused = denied("list", "compositions", "crdkeeper.dev")
        failing(server, "GET", COMPOSITIONS, refused, 1_000_000)
        server.make()
        await asyncio.sleep(30.0)
        status, reason, message = server.condition("Offered")
        assert (status, reason) == ("Unknown", "CompositionsUnknown")
        assert "compositions.crdkeeper.dev is forbidden" in message
        assert "{apiGroups: [crdkeeper.dev], resources: [compositions], verbs: [list, watch]}" in message
        assert server.ready() == OURS
        server.before = _nothing
        await asyncio.sleep(60.0)
        assert server.condition("Offered")[1] == "NoComposition"

    play(people)


async def _never() -> None:
    await asyncio.sleep(900.0)


@pytest.mark.parametrize(
    "review", [denied("create", "selfsubjectaccessreviews", "authorization.k8s.io"), TROUBLES["500"], None]
)
@pytest.mark.parametrize(
    ("method", "path", "error", "ready"),
    [
        ("GET", CRD, GET_DENIED, ("Unknown", "NotRead")),
        ("PATCH", CRD, CREATE_DENIED, ("False", "Refused")),
        ("GET", ALL, denied("list", "databases", "platform.example.com"), ("False", "RightMissing")),
    ],
)
def test_rights_that_cannot_be_reviewed_do_not_hide_what_is_said(
    method: str, path: str, error: Exception, ready: tuple[str, str], review: Exception | None
) -> None:
    async def people(server: Server) -> None:
        async def fail(with_: str, to: str) -> None:
            if to.endswith("/selfsubjectaccessreviews"):
                if review is None:
                    await _never()
                else:
                    raise review
            if (with_, to) == (method, path):
                raise error

        server.before = fail
        server.make()
        await asyncio.sleep(60.0)
        assert server.ready() == ready
        assert "is forbidden" in server.condition("Ready")[2]
        server.before = _nothing
        await asyncio.sleep(120.0)
        assert server.ready() == OURS

    play(people)


@pytest.mark.parametrize("error", [TROUBLES["503"], TROUBLES["no answer"], GET_DENIED])
def test_a_deletion_that_cannot_read_the_crd_says_so_and_keeps_what_was_known(error: Exception) -> None:
    async def people(server: Server) -> None:
        await asyncio.sleep(10.0)
        failing(server, "GET", CRD, error, 1_000_000)
        server.missing = {"get"}
        server.delete()
        await asyncio.sleep(60.0)
        status, reason, message = server.condition("Established")
        assert (status, reason) == ("False", "TerminatingCompositeResource")
        assert "cannot read what the definition depends on" in message
        assert server.condition("Accepted")[:2] == ("True", "Accepted")
        assert server.objects[PATH]["status"]["composites"] == 3
        server.before = _nothing
        await asyncio.sleep(120.0)
        assert PATH not in server.objects

    play(people, begin=with_policy("Cascade", 3))


def test_a_read_that_failed_before_the_deletion_is_forgotten() -> None:
    async def people(server: Server) -> None:
        failing(server, "GET", CRD, TROUBLES["503"], 1_000_000)
        server.make(TWO)
        await asyncio.sleep(10.0)
        assert server.condition("Accepted")[:2] == ("Unknown", "NotRead")
        server.delete()
        server.before = _nothing
        await asyncio.sleep(120.0)
        assert server.condition("Accepted")[:2] == ("True", "Accepted")
        assert "3 composites" in server.condition("Ready")[2]

    play(people, begin=with_policy("Protect", 3))


@pytest.mark.parametrize("whole", [False, True], ids=["the definition", "the CRD"])
def test_who_holds_up_a_deletion_is_named(whole: bool) -> None:
    async def people(server: Server) -> None:
        await asyncio.sleep(10.0)
        server.objects[CRD]["metadata"]["finalizers"] = ["example.com/audit"]
        server.delete(CRD if whole else PATH)
        await asyncio.sleep(30.0)
        status, reason, message = server.condition("Established")
        assert (status, reason) == ("False", "TerminatingCompositeResource")
        names = [f"default/{each['metadata']['name']} (example.com/bill)" for each in server.composites()]
        assert f"7 composites wait for their finalizers: {', '.join(names[:5])} and 2 more." in message
        assert ("The CRD itself has the finalizers example.com/audit." in message) == whole
        assert server.condition("Reconciling")[0] == "True"
        if whole:
            assert server.condition("Accepted")[1] == "CRDTerminating"
            assert names[0] in server.condition("Ready")[2]

    play(people, begin=with_policy("Cascade", 7, finalizers=["example.com/bill"]))


@pytest.mark.parametrize("verb", ["list", "delete"])
def test_a_missing_right_to_composites_is_a_condition(verb: str) -> None:
    error = denied(verb, "databases", "platform.example.com")

    async def people(server: Server) -> None:
        async def refuse(method: str, path: str) -> None:
            if (verb, method) == ("delete", "DELETE") and path.startswith(OBJECTS):
                raise error
            if (verb, method, path) == ("list", "GET", ALL):
                raise error

        server.before, server.missing = refuse, {verb}
        server.delete()
        await asyncio.sleep(60.0)
        status, reason, message = server.condition("Established")
        assert (status, reason) == ("False", "TerminatingCompositeResource")
        assert f"a ClusterRole that has the label {LABEL}" in message
        assert "{apiGroups: [platform.example.com], resources: [databases], verbs: [" in message
        assert verb in message
        assert len(server.composites()) == 3
        server.before = _nothing
        await asyncio.sleep(60.0)
        assert PATH not in server.objects

    play(people, begin=with_policy("Cascade", 3))


async def _nothing(_: str, __: str) -> None:
    pass


def test_what_cannot_be_deleted_does_not_hold_up_the_others() -> None:
    async def people(server: Server) -> None:
        held = server.composites()[0]["metadata"]["name"]

        async def refuse(method: str, path: str) -> None:
            if (method, path) == ("DELETE", f"{OBJECTS}/{held}"):
                raise ApiError(403, {"message": 'admission webhook "w" denied the request: precious'})

        server.before = refuse
        server.delete()
        await asyncio.sleep(60.0)
        assert [each["metadata"]["name"] for each in server.composites()] == [held]
        assert "precious" in server.condition("Established")[2]

    play(people, begin=with_policy("Cascade", 700))


def test_texts_of_strangers_are_escaped() -> None:
    async def people(server: Server) -> None:
        error = ApiError(403, {"message": "denied: \x1b]0;owned\x07\u202edaer"})
        failing(server, "PATCH", CRD, error, 1_000_000)
        server.make()
        await asyncio.sleep(60.0)
        for type_ in ("Ready", "Accepted"):
            assert r"\x1b]0;owned\x07\u202edaer" in server.condition(type_)[2]

    play(people)


@pytest.mark.parametrize("code", [403, 404, 409, 500])
def test_who_refuses_to_delete_a_composite_is_quoted_whatever_the_code(code: int) -> None:
    async def people(server: Server) -> None:
        async def refuse(method: str, path: str) -> None:
            if method == "DELETE" and path.startswith(OBJECTS):
                raise ApiError(code, {"message": 'admission webhook "w" denied the request: no'})

        server.before = refuse
        server.delete()
        await asyncio.sleep(60.0)
        assert 'webhook "w" denied the request: no' in server.condition("Established")[2]
        server.before = _nothing
        await asyncio.sleep(400.0)
        assert PATH not in server.objects

    play(people, begin=with_policy("Cascade", 3))
