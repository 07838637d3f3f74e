"""Reads kubeconfigs like kubectl: `kubernetes.aio.config` does, but where it differs this decides."""

import asyncio
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import kube_config
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from crdkeeper.core.kubeconfig.context import current_context, user_of
from crdkeeper.core.kubeconfig.credentials import check_plugin, take_id_token
from crdkeeper.core.kubeconfig.impersonation import impersonation
from crdkeeper.core.kubeconfig.proxies import check_proxy, proxy_of


@dataclass(frozen=True, slots=True)
class ContextRead:
    """A context of the kubeconfig, or the one of a pod, which has no name."""

    name: str | None
    namespace: str
    """Empty if none is named."""
    configuration: Configuration
    """The cluster and the credentials."""
    impersonation: tuple[tuple[str, str], ...] = ()
    """Headers that go with the credentials; several may have the same name."""

    def moved(self, later: Self) -> str | None:
        """What differs later though it is no credential; None if nothing does."""
        return next((each for each, value in later._place().items() if value != self._place()[each]), None)

    def _place(self) -> dict[str, Any]:
        """Where requests go, and in whose name: credentials are for nobody else."""
        found = self.configuration
        return {
            "server": found.host,
            "proxy-url": found.proxy,
            "certificate authority": found.ssl_ca_cert,
            "insecure-skip-tls-verify": found.verify_ssl,
            "tls-server-name": found.tls_server_name,
            "impersonated user": self.impersonation,
        }


async def read_context(files: str, context: str | None) -> ContextRead:
    """Read that context, or else the current one. `files` are paths, as in KUBECONFIG.

    Raises KubeconfigError; and ConfigException, OSError, ValueError, TypeError or YAMLError.
    """
    merged = KubeConfigMerger(files)
    documents = merged.config_files.values()
    loader = KubeConfigLoader(
        merged.config, active_context=context or current_context(documents), config_base_path=None
    )
    found = loader.current_context
    user = user_of(documents, found["context"].get("user"))
    headers, loaded = impersonation(user), Configuration()
    if take_id_token(user, time.time()):
        loader.provider = None  # whom the library would ask for another one
    with _listening() as said:
        await loader.load_and_set(loaded)
    check_plugin(user, loaded.api_key.get("BearerToken"), loaded.cert_file, said)
    set_proxy(loaded)
    return ContextRead(found["name"], str(found["context"].get("namespace") or ""), loaded, headers)


def set_proxy(loaded: Configuration) -> None:
    """Add the environment's proxy, unless there is one. Raises KubeconfigError, also for the latter."""
    loaded.proxy = proxy_of(loaded.host, loaded.proxy, os.environ)
    if loaded.proxy:
        check_proxy(loaded.proxy)


@contextmanager
def _listening() -> Iterator[list[str]]:
    """The errors that the library only logs: why an exec plugin gave no credentials.

    They are not logged. If there are other credentials, kubectl would not have run the plugin.
    """
    said: list[str] = []
    task = asyncio.current_task()

    def keep(record: logging.LogRecord) -> bool:
        if record.levelno < logging.ERROR or asyncio.current_task() is not task:
            return True
        said.append(record.getMessage())
        return False

    kube_config.logger.addFilter(keep)
    try:
        yield said
    finally:
        kube_config.logger.removeFilter(keep)
