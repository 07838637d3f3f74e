"""Recognizes the types of Kubernetes' own API that CRDs embed: a pod's spec, a label selector, a condition.

Their structure is given, so authors could not act on findings in them.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

# By a property that few other types have: the properties that must accompany it. The types are those of
# k8s.io/api/core/v1 and of k8s.io/apimachinery/pkg/apis/meta/v1.
_SIGNATURES: dict[str, tuple[frozenset[str], ...]] = {
    "containers": (
        frozenset(("initContainers", "nodeSelector", "serviceAccountName", "volumes")),
        frozenset(("ephemeralContainers", "initContainers")),
    ),
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
    "podFailurePolicy": (frozenset(("backoffLimit", "completions")),),
    "startingDeadlineSeconds": (frozenset(("jobTemplate", "schedule")),),
    "ttlSecondsAfterFinished": (frozenset(("backoffLimit", "parallelism", "template")),),
    "unhealthyPodEvictionPolicy": (frozenset(("maxUnavailable", "minAvailable")),),
    "xKubernetesPreserveUnknownFields": (frozenset(),),
    "x-kubernetes-preserve-unknown-fields": (frozenset(("properties",)),),
}


_NAME_AND_OPTIONAL = frozenset(("name", "optional"))
_IN_GROUP = frozenset(("apiGroup", "kind", "name"))

# Types with so few properties that a different one may be an author's own: the properties that all releases
# of the type have, and those that some add.
_WHOLE: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    # ObjectMeta, of which code generators keep what users may set
    (
        frozenset(("annotations", "labels")),
        frozenset(
            (
                *("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers"),
                *("generateName", "generation", "managedFields", "name", "namespace", "ownerReferences"),
                *("resourceVersion", "selfLink", "uid"),
            )
        ),
    ),
    # OwnerReference
    (
        frozenset(("apiVersion", "kind", "name", "uid")),
        frozenset(("blockOwnerDeletion", "controller")),
    ),
    # SecretKeySelector and ConfigMapKeySelector; SecretEnvSource and ConfigMapEnvSource
    (_NAME_AND_OPTIONAL, frozenset(("key",))),
    # ObjectFieldSelector, ResourceFieldSelector
    (frozenset(("apiVersion", "fieldPath")), frozenset()),
    (frozenset(("containerName", "divisor", "resource")), frozenset()),
    # EnvVarSource
    (
        frozenset(("configMapKeyRef", "secretKeyRef")),
        frozenset(("fieldRef", "fileKeyRef", "resourceFieldRef")),
    ),
    # TypedLocalObjectReference, TypedObjectReference, RoleRef, Subject; CrossVersionObjectReference
    (_IN_GROUP, frozenset(("namespace",))),
    (frozenset(("apiVersion", "kind", "name")), frozenset()),
    # SecretReference
    (frozenset(("name", "namespace")), frozenset()),
    # LabelSelectorRequirement, NodeSelectorRequirement
    (frozenset(("key", "operator", "values")), frozenset()),
    # KeyToPath
    (frozenset(("key", "mode", "path")), frozenset(("user",))),
    # ConfigMapVolumeSource, SecretVolumeSource
    (_NAME_AND_OPTIONAL | {"defaultMode", "items"}, frozenset(("defaultUser",))),
    (frozenset(("defaultMode", "items", "optional", "secretName")), frozenset(("defaultUser",))),
    # VolumeMount, VolumeDevice
    (
        frozenset(("mountPath", "name", "readOnly", "subPath")),
        frozenset(("bindMountOptions", "mountPropagation", "recursiveReadOnly", "subPathExpr")),
    ),
    (frozenset(("devicePath", "name")), frozenset()),
    # ContainerPort, ServicePort, NetworkPolicyPort
    (frozenset(("containerPort", "protocol")), frozenset(("hostIP", "hostPort", "name"))),
    (
        frozenset(("name", "port", "protocol", "targetPort")),
        frozenset(("appProtocol", "nodePort")),
    ),
    (frozenset(("port", "protocol")), frozenset(("endPort",))),
    # HostAlias, PodDNSConfig, Capabilities, SELinuxOptions, SeccompProfile
    (frozenset(("hostnames", "ip")), frozenset()),
    (frozenset(("nameservers", "options", "searches")), frozenset()),
    (frozenset(("add", "drop")), frozenset()),
    (frozenset(("level", "role", "type", "user")), frozenset()),
    (frozenset(("localhostProfile", "type")), frozenset()),
    # HTTPGetAction
    (frozenset(("host", "httpHeaders", "path", "port", "scheme")), frozenset(("protocol",))),
    # PolicyRule, WebhookClientConfig, RuleWithOperations
    (
        frozenset(("apiGroups", "resources", "verbs")),
        frozenset(("nonResourceURLs", "resourceNames")),
    ),
    (frozenset(("caBundle", "service", "url")), frozenset()),
    (frozenset(("apiGroups", "apiVersions", "operations", "resources")), frozenset(("scope",))),
    # IngressTLS, LoadBalancerIngress
    (frozenset(("hosts", "secretName")), frozenset()),
    (frozenset(("hostname", "ip")), frozenset(("ipMode", "ports"))),
    # DeploymentStrategy, RollingUpdateDeployment
    (frozenset(("rollingUpdate", "type")), frozenset()),
    (frozenset(("maxSurge", "maxUnavailable")), frozenset()),
    # EphemeralVolumeSource and its template, EmptyDirVolumeSource
    (frozenset(("volumeClaimTemplate",)), frozenset()),
    (frozenset(("medium", "sizeLimit")), frozenset(("mode",))),
    # NetworkPolicyPeer, IPBlock
    (frozenset(("ipBlock", "namespaceSelector", "podSelector")), frozenset()),
    (frozenset(("cidr", "except")), frozenset()),
    # PodAffinityTerm, WeightedPodAffinityTerm, PreferredSchedulingTerm
    (
        frozenset(("labelSelector", "namespaces", "topologyKey")),
        frozenset(("matchLabelKeys", "mismatchLabelKeys", "namespaceSelector")),
    ),
    (frozenset(("podAffinityTerm", "weight")), frozenset()),
    (frozenset(("preference", "weight")), frozenset()),
    # MetricSpec and HPAScalingPolicy of autoscaling/v2
    (
        frozenset(("external", "object", "pods", "resource", "type")),
        frozenset(("containerResource",)),
    ),
    (frozenset(("periodSeconds", "type", "value")), frozenset()),
)

_BY_SIZE = {
    size: [(core, core | more) for core, more in _WHOLE if len(core) <= size <= len(core | more)]
    for size in range(1, 20)
}


_OFTEN = Counter(key for core, _ in _WHOLE for key in core)
_RARE = frozenset((*_SIGNATURES, *(min(core, key=lambda key: (_OFTEN[key], key)) for core, _ in _WHOLE)))
"""A property of each type, the one that fewest of them have; most types of authors have none of these."""


def is_borrowed(properties: Mapping[str, Any]) -> bool:
    """Whether these are the properties of a Kubernetes type."""
    if _RARE.isdisjoint(properties):
        return False
    for key in _SIGNATURES.keys() & properties.keys():
        if any(beside <= properties.keys() for beside in _SIGNATURES[key]):
            return True
    alike = _BY_SIZE.get(len(properties), ())
    return any(core <= properties.keys() <= whole for core, whole in alike)
