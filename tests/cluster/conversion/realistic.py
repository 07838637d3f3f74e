"""Objects as users write them, for CRDs of the corpus: at the old version, and converted to the new one."""

from typing import Any

REALISTIC: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "machinehealthchecks": (
        {
            "clusterName": "prod",
            "selector": {"matchLabels": {"nodepool": "workers"}},
            "maxUnhealthy": "40%",
            "nodeStartupTimeout": "10m0s",
            "unhealthyConditions": [
                {"type": "Ready", "status": "Unknown", "timeout": "5m0s"},
                {"type": "Ready", "status": "False", "timeout": "300s"},
            ],
            "remediationTemplate": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "Metal3RemediationTemplate",
                "name": "reboot",
                "namespace": "default",
            },
        },
        {
            "clusterName": "prod",
            "selector": {"matchLabels": {"nodepool": "workers"}},
            "checks": {
                "nodeStartupTimeoutSeconds": 600,
                "unhealthyNodeConditions": [
                    {"type": "Ready", "status": "Unknown", "timeoutSeconds": 300},
                    {"type": "Ready", "status": "False", "timeoutSeconds": 300},
                ],
            },
            "remediation": {
                "triggerIf": {"unhealthyLessThanOrEqualTo": "40%"},
                "templateRef": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "Metal3RemediationTemplate",
                    "name": "reboot",
                },
            },
        },
    ),
    "machines": (
        {
            "clusterName": "prod",
            "version": "v1.33.1",
            "bootstrap": {
                "configRef": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
                    "kind": "KubeadmConfig",
                    "name": "worker-1",
                    "namespace": "default",
                }
            },
            "infrastructureRef": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha7",
                "kind": "OpenStackMachine",
                "name": "worker-1",
            },
            "nodeDrainTimeout": "15m",
            "readinessGates": [{"conditionType": "NetworkReady", "polarity": "Positive"}],
        },
        {
            "clusterName": "prod",
            "version": "v1.33.1",
            "bootstrap": {
                "configRef": {
                    "apiGroup": "bootstrap.cluster.x-k8s.io",
                    "kind": "KubeadmConfig",
                    "name": "worker-1",
                }
            },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io",
                "kind": "OpenStackMachine",
                "name": "worker-1",
            },
            "deletion": {"nodeDrainTimeoutSeconds": 900},
            "readinessGates": [{"conditionType": "NetworkReady", "polarity": "Positive"}],
        },
    ),
    "kubeadmconfigs": (
        {
            "clusterConfiguration": {
                "clusterName": "prod",
                "apiServer": {
                    "extraArgs": {"v": "4", "audit-log-path": "/var/log/audit.log"},
                    "timeoutForControlPlane": "4m0s",
                },
            },
            "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": {"node-labels": "pool=a"}}},
            "files": [{"path": "/etc/motd", "content": "hello\n", "permissions": "0644"}],
        },
        {
            "clusterConfiguration": {
                "apiServer": {
                    "extraArgs": [
                        {"name": "audit-log-path", "value": "/var/log/audit.log"},
                        {"name": "v", "value": "4"},
                    ]
                }
            },
            "initConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 240}},
            "joinConfiguration": {
                "nodeRegistration": {"kubeletExtraArgs": [{"name": "node-labels", "value": "pool=a"}]}
            },
            "files": [{"path": "/etc/motd", "content": "hello\n", "permissions": "0644"}],
        },
    ),
    "clusters": (
        {
            "clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}},
            "topology": {
                "class": "openstack",
                "classNamespace": "classes",
                "version": "v1.33.1",
                "variables": [{"name": "flavor", "definitionFrom": "inline", "value": {"cpus": 4}}],
                "workers": {
                    "machineDeployments": [
                        {
                            "class": "worker",
                            "name": "md-0",
                            "replicas": 3,
                            "nodeDrainTimeout": "1m0s",
                            "machineHealthCheck": {"enable": True, "maxUnhealthy": 1},
                            "strategy": {
                                "type": "RollingUpdate",
                                "rollingUpdate": {"maxSurge": 1, "deletePolicy": "Oldest"},
                            },
                        }
                    ]
                },
            },
        },
        {
            "clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}},
            "topology": {
                "classRef": {"name": "openstack", "namespace": "classes"},
                "version": "v1.33.1",
                "variables": [{"name": "flavor", "value": {"cpus": 4}}],
                "workers": {
                    "machineDeployments": [
                        {
                            "class": "worker",
                            "name": "md-0",
                            "replicas": 3,
                            "deletion": {"nodeDrainTimeoutSeconds": 60, "order": "Oldest"},
                            "healthCheck": {
                                "enabled": True,
                                "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": 1}},
                            },
                            "rollout": {
                                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
                            },
                        }
                    ]
                },
            },
        },
    ),
    "ipaddressclaims": (
        {"clusterName": "prod", "poolRef": {"apiGroup": "ipam.example.com", "kind": "Pool", "name": "a"}},
        {"clusterName": "prod", "poolRef": {"apiGroup": "ipam.example.com", "kind": "Pool", "name": "a"}},
    ),
}
"""By the CRD's plural: the spec at v1beta1, and at v1beta2."""
