"""spec.conversion of a CRD: what our webhook needs it to be, and who owns it."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_address
from typing import Any, Self
from urllib.parse import urlsplit

from crdkeeper.core.diagnosis.conversionfacts import WebhookFacts, conversion_appliers


class ConversionOwner(Enum):
    """Who converts between the versions of a CRD."""

    NOBODY = "Nobody"
    """Strategy None: only apiVersion is changed."""
    OURS = "Ours"
    OTHER = "Other"
    """Another webhook."""


@dataclass(frozen=True, slots=True)
class WebhookAddress:
    """Where API servers reach our webhook: a Service, or a URL for one outside the cluster.

    Without either, nowhere.
    """

    namespace: str = ""
    service: str = ""
    port: int = 443
    url: str = ""
    """`https://host:port`, without a path; replaces the Service."""

    @classmethod
    def of(cls, client_config: Mapping[str, Any], path: str) -> Self:
        """The address that a clientConfig names for this path; nowhere if it names none, or half of one."""
        service = client_config.get("service")
        if service is not None:
            namespace, name = service.get("namespace"), service.get("name")
            return cls(namespace, name, service.get("port", 443)) if namespace and name else cls()
        return cls(url=(client_config.get("url") or "").removesuffix(path))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the serving certificate must have."""
        if self.url:
            host = urlsplit(self.url).hostname or ""
            try:
                return (str(ip_address(host)),)  # in the form of certificates: an IPv6 address has many
            except ValueError:
                return (host,)
        name = f"{self.service}.{self.namespace}.svc"
        return (name, f"{name}.cluster.local", f"{self.service}.{self.namespace}")

    def client_config(self, definition: str) -> dict[str, Any]:
        """clientConfig for a CRD, without a caBundle."""
        return self.at(conversion_path(definition))

    def at(self, path: str) -> dict[str, Any]:
        """clientConfig for a path, without a caBundle."""
        if self.url:
            return {"url": self.url + path}
        service = {"namespace": self.namespace, "name": self.service, "path": path, "port": self.port}
        return {"service": service}

    def serves(self, webhook: WebhookFacts) -> bool:
        """Whether a CRD's webhook is this one, whatever its path."""
        if self.url:
            return webhook.url.startswith(f"{self.url}/")
        return (webhook.namespace, webhook.service, webhook.port) == (
            self.namespace,
            self.service,
            self.port,
        )

    @property
    def host(self) -> str:
        """`https://host:port`, as it is reached in the cluster."""
        return self.url or f"https://{self.service}.{self.namespace}.svc:{self.port}"

    def __str__(self) -> str:
        return self.url or f"Service {self.namespace}/{self.service}"


def conversion_path(definition: str) -> str:
    """Where our webhook converts the objects of a CRD."""
    return f"/convert/{definition}"


def serving_address(conversion: Mapping[str, Any]) -> WebhookAddress:
    """Where a VersionConversion says that its rules are served; nowhere if it does not say it."""
    # Nothing in the schema of a status is required.
    config = (conversion.get("status") or {}).get("clientConfig") or {}
    return WebhookAddress.of(config, conversion_path(conversion["metadata"]["name"]))


def wanted_conversion(address: WebhookAddress, definition: str, bundle: str) -> dict[str, Any]:
    """spec.conversion with that PEM bundle as trusted certificates."""
    config = address.client_config(definition) | {"caBundle": base64.b64encode(bundle.encode()).decode()}
    return {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": config},
    }


def holder(crd: Mapping[str, Any], address: WebhookAddress) -> ConversionOwner:
    """Who converts at present."""
    conversion = crd["spec"].get("conversion") or {}
    if conversion.get("strategy") != "Webhook":
        return ConversionOwner.NOBODY
    config = _client_config(crd)
    wanted = address.client_config(crd["metadata"]["name"])
    if address.url:
        return ConversionOwner.OURS if config.get("url") == wanted["url"] else ConversionOwner.OTHER
    service = config.get("service") or {}
    return ConversionOwner.OURS if {"port": 443, **service} == wanted["service"] else ConversionOwner.OTHER


def configured_by(crd: Mapping[str, Any], manager: str) -> bool:
    """Whether that field manager has applied spec.conversion."""
    return manager in conversion_appliers(crd)


def trusts(crd: Mapping[str, Any], bundle: str) -> bool:
    """Whether a CRD has exactly this PEM bundle."""
    try:
        found = base64.b64decode(_client_config(crd).get("caBundle") or "")
    except binascii.Error:
        return False
    return found.decode(errors="replace").strip() == bundle.strip()


def describe(crd: Mapping[str, Any]) -> str:
    """Describe the webhook of a CRD."""
    return described(_client_config(crd))


def described(client_config: Mapping[str, Any]) -> str:
    """A webhook in words, with all by which it is told from others."""
    service = client_config.get("service")
    if service is None:
        return str(client_config.get("url") or "a webhook")
    port, path = service.get("port", 443), service.get("path") or ""
    return f"Service {service.get('namespace')}/{service.get('name')}:{port}{path}"


def _client_config(crd: Mapping[str, Any]) -> Mapping[str, Any]:
    webhook = ((crd.get("spec") or {}).get("conversion") or {}).get("webhook") or {}
    config: Mapping[str, Any] = webhook.get("clientConfig") or {}
    return config
