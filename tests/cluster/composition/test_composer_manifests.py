"""The composer's manifests: stable, with the rights that it uses, and removed only when nothing needs it."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.api.compositekinds import COMPOSITE_KINDS
from crdkeeper.api.meta import GROUP
from crdkeeper.core.composition.definition import OWNER
from tests.cluster.deployment.accounts import Rights, eventually, flatten, get, grants, may, rights
from tests.cluster.harness import NAMESPACE, Operator
from tests.cluster.harness.installation import MANIFESTS
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError
from tests.controlplane.plane import ControlPlane
from tests.unit.core.composition.documents import document

COMPOSER = MANIFESTS / "composer"
SAMPLE = f"--filename={MANIFESTS / 'samples' / 'composer-role.yaml'}"
ACCOUNT = "crdkeeper-composer"
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
DEFINITIONS = f"compositeresourcedefinitions.{GROUP}"
NAME = "databases.platform.example.com"
OTHER = "things.other.example.com"
GUARDED = 11
"""Objects that cannot be deleted while a definition exists."""
KINDS = [f"crd/{kind.plural}.{GROUP}" for kind in COMPOSITE_KINDS]


@pytest.fixture(scope="module")
def cluster(installed: Cluster) -> Cluster:
    """The session's cluster with the composer's manifests."""
    installed.kubectl("apply", "--server-side", f"--kustomize={COMPOSER}")
    installed.kubectl.wait_established(*KINDS)
    return installed


@pytest.fixture(scope="module")
def account(cluster: Cluster) -> Path:
    """The kubeconfig of the composer's service account."""
    return cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)


def test_a_second_apply_changes_nothing(cluster: Cluster) -> None:
    def generations() -> dict[str, Any]:
        items = get(cluster, f"--kustomize={COMPOSER}")["items"]
        return {each["metadata"]["uid"]: each["metadata"].get("generation") for each in items}

    before = generations()
    cluster.kubectl("apply", "--server-side", f"--kustomize={COMPOSER}")
    assert generations() == before


@pytest.mark.parametrize("crd", KINDS)
def test_the_kinds_are_established_and_structural(cluster: Cluster, crd: str) -> None:
    conditions = {each["type"]: each["status"] for each in get(cluster, crd)["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


LEASES = "leases.coordination.k8s.io"
EVERYWHERE = grants(
    {
        CRDS: "get list watch create patch delete",
        DEFINITIONS: "get list watch patch",
        f"{DEFINITIONS}/status": "patch",
        f"compositions.{GROUP}": "get list watch",
        f"compositions.{GROUP}/status": "patch",
        f"compositionrevisions.{GROUP}": "get list watch create delete",
        f"storagemigrations.{GROUP}": "list watch create",
        f"versionconversions.{GROUP}": "get list watch",
        "events.events.k8s.io": "create",
    }
)
OWN_LEASE = grants({LEASES: "create"}) | grants({LEASES: "get update"}, name=ACCOUNT)


@pytest.mark.parametrize(
    ("namespace", "expected"), [("default", EVERYWHERE), (NAMESPACE, EVERYWHERE | OWN_LEASE)]
)
def test_the_composer_may_do_exactly_what_it_does(
    cluster: Cluster, account: Path, namespace: str, expected: Rights
) -> None:
    anybody = cluster.service_account_kubeconfig("default", "default")
    last: list[Rights] = []

    def exact() -> bool:
        opted_in = flatten(get(cluster, "clusterrole", "crdkeeper-composites").get("rules") or [])
        granted = rights(cluster, account, namespace) - rights(cluster, anybody, namespace) - opted_in
        last[:] = [granted]
        return granted == expected

    # What was aggregated for other tests ends some time after their roles.
    with suppress(AssertionError):
        eventually(exact)
    assert last == [expected]


def test_a_labelled_role_lets_the_composer_look_after_composites(cluster: Cluster, account: Path) -> None:
    databases = "databases.platform.example.com"
    cluster.kubectl("apply", "--server-side", SAMPLE)
    eventually(lambda: may(cluster, account, "delete", databases))
    allowed = [
        verb
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete")
        if may(cluster, account, verb, databases)
    ]
    assert allowed == ["get", "list", "watch", "patch", "delete"]
    cluster.kubectl("delete", SAMPLE)
    eventually(lambda: not may(cluster, account, "delete", databases))


@pytest.mark.parametrize(
    ("role", "verb", "expected"),
    [("view", "list", True), ("view", "create", False), ("edit", "create", False), ("admin", "patch", False)],
)
def test_the_clusters_own_roles_cover_the_kinds(
    cluster: Cluster, role: str, verb: str, expected: bool
) -> None:
    """A definition makes a CRD, and a Composition acts with the composer's rights."""

    def covered() -> list[bool]:
        rules = flatten(get(cluster, "clusterrole", role)["rules"])
        return [(f"{kind.plural}.{GROUP}", "", verb) in rules for kind in COMPOSITE_KINDS]

    eventually(lambda: covered() == [expected] * len(COMPOSITE_KINDS))


def test_the_pods_fit_the_namespaces_security_level(cluster: Cluster) -> None:
    deployment = yaml.safe_load((COMPOSER / "deployment.yaml").read_text(encoding="utf-8"))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "test-security", "namespace": NAMESPACE},
        "spec": deployment["spec"]["template"]["spec"],
    }
    cluster.kubectl("create", "--dry-run=server", "--filename=-", input=json.dumps(pod))


