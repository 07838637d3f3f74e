"""The manifests as text: errors that no cluster would notice, such as a forgotten file or an old version."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.api.compositekinds import COMPOSITE_KINDS
from crdkeeper.api.kinds import KINDS
from crdkeeper.api.meta import GROUP, Kind
from crdkeeper.controllers.composite.metrics import ComposingMetrics
from crdkeeper.controllers.compositeresourcedefinition.metrics import CompositeMetrics
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.webhook.metrics import WebhookMetrics as WebhookMetrics

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def exposed() -> set[str]:
    """The names of the metrics of all processes."""
    metrics = OperatorMetrics()
    registries = metrics.registry, WebhookMetrics().registry
    CompositeMetrics(metrics.registry, metrics.composer_writes)
    ComposingMetrics(metrics.registry, metrics.composer_writes)
    families = [family for each in registries for family in each.collect()]
    return {f"{each.name}_total" if each.type == "counter" else each.name for each in families}


def load(path: Path) -> Any:
    """The only document of a file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def alerts() -> list[dict[str, Any]]:
    """The rules of all alerts."""
    (group,) = load(MANIFESTS / "monitoring/prometheusrule.yaml")["spec"]["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def test_the_installation_leaves_out_what_is_optional() -> None:
    assert load(MANIFESTS / "kustomization.yaml")["resources"] == ["../crds", "operator", "rbac", "webhook"]


def test_conversion_can_be_left_out() -> None:
    whole = load(MANIFESTS / "kustomization.yaml")
    without = load(MANIFESTS / "without-conversion/kustomization.yaml")
    assert without["resources"] == ["../../crds", "../operator", "../rbac"]
    assert without["labels"] == whole["labels"]


@pytest.mark.parametrize("folder", ["operator", "rbac", "monitoring", "webhook", "changes", "composer"])
def test_no_file_is_forgotten(folder: str) -> None:
    files = {path.name for path in (MANIFESTS / folder).iterdir()} - {"kustomization.yaml"}
    listed = load(MANIFESTS / folder / "kustomization.yaml")["resources"]
    assert {each for each in listed if not each.startswith("..")} == files


def verbs(file: str, role: str, resource: str, group: str = GROUP) -> set[str]:
    """The verbs that a ClusterRole allows on a resource."""
    documents = yaml.safe_load_all((MANIFESTS / "rbac" / file).read_text(encoding="utf-8"))
    (found,) = (
        each for each in documents if each["kind"] == "ClusterRole" and each["metadata"]["name"] == role
    )
    rules = [each for each in found["rules"] if group in each["apiGroups"] and resource in each["resources"]]
    return {verb for each in rules for verb in each["verbs"]}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("file", "role", "suffix", "needed"),
    [
        ("operator.yaml", "crdkeeper-operator", "", {"list", "watch"}),
        ("operator.yaml", "crdkeeper-operator", "/status", {"patch"}),
        ("users.yaml", "crdkeeper-view", "", {"get", "list", "watch"}),
    ],
)
def test_each_kind_is_in_the_cluster_roles(
    kind: type[Kind], file: str, role: str, suffix: str, needed: set[str]
) -> None:
    resource = kind.plural + suffix
    missing = sorted(needed - verbs(file, role, resource))
    assert not missing, f"manifests/rbac/{file}: ClusterRole {role} needs {missing} on {resource}"


@pytest.mark.parametrize(
    ("file", "role"),
    [
        ("rbac/operator.yaml", "crdkeeper-operator"),
        ("composer/rbac.yaml", "crdkeeper-composer"),
        ("samples/job.yaml", "crdkeeper-migrate-certificates"),
    ],
)
def test_who_reviews_rights_may_do_so_where_not_everybody_may(file: str, role: str) -> None:
    assert verbs(f"../{file}", role, "selfsubjectaccessreviews", "authorization.k8s.io") == {"create"}


