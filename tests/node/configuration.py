"""The configuration of each program of a node, and the reasons for unusual settings."""

import json
from pathlib import Path
from typing import Any

from tests.controlplane.pki import Pki
from tests.node.machines import POD_NETWORK, Machine, pod_range
from tests.node.programs import Programs

DOMAIN = "cluster.local"
SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "crdkeeper.test/pause:1"
_CAP_SYS_RESOURCE = 24


def containerd(programs: Programs, networks: Path) -> str:
    """containerd's configuration. It uses the default paths, because the machine has its own directories."""
    # Docker and some virtual machines withhold that right, and then no container starts.
    restricted = str(not _may(_CAP_SYS_RESOURCE)).lower()
    return f"""
version = 3
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = {restricted}
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{programs.cni}"]
    conf_dir = "{networks}"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    runtime_path = "{programs.shim}"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "{programs.runc}"
      SystemdCgroup = false
"""


def network(machine: Machine) -> dict[str, Any]:
    """The pods' network: a virtual cable from each pod to its machine, which routes.

    With the usual bridge, a pod could reach another one on its machine through a Service only if the kernel
    passed bridged packets through netfilter.
    """
    ranges = [[{"subnet": pod_range(machine.index)}]]
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "ipam": {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]},
            }
        ],
    }


def kubelet(machine: Machine, pki: Pki, *, dns: str) -> dict[str, Any]:
    """The kubelet's configuration."""
    empty = machine.files / "resolv.conf"
    empty.touch()
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": machine.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki.ca_file)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki.serving_certificate),
        "tlsPrivateKeyFile": str(pki.serving_key),
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{machine.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDNS": [dns],
        "clusterDomain": DOMAIN,
        # Pods use only the cluster's DNS.
        "resolvConf": str(empty),
        # The disk is the developer's: its usage does not concern this node.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        # A lost node is noticed after 40 seconds by default, and a test must not wait longer than that.
        "nodeStatusUpdateFrequency": "5s",
    }


def kube_proxy(machine: Machine, kubeconfig: Path) -> dict[str, Any]:
    """kube-proxy's configuration. It must not set conntrack's size, which belongs to the real machine."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": machine.name,
        "bindAddress": machine.address,
        "clusterCIDR": POD_NETWORK,
        "detectLocalMode": "ClusterCIDR",
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def coredns(address: str, kubeconfig: Path) -> str:
    """CoreDNS's configuration: only the cluster's own names, because there is no way out."""
    return f"""
{DOMAIN}:53 {{
    bind {address}
    errors
    ready {address}:8181
    kubernetes {DOMAIN} {{
        kubeconfig {kubeconfig}
        ttl 1
    }}
}}
.:53 {{
    bind {address}
    errors
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def write(path: Path, content: str | dict[str, Any]) -> Path:
    """Writes a configuration, as JSON (which is YAML) if it is not text; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
    return path


def _may(capability: int) -> bool:
    (effective,) = (
        line.split()[1]
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("CapEff:")
    )
    return bool(int(effective, 16) >> capability & 1)