OURS = {"metadata": {"annotations": {OWNER: "0b7ab2a8-9d1c-4e5c-8f5b-1f1f3c9f3a11"}}}


def crd(name: str, *, ours: bool = False, **spec: Any) -> dict[str, Any]:
    """A CRD; `ours`: as if of a definition."""
    plural, _, group = name.partition(".")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": plural.capitalize().removesuffix("s")}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, **(OURS["metadata"] if ours else {})},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version], **spec},
    }


@pytest.fixture
def other(cluster: Cluster) -> Iterator[str]:
    """A CRD that no definition has to do with."""
    cluster.kubectl("apply", "--server-side", "--filename=-", input=json.dumps(crd(OTHER)))
    yield OTHER
    cluster.kubectl("delete", "crd", OTHER)


NOT_OURS = "writes no CRD but those of CompositeResourceDefinitions"
CONVERSION = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://example.com/convert"},
    },
}


@pytest.mark.parametrize(
    ("command", "value", "refusal"),
    [
        ("create", crd("a.example.com"), NOT_OURS),
        ("create", crd(f"a.x.{GROUP}", ours=True), "does not write crdkeeper's own CRDs"),
        ("create", crd("a.example.com", ours=True, conversion=CONVERSION), "does not write spec.conversion"),
        ("create", crd("a.example.com", ours=True), ""),
        ("delete", crd(OTHER), NOT_OURS),
        ("patch", {"spec": {"names": {"shortNames": ["x"]}}}, NOT_OURS),
        ("patch", {"metadata": {"labels": {"a": "b"}}}, NOT_OURS),
        ("patch", {**OURS, "spec": {"conversion": CONVERSION}}, "does not write spec.conversion"),
        ("patch", OURS, ""),
    ],
)
def test_a_stolen_token_changes_no_other_crd(
    cluster: Cluster, account: Path, other: str, command: str, value: dict[str, Any], refusal: str
) -> None:
    """But a definition can take over a CRD, so the token can."""
    flags = ["--dry-run=server", "--filename=-"]
    text = json.dumps(value)
    if command == "patch":
        flags = ["crd", other, "--dry-run=server", "--type=merge", f"--patch={text}"]
    if command == "create":
        flags.append("--validate=false")

    def answer() -> str:
        try:
            cluster.kubectl(command, *flags, kubeconfig=account, input=text)
        except KubectlError as error:
            return str(error)
        return ""

    # Admission policies take effect some seconds after they are written.
    eventually(lambda: refusal in answer() if refusal else answer() == "")


# From here on a control plane of its own, which a test may leave unusable.


@pytest.fixture
def own(start_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """With crdkeeper and its composer installed."""
    plane = start_plane()
    for each in (f"--kustomize={MANIFESTS}", f"--kustomize={COMPOSER}", SAMPLE):
        plane.kubectl("apply", "--server-side", each)
    plane.kubectl.wait_established(*KINDS)
    return plane


@pytest.fixture
def composer(own: ControlPlane) -> Iterator[Operator]:
    """The composer at work."""
    composer = Operator(own, identity="composer", account=ACCOUNT, command=("compose", "run"))
    composer.start()
    yield composer
    composer.close()


def left(plane: Cluster) -> set[str]:
    """What is there of the composer's manifests."""
    found = plane.kubectl("get", f"--kustomize={COMPOSER}", "--ignore-not-found", "--output=name").split()
    return set(found)


def test_an_uninstall_waits_for_the_definitions(own: ControlPlane, composer: Operator) -> None:
    kubectl = own.kubectl
    value = document(deletion="Orphan")
    kubectl("apply", "--server-side", "--filename=-", input=json.dumps(value))
    kubectl("wait", "--for=condition=Ready", f"cxrd/{NAME}", "--timeout=180s")
    database = {"apiVersion": "platform.example.com/v1", "kind": "Database", "metadata": {"name": "a"}}
    database["spec"] = {"engine": "MySQL"}
    kubectl("create", "--filename=-", input=json.dumps(database))
    needs = f"the CompositeResourceDefinition {NAME} needs the composer"
    uninstall = ("delete", f"--kustomize={COMPOSER}", "--wait=false")
    # Admission policies take effect some seconds after they are written.
    eventually(lambda: kubectl(*uninstall, "--dry-run=server", check=False).count(needs) == GUARDED)
    assert needs in kubectl("delete", "namespace", NAMESPACE, "--dry-run=server", check=False)
    before = left(own)

    # This also deletes the policy that refuses the rest.
    said = kubectl(*uninstall, check=False)

    assert said.count(needs) == GUARDED
    kept = {"customresourcedefinition", "clusterrole", "serviceaccount", "deployment", "role"}
    assert {re.split("[./]", each)[0] for each in left(own)} >= kept
    assert composer.leading()

    # It is complete again after an apply, and after the definitions nothing holds it up.
    kubectl("apply", "--server-side", f"--kustomize={COMPOSER}")
    assert left(own) == before
    kubectl("delete", "cxrd", "--all", "--timeout=180s")
    eventually(lambda: needs not in kubectl(*uninstall, "--dry-run=server", check=False))
    kubectl("delete", f"--kustomize={COMPOSER}", "--timeout=180s")
    assert left(own) == set()
    # deletion: Orphan leaves the API and its objects.
    assert kubectl("get", "databases", "--output=name").split() == ["database.platform.example.com/a"]
