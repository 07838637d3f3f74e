"""Recognises the types of Kubernetes' own API that CRDs embed: a pod's spec, a label selector, a condition.

Their shape is given. What a linter would say of them, the author could not follow.
"""

from collections.abc import Mapping
from typing import Any

# By a property that few other types have: the properties that must stand beside it. The types are those of
# k8s.io/api/core/v1 and of k8s.io/apimachinery/pkg/apis/meta/v1.
_SIGNATURES: dict[str, tuple[frozenset[str], ...]] = {
    "containers": (frozenset(("initContainers", "nodeSelector", "serviceAccountName", "volumes")),),
    "terminationMessagePath": (frozenset(("image", "imagePullPolicy")),),
    "podAntiAffinity": (frozenset(("nodeAffinity", "podAffinity")),),
    "nodeSelectorTerms": (frozenset(),),
    "tolerationSeconds": (frozenset(("effect", "key", "operator")),),
    "matchExpressions": (frozenset(("matchLabels",)), frozenset(("matchFields",))),
    "whenUnsatisfiable": (frozenset(("maxSkew", "topologyKey")),),
    "valueFrom": (frozenset(("name", "value")),),
    "configMapRef": (frozenset(("prefix", "secretRef")),),
    "persistentVolumeClaim": (frozenset(("emptyDir", "hostPath")),),
    "accessModes": (frozenset(("resources", "volumeMode")), frozenset(("capacity",))),
    "limits": (frozenset(("requests",)),),
    "seLinuxOptions": (frozenset(("runAsUser", "seccompProfile")),),
    "fsGroupChangePolicy": (frozenset(("fsGroup",)),),
    "failureThreshold": (frozenset(("periodSeconds", "httpGet")),),
    "preStop": (frozenset(("postStart",)),),
    "externalTrafficPolicy": (frozenset(("clusterIP", "ports")),),
    "stabilizationWindowSeconds": (frozenset(("policies", "selectPolicy")),),
    "clusterTrustBundle": (frozenset(("configMap", "secret")),),
    "resourceVersion": (frozenset(("apiVersion", "fieldPath", "kind", "name", "uid")),),
    "lastTransitionTime": (frozenset(("message", "reason", "status", "type")),),
    "xKubernetesPreserveUnknownFields": (frozenset(),),
}


def is_borrowed(properties: Mapping[str, Any]) -> bool:
    """Whether these are the properties of a type of Kubernetes."""
    for key in _SIGNATURES.keys() & properties.keys():
        if any(beside <= properties.keys() for beside in _SIGNATURES[key]):
            return True
    return False
