"""What blocks a write: policies that deny it, webhooks that fail."""

import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import orjson

from crdkeeper.cluster.transport.client import MERGE_PATCH, Answer
from tests.cluster.harness.admin import Admin
from tests.cluster.harness.customkind import CustomKind
from tests.cluster.harness.waiting import eventually

_REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{_REGISTRATION}/validatingadmissionpolicies"
BINDINGS = f"{_REGISTRATION}/validatingadmissionpolicybindings"
WEBHOOKS = f"{_REGISTRATION}/validatingwebhookconfigurations"


async def deny_updates(admin: Admin, kind: CustomKind, unless: str, *, example: str) -> str:
    """Has a ValidatingAdmissionPolicy deny updates for which a CEL expression is false.

    Returns its name once an update of the object called `example` is denied.
    """
    name = f"deny-{kind.group}"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [_rule(kind)]},
            "validations": [{"expression": unless, "message": "this object is protected"}],
        },
    }
    await admin.create(POLICIES, policy)
    await admin.create(BINDINGS, _binding(name))
    await _until_denied(admin, kind, example, by=name)
    return name


async def deny_secret(admin: Admin, name: str) -> None:
    """Has a ValidatingAdmissionPolicy deny updates of a Secret, with a message that contains its data."""
    rule = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["secrets"]}
    words = "'the password ' + object.data.password + ' is too short'"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "one", "expression": f"object.metadata.name == '{name}'"}],
            "validations": [{"expression": "false", "messageExpression": words}],
        },
    }
    await admin.create(POLICIES, policy)
    await admin.create(BINDINGS, _binding(name))

    async def denied() -> bool:
        path = f"/api/v1/namespaces/default/secrets/{name}?dryRun=All"
        answer = await admin.client.send("PATCH", path, content=b"{}", content_type=MERGE_PATCH)
        return answer.code >= 400 and b"aHVudGVyMg" in answer.content

    await eventually(denied, otherwise=lambda: f"the policy {name} does not deny")


async def frozen_definition(admin: Admin, name: str, words: str) -> str:
    """Has a policy deny all changes of a CRD with these words; returns the policy's name."""
    policy = f"frozen.{name}"
    rule = {
        "apiGroups": ["apiextensions.k8s.io"],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["customresourcedefinitions"],
        "resourceNames": [name],
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": policy},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": words}],
        },
    }
    await admin.create(POLICIES, body)
    await admin.create(BINDINGS, _binding(policy))
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    await _until(admin, path, lambda answer: answer.code >= 400 and policy in answer.content.decode())
    return policy


async def until_changeable(admin: Admin, name: str) -> None:
    """Returns once policies let a CRD be changed again."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    await _until(admin, path, lambda answer: answer.code < 400)


@asynccontextmanager
async def denied(
    admin: Admin, name: str, *, group: str, resource: str, when: str, such_as: tuple[str, Mapping[str, Any]]
) -> AsyncIterator[None]:
    """Has updates of `resource` denied if the CEL expression `when` is true, until the end of the block.

    `such_as` is the path and body of a merge patch that is denied by then: a dry run of it shows when the API
    server has loaded the policy.
    """
    rule = {"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": ["UPDATE"]}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"!({when})", "message": "stopped by a test"}],
        },
    }
    path, body = such_as

    async def in_force() -> bool:
        answer = await admin.client.send(
            "PATCH", f"{path}?dryRun=All", content=orjson.dumps(body), content_type=MERGE_PATCH
        )
        return b"stopped by a test" in answer.content

    async def lifted() -> bool:
        return not await in_force()

    await admin.create(POLICIES, policy)
    await admin.create(BINDINGS, _binding(name))
    await eventually(in_force, otherwise=lambda: f"policy {name} is not in force")
    try:
        yield
    finally:
        await admin.delete(f"{BINDINGS}/{name}")
        await admin.delete(f"{POLICIES}/{name}")
        await eventually(lifted, otherwise=lambda: f"policy {name} is still in force")


async def allow_updates(admin: Admin, kind: CustomKind, *, example: str) -> None:
    """Removes that policy and returns when it no longer has an effect, such as that the example exists."""
    await admin.delete(f"{BINDINGS}/deny-{kind.group}")
    await _until(admin, kind.path(example), lambda answer: answer.code < 400 or answer.code == 404)


async def add_webhook(
    admin: Admin, kind: CustomKind, port: int, *, example: str, spared: str | None = None
) -> str:
    """Has a validating webhook at a loopback port decide on updates, with one second to answer.

    It is not called for updates by the user `spared`. Returns its name once an update of the object called
    `example` fails because of it.
    """
    name = f"guard.{kind.group}"
    conditions = [{"name": "spared", "expression": f"request.userInfo.username != '{spared}'"}]
    webhook = {
        "name": name,
        "clientConfig": {"url": f"https://127.0.0.1:{port}/validate"},
        "rules": [_rule(kind)],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
        **({"matchConditions": conditions} if spared else {}),
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }
    await admin.create(WEBHOOKS, configuration)
    await _until_denied(admin, kind, example, by=name)
    return name


async def remove_webhook(admin: Admin, kind: CustomKind) -> None:
    """Removes that webhook, as its owner would if it is broken."""
    await admin.delete(f"{WEBHOOKS}/guard.{kind.group}")


@contextmanager
def closed_port() -> Iterator[int]:
    """A loopback port that refuses connections: bound, so that nothing else gets it, but not listening."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@contextmanager
def silent_port() -> Iterator[int]:
    """A loopback port that accepts connections and never answers."""
    connections: list[socket.socket] = []

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                connections.append(listener.accept()[0])
            except OSError:
                return  # it was shut down

    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        thread = threading.Thread(target=accept, args=(listener,), name="silent port", daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for each in connections:
                each.close()


def _binding(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }


def _rule(kind: CustomKind) -> dict[str, list[str]]:
    return {
        "apiGroups": [kind.group],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": [kind.plural],
    }


async def _until_denied(admin: Admin, kind: CustomKind, name: str, *, by: str) -> None:
    """Returns once an update of an object fails because of that policy or webhook, and of nothing else."""
    await _until(admin, kind.path(name), lambda answer: answer.code >= 400 and by in answer.content.decode())


async def _until(admin: Admin, path: str, holds: Callable[[Answer], bool]) -> None:
    """Returns once that is true for the answer to a change of an object that changes nothing."""

    async def so() -> bool:
        answer = await admin.client.send(
            "PATCH", f"{path}?dryRun=All", content=b"{}", content_type=MERGE_PATCH
        )
        return holds(answer)

    await eventually(so, otherwise=lambda: f"admission of {path} has not changed")
