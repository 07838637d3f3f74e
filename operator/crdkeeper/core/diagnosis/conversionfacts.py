"""The facts behind ConversionReady: the webhook that a CRD names, and the results of probing it."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from crdkeeper.core.diagnosis.certificates import Certificate, Handshake
from crdkeeper.core.diagnosis.probes import Failure


@dataclass(frozen=True, slots=True)
class WebhookFacts:
    """spec.conversion.webhook of a CRD, as far as it decides whether the API server can call it."""

    url: str
    """clientConfig.url; empty if it names a Service."""
    namespace: str
    service: str
    port: int
    """The port of the Service; 443 by default."""
    ca_bundle: bytes
    """PEM; empty if there is none, or only white space, which the API server treats as none."""

    def __str__(self) -> str:
        return f"webhook {self.url}" if self.url else f"webhook Service {self.namespace}/{self.service}"


class Read(Enum):
    """The result of reading an object at one version."""

    CONVERTED = "Converted"
    """Read, and certainly stored at another version: the webhook was called."""
    UNCERTAIN = "Uncertain"
    """Read, but possibly stored at this version: several versions are stored."""
    STORED = "Stored"
    """Read at the only version that is stored: nothing to convert."""
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class VersionRead:
    """The read of one object at one served version."""

    version: str
    outcome: Read
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ConversionProbe:
    """The results of a probe, all of limited size."""

    reads: tuple[VersionRead, ...] = ()
    """A read at each served version; empty if there is no object."""
    example: str = ""
    """The object that was read, as `namespace/name` or `name`."""
    failure: Failure | None = None
    """Why the search for an object failed."""
    bundle: tuple[Certificate, ...] = ()
    """The certificates of the caBundle."""
    bundle_error: str = ""
    """Why the caBundle cannot be parsed."""
    serving: Handshake | None = None
    """None if the webhook was not dialled."""
    early: bool = False
    """Whether the CRD had changed just before, so that the API server may have used its previous state."""


def conversion_appliers(crd: Mapping[str, Any]) -> frozenset[str]:
    """The field managers that have applied spec.conversion of a CRD object."""
    return frozenset(
        str(each.get("manager") or "")
        for each in crd["metadata"].get("managedFields") or ()
        if each.get("operation") == "Apply"
        and "f:conversion" in ((each.get("fieldsV1") or {}).get("f:spec") or {})
    )


def conversion_webhook(crd: Mapping[str, Any]) -> WebhookFacts | None:
    """The webhook of a CRD object; None with the strategy None."""
    conversion = crd["spec"].get("conversion") or {}
    client = (conversion.get("webhook") or {}).get("clientConfig")
    if conversion.get("strategy") != "Webhook" or not client:
        return None
    service = client.get("service") or {}
    try:
        bundle = base64.b64decode(client.get("caBundle") or "")
    except (binascii.Error, ValueError):
        bundle = b"(not base64)"
    return WebhookFacts(
        url=client.get("url") or "",
        namespace=service.get("namespace") or "",
        service=service.get("name") or "",
        port=service.get("port") or 443,
        ca_bundle=bundle if bundle.strip() else b"",
    )
