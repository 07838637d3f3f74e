"""Who puts a version back: by the marks of tools, and by the field managers of the CRD."""

from typing import Any

import pytest

from crdkeeper.api.meta import DEFINITION_UID
from crdkeeper.core.retirement.owners import MOST_OWNERS, owners, reminder
from tests.unit.builders import crd


def managed(manager: str, operation: str = "Apply", fields: str = "f:spec", **more: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": {fields: {}}, **more}


@pytest.mark.parametrize(
    ("metadata", "tool", "manager", "words"),
    [
        pytest.param(
            {"annotations": {"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "ops"}},
            "Helm",
            "",
            "release ops/db",
            id="helm",
        ),
        pytest.param({"managedFields": [managed("helm", "Update")]}, "Helm", "helm", "crds/", id="helm-crds"),
        pytest.param(
            {
                "annotations": {"argocd.argoproj.io/tracking-id": "shop:apiextensions.k8s.io/x:ns/n"},
                "managedFields": [managed("argocd-controller")],
            },
            "Argo CD",
            "argocd-controller",
            "Application shop:",
            id="argo",
        ),
        pytest.param(
            {"labels": {"argocd.argoproj.io/instance": "shop"}},
            "Argo CD",
            "",
            "Application shop:",
            id="argo-label",
        ),
        pytest.param(
            {
                "labels": {
                    "kustomize.toolkit.fluxcd.io/name": "apis",
                    "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
                },
                "managedFields": [managed("kustomize-controller")],
            },
            "Flux",
            "kustomize-controller",
            "Kustomization flux-system/apis",
            id="flux",
        ),
        pytest.param(
            {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "kubectl",
            "",
            "`kubectl apply`",
            id="client-side",
        ),
        pytest.param({"managedFields": [managed("kubectl")]}, "kubectl", "kubectl", "the file", id="kubectl"),
        pytest.param(
            {"managedFields": [managed("terraform")]}, "", "terraform", "what that manager", id="other"
        ),
        pytest.param(
            {"annotations": {DEFINITION_UID: "u"}},
            "CompositeResourceDefinition",
            "",
            "change the CompositeResourceDefinition",
            id="composer",
        ),
    ],
)
def test_an_owner(metadata: dict[str, Any], tool: str, manager: str, words: str) -> None:
    (found,) = owners(crd(**metadata))
    assert (found.tool, found.manager) == (tool, manager)
    assert words in found.detail


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(managed("kubectl-edit", "Update"), id="an-edit"),
        pytest.param(managed("crdkeeper"), id="ours"),
        pytest.param(managed("helm", fields="f:metadata"), id="labels-only"),
        pytest.param(managed("helm", subresource="status"), id="status"),
        pytest.param({"manager": "helm", "operation": "Apply"}, id="no-fields"),
    ],
)
def test_who_sends_no_spec_puts_nothing_back(entry: dict[str, Any]) -> None:
    assert owners(crd(managedFields=[entry])) == ()


def test_an_owner_counts_after_its_field_was_taken() -> None:
    """An update takes f:versions from who applied it; the next apply brings the version back."""
    applied = {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {"f:group": {}}}}
    (found,) = owners(crd(managedFields=[applied]))
    assert found.manager == "kubectl"


def test_many_managers_are_bounded() -> None:
    many = [managed(f"m{i}{'x' * 5000}") for i in range(100)]
    found = owners(crd(managedFields=many))
    assert len(found) == MOST_OWNERS
    assert all(len(each.manager.encode()) <= 1024 and len(each.detail.encode()) <= 1024 for each in found)


def test_a_reminder_names_tools_first_and_says_how_many_more() -> None:
    assert reminder(crd(managedFields=[])) == ""
    unknown = [managed(f"m{number}") for number in range(3)]
    release = {"meta.helm.sh/release-name": "a\x1b[2J"}
    said = reminder(crd(annotations=release, managedFields=[*unknown, managed("kustomize-controller")]))
    assert said.startswith("Who applies the CRD may put back a change made elsewhere. Helm: ")
    assert said.index("Flux: ") < said.index('"m0"')
    assert said.endswith("(and 2 more: see status.evidence.owners)")
    assert "\x1b" not in said
