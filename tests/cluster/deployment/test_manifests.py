"""The manifests on a real control plane: they apply, they are stable, and they grant no more than is used."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.api.definitionpolicy import DefinitionPolicy, DefinitionPolicySpec
from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.kinds import KINDS
from crdkeeper.api.meta import API_VERSION, GROUP, Kind, set_condition
from crdkeeper.api.storagemigration import (
    GroupResource,
    MigrationProgress,
    MigrationSweep,
    MigrationTarget,
    RefusedObject,
    StorageMigrationSpec,
    StorageMigrationStatus,
)
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.api.versionretirement import VersionRetirement
from tests.cluster.deployment.accounts import Rights, eventually, flatten, get, grants, may, rights
from tests.cluster.harness.installation import CRDS, MANIFESTS, NAMESPACE, SERVICE_ACCOUNT
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError

SAMPLES = MANIFESTS / "samples"

ISSUERS = "issuers.cert-manager.io"


@pytest.fixture(scope="module")
def operator(installed: Cluster) -> Path:
    """The kubeconfig of the operator's service account."""
    return installed.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)


@pytest.fixture
def opted_in(installed: Cluster, operator: Path) -> Iterator[Cluster]:
    """The cluster with the sample role that lets the operator rewrite cert-manager's objects."""
    role = f"--filename={SAMPLES / 'rewriter-role.yaml'}"
    installed.kubectl("apply", "--server-side", role)
    eventually(lambda: may(installed, operator, "patch", "certificates.cert-manager.io"))
    yield installed
    installed.kubectl("delete", role)
    eventually(lambda: not may(installed, operator, "patch", "certificates.cert-manager.io"))


@pytest.fixture
def readable(installed: Cluster, operator: Path) -> Iterator[Cluster]:
    """The cluster with the sample role that lets the operator read cert-manager's objects."""
    role = f"--filename={SAMPLES / 'reader-role.yaml'}"
    installed.kubectl("apply", "--server-side", role)
    eventually(lambda: may(installed, operator, "list", ISSUERS))
    yield installed
    installed.kubectl("delete", role)
    eventually(lambda: not may(installed, operator, "list", ISSUERS))


@pytest.fixture
def migration(installed: Cluster) -> Iterator[str]:
    """A migration that exists and finds nothing to do."""
    name = "test-manifests"
    installed.kubectl("create", "--filename=-", input=a_migration(name))
    yield name
    installed.kubectl("delete", "storagemigration", name)


def a_migration(name: str) -> str:
    """A minimal migration."""
    resource = {"group": "manifests.example.com", "resource": "widgets"}
    return manifest("StorageMigration", name, spec={"resource": resource})


def manifest(kind: str, name: str, **fields: Any) -> str:
    """One of our objects as input of kubectl."""
    return json.dumps({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, **fields})


EVERYWHERE = grants(
    {
        "customresourcedefinitions.apiextensions.k8s.io": "get list watch",
        "customresourcedefinitions.apiextensions.k8s.io/status": "patch",
        "storagemigrations.crdkeeper.dev": "get list watch create delete",
        "storagemigrations.crdkeeper.dev/status": "patch",
        "definitionpolicies.crdkeeper.dev": "list watch",
        "definitionpolicies.crdkeeper.dev/status": "patch",
        "definitionreports.crdkeeper.dev": "list watch create patch",
        "definitionreports.crdkeeper.dev/status": "patch",
        "versionconversions.crdkeeper.dev": "get list watch patch",
        "versionconversions.crdkeeper.dev/status": "patch",
        "builtinpolicies.crdkeeper.dev": "get list watch",
        "builtinpolicies.crdkeeper.dev/status": "patch",
        "versionretirements.crdkeeper.dev": "get list watch",
        "versionretirements.crdkeeper.dev/status": "patch",
        "compositions.crdkeeper.dev": "list",
        "compositionrevisions.crdkeeper.dev": "list",
        "apiservices.apiregistration.k8s.io": "list",
        "storageversionmigrations.storagemigration.k8s.io": "list",
        "storageversionmigrations.migration.k8s.io": "list",
        "events.events.k8s.io": "create",
    }
) | grants(
    {f"validatingadmissionpolic{each}.admissionregistration.k8s.io": "get" for each in ("ies", "ybindings")},
    name="crdkeeper-definition-protection",
)
BUNDLES = grants({"configmaps": "get list create patch delete"})
CERTIFICATES = (
    grants({"secrets": "create"})
    | grants({"secrets": "get update"}, name="crdkeeper-webhook-ca")
    | grants({"secrets": "get update"}, name="crdkeeper-webhook-tls")
)
LEASES = "leases.coordination.k8s.io"
OWN_LEASE = grants({LEASES: "create"}) | grants({LEASES: "get update"}, name="crdkeeper-operator")
API_SERVER_LEASES = grants({LEASES: "list"})


