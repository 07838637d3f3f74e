"""What a stolen token of the operator can write: nothing that the operator itself does not write."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.conversion.scene import Scene, until
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT
from tests.controlplane.cluster import Cluster

_CRDS = ("customresourcedefinitions", "apiextensions.k8s.io")
WEBHOOK = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": NAMESPACE, "name": "crdkeeper-webhook"}},
    },
}
SPEC = "writes nothing of a CRD's spec but spec.conversion"
VERSIONS = 'changes versions only of CRDs on which it has the verb "retire"'
METADATA = "writes nothing of a CRD's metadata"
STATUS = "writes nothing of a CRD's status but fewer storedVersions"
ATTACKS: list[tuple[str, str, list[dict[str, Any]]]] = [
    (
        "a version is not served",
        VERSIONS,
        [{"op": "replace", "path": "/spec/versions/1/served", "value": False}],
    ),
    (
        "another storage version",
        VERSIONS,
        [
            {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
        ],
    ),
    (
        "a schema that prunes",
        VERSIONS,
        [{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/host"}],
    ),
    ("another kind", SPEC, [{"op": "add", "path": "/spec/names/shortNames", "value": ["secrets"]}]),
    (
        "beside an allowed change",
        VERSIONS,
        [
            {"op": "replace", "path": "/spec/conversion", "value": WEBHOOK},
            {"op": "replace", "path": "/spec/versions/1/served", "value": False},
        ],
    ),
    ("a label", METADATA, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
    ("an annotation", METADATA, [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]),
    ("a finalizer", METADATA, [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/held"]}]),
    (
        "an owner that takes it along",
        METADATA,
        [
            {
                "op": "add",
                "path": "/metadata/ownerReferences",
                "value": [{"apiVersion": "v1", "kind": "Namespace", "name": "none", "uid": "none"}],
            }
        ],
    ),
]
STATUS_ATTACKS: list[tuple[str, list[dict[str, Any]]]] = [
    (
        "a version that was never stored",
        [{"op": "add", "path": "/status/storedVersions/-", "value": "v1beta1"}],
    ),
    ("conditions", [{"op": "replace", "path": "/status/conditions", "value": []}]),
    ("names", [{"op": "replace", "path": "/status/acceptedNames/kind", "value": "Secret"}]),
]


@pytest.fixture(scope="module")
def token(installed: Cluster) -> Path:
    return installed.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)


@pytest.fixture(scope="module")
def scene(installed: Cluster) -> Iterator[Scene]:
    """A CRD with opt-in."""
    scene = Scene(installed, "confinement.example.com")
    yield scene
    scene.remove()


def patch(scene: Scene, account: Path, changes: list[dict[str, Any]], subresource: str = "") -> str:
    """The API server's answer to a JSON patch by an account, as a dry run; empty if it accepts it."""
    path = f"/apis/{_CRDS[1]}/v1/{_CRDS[0]}/{scene.name}{subresource}?dryRun=All"

    async def send() -> Answer:
        async with Client(Connection(account)) as client:
            return await client.send(
                "PATCH",
                path,
                content=json.dumps(changes).encode(),
                content_type="application/json-patch+json",
            )

    answer = asyncio.run(send())
    return "" if answer.code == 200 else str(answer.json()["message"])


@pytest.mark.parametrize(("what", "refusal", "changes"), ATTACKS, ids=[each[0] for each in ATTACKS])
def test_nothing_else_of_a_crd_can_be_changed(
    scene: Scene, token: Path, what: str, refusal: str, changes: list[dict[str, Any]]
) -> None:
    until(lambda: refusal in patch(scene, token, changes), lambda: patch(scene, token, changes))
    # An admin may.
    assert patch(scene, scene.plane.kubeconfig, changes) == ""


@pytest.mark.parametrize(("what", "changes"), STATUS_ATTACKS, ids=[each[0] for each in STATUS_ATTACKS])
def test_nothing_else_of_a_status_can_be_changed(
    scene: Scene, token: Path, what: str, changes: list[dict[str, Any]]
) -> None:
    said = "/status"
    until(lambda: STATUS in patch(scene, token, changes, said), lambda: patch(scene, token, changes, said))
    assert patch(scene, scene.plane.kubeconfig, changes, said) == ""


def test_what_the_operator_does_is_allowed(scene: Scene, token: Path) -> None:
    conversion = [{"op": "replace", "path": "/spec/conversion", "value": WEBHOOK}]
    until(lambda: not patch(scene, token, conversion), lambda: patch(scene, token, conversion))
    assert (
        patch(scene, token, [{"op": "replace", "path": "/spec/conversion/strategy", "value": "None"}]) == ""
    )
    add = json.dumps([{"op": "add", "path": "/status/storedVersions/-", "value": "v1beta1"}])
    on = ("crd", scene.name, "--type=json", "--subresource=status")
    scene.plane.kubectl("patch", *on, f"--patch={add}")
    trim = [{"op": "replace", "path": "/status/storedVersions", "value": ["v1"]}]
    assert patch(scene, token, trim, "/status") == ""


def test_a_crd_that_nobody_opted_in_cannot_be_changed_at_all(scene: Scene, token: Path) -> None:
    other = Scene(scene.plane, "other.confinement.example.com")
    try:
        scene.plane.kubectl("delete", "clusterrole", f"convert-{other.group}")
        conversion = [{"op": "replace", "path": "/spec/conversion", "value": WEBHOOK}]
        until(lambda: "cannot patch resource" in patch(other, token, conversion))
    finally:
        other.remove()


@pytest.mark.parametrize(
    ("name", "kind", "refused"),
    [
        ("crdkeeper-webhook-ca", "Opaque", False),
        ("crdkeeper-webhook-tls", "kubernetes.io/tls", False),
        ("another", "Opaque", True),
        # The control plane would put a token of that account there, for the operator to read.
        ("crdkeeper-webhook-ca", "kubernetes.io/service-account-token", True),
    ],
)
def test_it_gets_no_token_of_another_account(
    installed: Cluster, token: Path, name: str, kind: str, refused: bool
) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {"kubernetes.io/service-account.name": "crdkeeper-webhook"},
        },
        "type": kind,
        "stringData": {"tls.crt": "", "tls.key": ""},
    }

    def said() -> str:
        create = ("create", "--validate=false", "--dry-run=server", "--filename=-")
        return installed.kubectl(*create, input=json.dumps(secret), kubeconfig=token, check=False)

    if refused:
        until(lambda: "creates the Secrets of the webhook's certificates and no others" in said(), said)
    else:
        assert "created" in said() or "already exists" in said()
