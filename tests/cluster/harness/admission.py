"""What blocks a write: policies that deny it, webhooks that fail."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crdkeeper.cluster.transport.client import MERGE_PATCH
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
    await _until(admin, kind, example, accepted=False)
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


async def allow_updates(admin: Admin, kind: CustomKind, *, example: str) -> None:
    """Removes that policy and returns when it no longer has an effect."""
    await admin.delete(f"{BINDINGS}/deny-{kind.group}")
    await _until(admin, kind, example, accepted=True)


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
    await _until(admin, kind, example, accepted=False)
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


async def _until(admin: Admin, kind: CustomKind, name: str, *, accepted: bool) -> None:
    async def so() -> bool:
        path = f"{kind.path(name)}?dryRun=All"
        answer = await admin.client.send("PATCH", path, content=b"{}", content_type=MERGE_PATCH)
        return (answer.code < 400) == accepted

    await eventually(so, otherwise=lambda: f"admission of {kind.name} has not changed")