def test_a_second_apply_changes_nothing(opted_in: Cluster) -> None:
    # Opted in, because then the control plane has filled in rules of a ClusterRole that we applied.
    def generations() -> dict[str, Any]:
        items = get(opted_in, f"--kustomize={MANIFESTS}")["items"]
        return {each["metadata"]["uid"]: each["metadata"].get("generation") for each in items}

    before = generations()
    opted_in.kubectl("apply", "--server-side", f"--kustomize={MANIFESTS}")
    assert generations() == before
    # The diff shows a status that changes meanwhile, so it may take several attempts.
    diff = ("diff", "--server-side", f"--kustomize={MANIFESTS}")
    eventually(lambda: opted_in.kubectl(*diff, check=False) == "")


@pytest.mark.parametrize("crd", CRDS)
def test_the_crds_are_established_and_structural(installed: Cluster, crd: str) -> None:
    conditions = {each["type"]: each["status"] for each in get(installed, crd)["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_the_api_server_fills_in_the_defaults_of_a_migration(installed: Cluster) -> None:
    args = ("create", "--dry-run=server", "--filename=-", "--output=json")
    made = json.loads(installed.kubectl(*args, input=a_migration("test-defaults")))
    resource = GroupResource(group="manifests.example.com", resource="widgets")
    assert made["spec"] == StorageMigrationSpec(resource=resource).to_object()


@pytest.mark.parametrize("fields", [{}, {"spec": {}}, {"spec": {"storageMigration": {"template": {}}}}])
def test_the_api_server_fills_in_the_defaults_of_a_policy(installed: Cluster, fields: dict[str, Any]) -> None:
    args = ("create", "--dry-run=server", "--filename=-", "--output=json")
    made = json.loads(installed.kubectl(*args, input=manifest("DefinitionPolicy", "test-defaults", **fields)))
    assert DefinitionPolicy.model_validate(made).spec == DefinitionPolicySpec()
    assert made["spec"]["groups"] == ["*"]
    assert made["spec"]["storageMigration"] == DefinitionPolicySpec().storage_migration.to_object()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("resource", {"resource": "gadgets"}),
        ("resource", {"group": None}),
        ("mode", "Plan"),
        ("managedBy", "crdkeeper.dev/cli"),
    ],
)
def test_what_a_migration_is_about_is_immutable(
    installed: Cluster, migration: str, field: str, value: Any
) -> None:
    patch = json.dumps({"spec": {field: value}})
    with pytest.raises(KubectlError, match=f"spec.{field}: Forbidden: {field} is immutable"):
        installed.kubectl("patch", "storagemigration", migration, "--type=merge", f"--patch={patch}")


def test_how_a_migration_runs_can_change(installed: Cluster, migration: str) -> None:
    patch = json.dumps({"spec": {"suspend": True, "limits": {"maxConcurrency": 1}}})
    installed.kubectl("patch", "storagemigration", migration, "--type=merge", f"--patch={patch}")


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({}, "spec.resource: Required"),
        ({"resource": {"resource": "Widgets"}}, "spec.resource.resource"),
        ({"resource": {"resource": "widgets"}, "mode": "Try"}, "spec.mode: Unsupported value"),
        ({"resource": {"resource": "widgets"}, "limit": {}}, 'unknown field "spec.limit"'),
    ],
)
def test_a_wrong_spec_is_refused(installed: Cluster, spec: dict[str, Any], complaint: str) -> None:
    with pytest.raises(KubectlError, match=complaint):
        installed.kubectl(
            "create", "--filename=-", input=manifest("StorageMigration", "test-wrong", spec=spec)
        )


