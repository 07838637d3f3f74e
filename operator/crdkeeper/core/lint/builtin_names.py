"""The names that Kubernetes' own resources have for kubectl.

Those of Kubernetes 1.37: ShortNames of each resource's storage in k8s.io/kubernetes/pkg/registry.
"""

SHORT_NAMES = {
    "cj": "cronjobs",
    "cm": "configmaps",
    "crd": "customresourcedefinitions",
    "crds": "customresourcedefinitions",
    "cs": "componentstatuses",
    "csr": "certificatesigningrequests",
    "deploy": "deployments",
    "ds": "daemonsets",
    "ep": "endpoints",
    "ev": "events",
    "hpa": "horizontalpodautoscalers",
    "ing": "ingresses",
    "ip": "ipaddresses",
    "limits": "limitranges",
    "netpol": "networkpolicies",
    "no": "nodes",
    "ns": "namespaces",
    "pc": "priorityclasses",
    "pdb": "poddisruptionbudgets",
    "po": "pods",
    "pv": "persistentvolumes",
    "pvc": "persistentvolumeclaims",
    "quota": "resourcequotas",
    "rc": "replicationcontrollers",
    "rs": "replicasets",
    "sa": "serviceaccounts",
    "sc": "storageclasses",
    "sts": "statefulsets",
    "svc": "services",
    "vac": "volumeattributesclasses",
}
"""Short names, and the resource of each."""

_KINDS = (
    *(
        "Pod",
        "Service",
        "Node",
        "Namespace",
        "Secret",
        "ConfigMap",
        "Event",
        "ServiceAccount",
        "PersistentVolume",
    ),
    *(
        "PersistentVolumeClaim",
        "ReplicationController",
        "ResourceQuota",
        "LimitRange",
        "PodTemplate",
        "Deployment",
    ),
    *(
        "DaemonSet",
        "StatefulSet",
        "ReplicaSet",
        "ControllerRevision",
        "Job",
        "CronJob",
        "HorizontalPodAutoscaler",
    ),
    *("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "VolumeAttachment", "CSIDriver"),
    *(
        "CSINode",
        "RuntimeClass",
        "Lease",
        "EndpointSlice",
        "PodDisruptionBudget",
        "PriorityLevelConfiguration",
    ),
    *("FlowSchema", "ValidatingAdmissionPolicy", "CertificateSigningRequest", "CustomResourceDefinition"),
)
_PLURALS_IN_ES = {
    "Ingress": "ingresses",
    "IngressClass": "ingressclasses",
    "NetworkPolicy": "networkpolicies",
    "PriorityClass": "priorityclasses",
    "StorageClass": "storageclasses",
    "Endpoints": "endpoints",
}

LONG_NAMES = {
    **{name: f"{kind.lower()}s" for kind in _KINDS for name in (kind.lower(), f"{kind.lower()}s")},
    **{name: plural for kind, plural in _PLURALS_IN_ES.items() for name in (kind.lower(), plural)},
}
"""Singular and plural names, and the plural."""
