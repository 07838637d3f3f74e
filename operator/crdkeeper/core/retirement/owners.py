"""Who applies a CRD, and so puts a version back that was taken away in the cluster only.

Server-side apply takes a field from its manager when another one changes it, but the next apply brings it
back. So it counts who applies the CRD at all, not who owns spec.versions now.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from crdkeeper.api.meta import DEFINITION_UID, FIELD_MANAGER
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.core.retirement.evidence import Applier
from crdkeeper.core.text import visible

MOST_OWNERS: Final = 20
_NAMED: Final = 3
"""Owners that a condition names."""
_HELM: Final = "meta.helm.sh/release-name"
_HELM_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_ARGO_ID: Final = "argocd.argoproj.io/tracking-id"
_ARGO_LABEL: Final = "argocd.argoproj.io/instance"
_FLUX_KUSTOMIZATION: Final = "kustomize.toolkit.fluxcd.io"
_FLUX_RELEASE: Final = "helm.toolkit.fluxcd.io"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_CLIENT_SIDE: Final = "kubectl-client-side-apply"
_OURS: Final = (FIELD_MANAGER, "crdkeeper-conversion", "crdkeeper-composer")
_TOOLS: Final = {
    "helm": "Helm",
    "helm-controller": "Flux",
    "kustomize-controller": "Flux",
    "argocd-controller": "Argo CD",
    "argocd-application-controller": "Argo CD",
    "kubectl": "kubectl",
    _CLIENT_SIDE: "kubectl",
}
"""Tools by the field managers that they use."""


def owners(crd: Mapping[str, Any]) -> tuple[Applier, ...]:
    """Everybody who shows as applying a CRD, each tool once; at most MOST_OWNERS."""
    metadata = crd["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    managers = dict(_appliers(metadata.get("managedFields") or ()))
    found = [*_marked(labels, annotations)]
    tools = {tool for tool, _ in found}
    listed = [
        Applier(
            tool,
            next((each for each in managers if _TOOLS.get(each) == tool), ""),
            bounded(detail, LINE_BYTES),
        )
        for tool, detail in found
    ]
    for manager, operation in managers.items():
        tool = _TOOLS.get(manager, "")
        if not tool or tool not in tools:
            listed.append(Applier(tool, bounded(manager, LINE_BYTES), _detail(tool, manager, operation)))
            tools.add(tool)
    return tuple(listed[:MOST_OWNERS])


def reminder(crd: Mapping[str, Any]) -> str:
    """Who may put back what is changed in the cluster only, as sentences; empty if nobody applies the CRD."""
    # Any client may have applied it once; a tool that keeps CRDs does so again and again.
    found = sorted(owners(crd), key=lambda each: not each.tool)
    if not found:
        return ""
    named = [f"{each.tool}: {each.detail}" if each.tool else each.detail for each in found[:_NAMED]]
    more = len(found) - len(named)
    rest = f" (and {more} more: see status.evidence.owners)" if more else ""
    return f"Who applies the CRD may put back a change made elsewhere. {visible(' '.join(named))}{rest}"


def _marked(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Tools that mark what is theirs, with what to change."""
    if annotations.get(DEFINITION_UID):
        yield (
            "CompositeResourceDefinition",
            "The composer makes this CRD: change the CompositeResourceDefinition of the same name.",
        )
    for group, kind in ((_FLUX_KUSTOMIZATION, "Kustomization"), (_FLUX_RELEASE, "HelmRelease")):
        if name := labels.get(f"{group}/name"):
            where = labels.get(f"{group}/namespace", "")
            yield "Flux", f"The labels name the {kind} {where}/{name}: change its source in Git."
    if annotations.get(_ARGO_ID) or labels.get(_ARGO_LABEL):
        name = annotations.get(_ARGO_ID, "").partition(":")[0] or labels.get(_ARGO_LABEL, "")
        yield "Argo CD", f"It is marked as part of the Application {name}: change its source in Git."
    if release := annotations.get(_HELM):
        where = annotations.get(_HELM_NAMESPACE, "")
        yield "Helm", f"The annotations name the release {where}/{release}: change its chart."
    if annotations.get(_LAST_APPLIED):
        yield "kubectl", "It was applied by `kubectl apply`: change the file that was applied."


def _appliers(entries: Any) -> Iterator[tuple[str, str]]:
    """Managers with something in spec: those who apply, and tools that are known to send whole objects."""
    for each in entries:
        manager, operation = each.get("manager", ""), each.get("operation", "")
        in_spec = "f:spec" in (each.get("fieldsV1") or {})
        sends_all = operation == "Apply" or (manager in _TOOLS and manager != "kubectl")
        if in_spec and sends_all and not each.get("subresource") and manager not in _OURS:
            yield manager, operation


def _detail(tool: str, manager: str, operation: str) -> str:
    how = "server-side apply" if operation == "Apply" else "updates"
    where = {
        "Helm": "the chart. Helm never changes CRDs in a chart's folder crds/, so it puts nothing back there",
        "": "what that manager applies",
        "kubectl": "the file that was applied",
    }.get(tool, "its source in Git")
    return bounded(f'The field manager "{manager}" sets spec ({how}): change {where}.', LINE_BYTES)