def test_a_status_is_stored_whole_and_shown_in_columns(installed: Cluster, migration: str) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    status = StorageMigrationStatus.model_validate({"progress": {}, "quarantine": {}})
    set_condition(
        status.conditions, "Succeeded", "Unknown", "Rewriting", "Going on.", generation=1, now=moment
    )
    status.target = MigrationTarget.model_validate(
        {"storageVersion": "v2", "endpointVersion": "v2", "kind": "Widget", "namespaced": True}
    )
    status.sweep = MigrationSweep(type="Rewrite", continue_token="abc", scanned=40)
    status.progress = MigrationProgress(
        total=1 << 33,
        rewritten=30,
        current=9,
        quarantined=1,
        percent=40,
        objects_per_second=300,
        remaining="2m",
    )
    status.quarantine.objects = [RefusedObject(name="w", code=422, reason="Invalid", message="No.")]
    status.start_time = moment
    written = status.to_object()

    patch = json.dumps({"status": written})
    where = ("storagemigration", migration, "--subresource=status")
    installed.kubectl("patch", *where, "--type=merge", f"--patch={patch}")

    assert get(installed, "storagemigration", migration)["status"] == written
    columns = ["NAME", "SUCCEEDED", "REASON", "STORAGE", "PERCENT", "RATE", "ETA", "REWRITTEN", "REFUSED"]
    values = [migration, "Unknown", "Rewriting", "v2", "40", "300", "2m", "30", "1"]
    header, row = installed.kubectl("get", "smig", migration).splitlines()
    assert header.split() == [*columns, "AGE"]
    assert row.split()[:-1] == values
    header, row = installed.kubectl("get", "smig", migration, "--output=wide").splitlines()
    assert header.split() == [*columns, "CURRENT", "TOTAL", "COORDINATOR", "MESSAGE", "AGE"]
    assert row.split()[:-1] == [*values, "9", str(1 << 33), "Going", "on."]


COUNTS = ("SELECTED", "OUTDATED", "FAILING", "PROTECTED")


def test_the_columns_of_a_policy(installed: Cluster) -> None:
    name = "test-columns"
    spec = {"groups": ["manifests.example.com"], "storageMigration": {"mode": "Disabled"}}
    installed.kubectl("create", "--filename=-", input=manifest("DefinitionPolicy", name, spec=spec))
    header = installed.kubectl("get", "defpol", name).splitlines()[0]
    installed.kubectl("delete", "defpol", name)
    assert header.split() == ["NAME", "READY", "REASON", *COUNTS, "AGE"]


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        ("default", EVERYWHERE),
        (NAMESPACE, EVERYWHERE | OWN_LEASE | BUNDLES | CERTIFICATES),
        ("kube-system", EVERYWHERE | API_SERVER_LEASES),
    ],
)
def test_the_operator_may_do_exactly_what_it_does(
    installed: Cluster, operator: Path, namespace: str, expected: Rights
) -> None:
    # Excludes what all service accounts may do, and what other tests have opted in to.
    anybody = installed.service_account_kubeconfig("default", "default")
    roles = (
        "crdkeeper-rewriter",
        "crdkeeper-reader",
        "crdkeeper-releaser",
        "crdkeeper-retirer",
        "crdkeeper-conversion",
    )

    def granted() -> Rights:
        opted_in = set().union(
            *(flatten(get(installed, "clusterrole", each)["rules"] or []) for each in roles)
        )
        return rights(installed, operator, namespace) - rights(installed, anybody, namespace) - opted_in

    # What another test has granted may still be in force when its role is gone.
    eventually(lambda: granted() == expected, lambda: str(granted() ^ expected))