@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("retirement.md", "crdkeeper retire"),
        ("retirement.md", "crdkeeper retire undo"),
        ("finalizers.md", "crdkeeper finalizers --release"),
        ("rehearsal.md", "crdkeeper rehearse"),
    ],
)
def test_so_may_who_has_the_documented_rights_of_a_command(page: str, command: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (block,) = re.findall(rf"```yaml\n# {command}\n(.*?)```", text, re.DOTALL)
    rules = yaml.safe_load(block)["rules"]
    review = {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"]}
    assert {**review, "verbs": ["create"]} in rules


@pytest.mark.parametrize(
    "kind", [each for each in KINDS if "spec" in each.model_fields], ids=lambda kind: kind.__name__
)
def test_a_kind_that_users_write_is_in_a_role_for_them(kind: type[Kind]) -> None:
    roles = [
        ("rbac/users.yaml", "crdkeeper-edit"),
        ("rbac/retirer.yaml", "crdkeeper-retirement-admin"),
        ("webhook/users.yaml", "crdkeeper-conversion-admin"),
    ]
    written = [role for file, role in roles if "create" in verbs(f"../{file}", role, kind.plural)]
    assert written, f"manifests/rbac/users.yaml: no ClusterRole lets users create {kind.plural}"


@pytest.mark.parametrize("kind", COMPOSITE_KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("file", "role"), [("rbac.yaml", "crdkeeper-composer"), ("users.yaml", "crdkeeper-composition-view")]
)
def test_each_kind_of_the_composer_is_in_its_cluster_roles(kind: type[Kind], file: str, role: str) -> None:
    missing = sorted({"get", "list", "watch"} - verbs(f"../composer/{file}", role, kind.plural))
    assert not missing, f"manifests/composer/{file}: ClusterRole {role} needs {missing} on {kind.plural}"


def test_each_kind_of_the_composer_is_kept_while_definitions_exist() -> None:
    policy, _ = yaml.safe_load_all((MANIFESTS / "composer/uninstall.yaml").read_text(encoding="utf-8"))
    (names,) = (
        each["resourceNames"]
        for each in policy["spec"]["matchConstraints"]["resourceRules"]
        if "customresourcedefinitions" in each["resources"]
    )
    assert sorted(names) == sorted(f"{each.plural}.{GROUP}" for each in COMPOSITE_KINDS)


def test_what_the_composer_works_with_is_kept_while_definitions_exist() -> None:
    """All but what users, networks and drains need."""
    policy, _ = yaml.safe_load_all((MANIFESTS / "composer/uninstall.yaml").read_text(encoding="utf-8"))
    kept = {
        (resource, name)
        for each in policy["spec"]["matchConstraints"]["resourceRules"]
        for resource in each["resources"]
        for name in each["resourceNames"]
    }
    needed = [
        (f"{each['kind'].lower()}s", each["metadata"]["name"])
        for file in ("rbac.yaml", "serviceaccount.yaml", "deployment.yaml")
        for each in yaml.safe_load_all((MANIFESTS / "composer" / file).read_text(encoding="utf-8"))
    ]
    assert [each for each in needed if each not in kept] == []
    assert ("namespaces", "crdkeeper-system") in kept


def test_a_job_of_several_pods_has_the_rights_of_a_job_of_one() -> None:
    one, several = (
        list(yaml.safe_load_all((MANIFESTS / "samples" / file).read_text(encoding="utf-8")))
        for file in ("job.yaml", "sharded-job.yaml")
    )
    assert several[:-1] == one[:-1]
    job = several[-1]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert (job["completionMode"], f"--shards={job['completions']}") == ("Indexed", container["args"][-1])


def test_whoever_has_a_share_for_rewrites_writes_about_them_outside_of_it() -> None:
    documents = yaml.safe_load_all((MANIFESTS / "priority/flowschemas.yaml").read_text(encoding="utf-8"))
    subjects = {
        each["metadata"]["name"]: [subject for rule in each["spec"]["rules"] for subject in rule["subjects"]]
        for each in documents
    }
    assert len(subjects["crdkeeper-migrations"]) == 2
    assert subjects["crdkeeper-operator-records"] == subjects["crdkeeper-migrations"]


@pytest.mark.parametrize(
    "path",
    ["manifests/samples/job.yaml", "manifests/samples/sharded-job.yaml", "Dockerfile", "kind-config.yaml"],
)
def test_the_image_is_of_this_version(path: str) -> None:
    (image,) = load(MANIFESTS / "operator/kustomization.yaml")["images"]
    assert image["newTag"] == VERSION
    for part in ("webhook", "composer"):
        assert load(MANIFESTS / part / "kustomization.yaml")["images"] == [image]
    named = re.findall(rf"{image['newName']}:(\S+)", (ROOT / path).read_text(encoding="utf-8"))
    assert set(named) == {VERSION}


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_says_what_to_do(alert: dict[str, Any]) -> None:
    heading = alert["alert"].removeprefix("Crdkeeper").lower()
    assert alert["annotations"].keys() == {"summary", "description", "runbook"}
    assert alert["annotations"]["runbook"] == f"docs/operating.md#{heading}"
    assert alert["labels"].keys() == {"severity"}
    assert alert["for"]


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_looks_at_metrics_that_exist(alert: dict[str, Any]) -> None:
    assert set(re.findall(r"crdkeeper_\w+", alert["expr"])) <= exposed()


def test_each_metric_is_documented() -> None:
    pages = "".join(each.read_text(encoding="utf-8") for each in (ROOT / "docs").glob("*.md"))
    assert [each for each in sorted(exposed()) if re.search(rf"`{each}[`{{]", pages) is None] == []


@pytest.mark.parametrize("part", ["operator", "composer"])
def test_prometheus_scrapes_operator_and_composer(part: str) -> None:
    monitor, service = (
        load(MANIFESTS / "monitoring/servicemonitor.yaml"),
        load(MANIFESTS / part / "service.yaml"),
    )
    (expression,) = monitor["spec"]["selector"]["matchExpressions"]
    assert service["metadata"]["labels"][expression["key"]] in expression["values"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {each["name"] for each in service["spec"]["ports"]}


@pytest.mark.parametrize("part", ["operator", "composer"])
def test_pods_log_json(part: str) -> None:
    (container,) = load(MANIFESTS / part / "deployment.yaml")["spec"]["template"]["spec"]["containers"]
    assert "--log-format=json" in container["args"]


@pytest.mark.parametrize("part", ["operator", "webhook", "composer"])
def test_services_have_the_families_of_the_cluster(part: str) -> None:
    assert load(MANIFESTS / part / "service.yaml")["spec"]["ipFamilyPolicy"] == "PreferDualStack"


@pytest.mark.parametrize(
    ("part", "open_to_all"), [("operator", []), ("webhook", ["https"]), ("composer", [])]
)
def test_only_conversions_can_be_reached_from_everywhere(part: str, open_to_all: list[str]) -> None:
    policy = load(MANIFESTS / part / "networkpolicy.yaml")["spec"]
    pod = load(MANIFESTS / part / "deployment.yaml")["spec"]["template"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert policy["policyTypes"] == ["Ingress"]
    ports = {each["name"] for each in pod["spec"]["containers"][0]["ports"]}
    ingress = policy["ingress"]
    assert {port["port"] for each in ingress for port in each["ports"]} == ports
    assert [port["port"] for each in ingress if "from" not in each for port in each["ports"]] == open_to_all
