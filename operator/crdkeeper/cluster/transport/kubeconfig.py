"""Reads kubeconfigs like kubectl: `kubernetes.aio.config` does, but where it differs this decides."""

from dataclasses import dataclass

from kubernetes.aio.client import Configuration
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from crdkeeper.core.kubeconfig.context import current_context


@dataclass(frozen=True, slots=True)
class ContextRead:
    """A context of the kubeconfig: the cluster with the credentials, and the namespace (empty if none)."""

    name: str
    configuration: Configuration
    namespace: str


async def read_context(files: str, context: str | None) -> ContextRead:
    """Read that context, or else the current one. `files` are paths, as in KUBECONFIG.

    Raises ConfigException, OSError, ValueError, TypeError or YAMLError.
    """
    merged = KubeConfigMerger(files)
    loader = KubeConfigLoader(
        merged.config,
        active_context=context or current_context(merged.config_files.values()),
        config_base_path=None,
    )
    loaded = Configuration()
    await loader.load_and_set(loaded)
    found = loader.current_context
    return ContextRead(found["name"], loaded, found["context"].get("namespace") or "")