@pytest.mark.parametrize(
    ("verb", "resource", "where"),
    [
        ("patch", "certificates.cert-manager.io", {}),
        ("list", "certificates.cert-manager.io", {}),
        ("update", "customresourcedefinitions.apiextensions.k8s.io", {}),
        ("delete", "customresourcedefinitions.apiextensions.k8s.io", {}),
        ("patch", "customresourcedefinitions.apiextensions.k8s.io", {"name": "widgets.example.com"}),
        ("patch", "storagemigrations.crdkeeper.dev", {}),
        ("get", "secrets", {}),
        ("get", "configmaps", {}),
        ("get", "secrets", {"namespace": NAMESPACE, "name": "another"}),
        ("list", "secrets", {"namespace": NAMESPACE}),
        ("get", LEASES, {"namespace": NAMESPACE, "name": "another"}),
        ("update", LEASES, {"namespace": "kube-system"}),
    ],
)
def test_the_operator_may_not(
    installed: Cluster, operator: Path, verb: str, resource: str, where: dict[str, str]
) -> None:
    # What another test has granted may still be in force when its role is gone.
    eventually(lambda: not may(installed, operator, verb, resource, **where))


def test_the_webhook_reads_its_rules_and_nothing_else(installed: Cluster) -> None:
    webhook = installed.service_account_kubeconfig(NAMESPACE, "crdkeeper-webhook")
    anybody = installed.service_account_kubeconfig("default", "default")
    expectations: dict[str, Rights] = {
        "default": set(),
        NAMESPACE: grants({"configmaps": "get list watch"}) | grants({"namespaces": "get"}, name=NAMESPACE),
    }

    def granted() -> dict[str, Rights]:
        return {
            each: rights(installed, webhook, each) - rights(installed, anybody, each) for each in expectations
        }

    eventually(lambda: granted() == expectations, lambda: str(granted()))


def test_a_labelled_role_lets_the_operator_rewrite(opted_in: Cluster, operator: Path) -> None:
    verbs = ("get", "list", "patch", "watch", "create", "update", "delete")
    certificates = "certificates.cert-manager.io"
    assert [verb for verb in verbs if may(opted_in, operator, verb, certificates)] == ["get", "list", "patch"]
    assert not may(opted_in, operator, "patch", "orders.acme.cert-manager.io")


def test_a_labelled_role_lets_the_operator_read(readable: Cluster, operator: Path) -> None:
    verbs = ("get", "list", "patch", "watch", "create", "update", "delete")
    assert [verb for verb in verbs if may(readable, operator, verb, ISSUERS)] == ["get", "list"]
    assert not may(readable, operator, "list", "orders.acme.cert-manager.io")


@pytest.mark.parametrize(
    ("role", "verb", "expected"),
    [("view", "list", True), ("view", "create", False), ("edit", "create", True), ("admin", "delete", True)],
)
def test_the_clusters_own_roles_cover_our_kinds(
    installed: Cluster, role: str, verb: str, expected: bool
) -> None:
    def covered(kind: type[Kind]) -> bool:
        rules = get(installed, "clusterrole", role)["rules"]
        return (f"{kind.plural}.{GROUP}", "", verb) in flatten(rules)

    # Only the operator may write reports; rules decide what everyone reads; a retirement takes an API away.
    guarded = (DefinitionReport, VersionConversion, VersionRetirement)
    wanted = {kind: expected and (verb == "list" or kind not in guarded) for kind in KINDS}
    eventually(lambda: all(covered(kind) is each for kind, each in wanted.items()))


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_samples_are_accepted(installed: Cluster, sample: Path) -> None:
    installed.kubectl("apply", "--dry-run=server", f"--filename={sample}")


def test_the_webhook_is_accepted(installed: Cluster) -> None:
    installed.kubectl("apply", "--server-side", "--dry-run=server", f"--kustomize={MANIFESTS / 'webhook'}")


@pytest.mark.parametrize("path", ["operator/deployment.yaml", "webhook/deployment.yaml", "samples/job.yaml"])
def test_the_pods_fit_the_namespaces_security_level(installed: Cluster, path: str) -> None:
    (template,) = (
        each["spec"]["template"]
        for each in yaml.safe_load_all((MANIFESTS / path).read_text(encoding="utf-8"))
        if each["kind"] in {"Deployment", "Job"}
    )
    metadata = {"name": "test-security", "namespace": NAMESPACE}
    # With the operator's account, because that of a sample that is not applied does not exist.
    spec = {**template["spec"], "serviceAccountName": SERVICE_ACCOUNT}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    installed.kubectl("create", "--dry-run=server", "--filename=-", input=json.dumps(pod))
