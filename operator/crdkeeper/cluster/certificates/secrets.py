"""The two Secrets of the webhook's certificates: reads them as facts, and writes them without conflicts.

One holds the CAs with their keys; only the operator reads it. The other holds what the webhook serves and
what its clients trust, and is mounted into its pods. Each write names the resourceVersion that was read: of
two concurrent operators, one is refused and reads again.

If the second one is not labelled as ours, or if cert-manager manages it, it is never written.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography import x509

from crdkeeper.api.meta import FIELD_MANAGER, GROUP, format_time
from crdkeeper.cluster.certificates.issuing import (
    KeyPair,
    anchor_of,
    certificates_in,
    fingerprint,
    key_fits,
    names_of,
    pairs_in,
    to_pem,
)
from crdkeeper.cluster.transport.client import Client, find
from crdkeeper.core.certificates.facts import Authority, CertificateFacts, StoredCertificate

CA_SECRET = "crdkeeper-webhook-ca"
TLS_SECRET = "crdkeeper-webhook-tls"
LABEL, OURS = "app.kubernetes.io/managed-by", "crdkeeper"
SINCE = f"{GROUP}/serving-since"
_CERT_MANAGER = "cert-manager.io/certificate-name"
_TLS_TYPE = "kubernetes.io/tls"

_Secret = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredSecrets:
    """Both Secrets as read."""

    authorities: tuple[KeyPair, ...] = ()
    """The CAs whose key we have, newest first."""
    bundle: tuple[x509.Certificate, ...] = ()
    bundle_pem: bytes = b""
    """The text from which the bundle was read."""
    chain: tuple[x509.Certificate, ...] = ()
    """What is served: the certificate itself, and the others sent with it."""
    key_pem: bytes = b""
    since: datetime | None = None
    """When the certificate was written, if that is recorded."""
    ca_secret: _Secret | None = None
    tls_secret: _Secret | None = None
    ca_is_ours: bool = True
    tls_is_ours: bool = True
    """Also true if there is none."""

    @property
    def serving(self) -> x509.Certificate | None:
        """The certificate that can be served: its key is present."""
        if self.chain and key_fits(self.chain[0], self.key_pem):
            return self.chain[0]
        return None


class CertificateSecrets:
    """Both Secrets of one namespace. All methods raise ApiError (409: read again) or Unreachable."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/secrets"

    async def read(self) -> StoredSecrets:
        """Read both Secrets."""
        tls = await self._get(TLS_SECRET)
        ca = await self._get(CA_SECRET)
        bundle = _data(tls, "ca.crt")
        return StoredSecrets(
            authorities=tuple(pairs_in(_data(ca, "ca.crt"), _data(ca, "ca.key"))),
            bundle=tuple(certificates_in(bundle)),
            bundle_pem=bundle,
            chain=tuple(certificates_in(_data(tls, "tls.crt"))),
            key_pem=_data(tls, "tls.key"),
            since=_time(_annotations(tls).get(SINCE)),
            ca_secret=ca,
            tls_secret=tls,
            ca_is_ours=_is_ours(ca),
            tls_is_ours=_is_ours(tls),
        )

    async def write_authorities(self, seen: StoredSecrets, authorities: Sequence[KeyPair]) -> None:
        """Store exactly these CAs."""
        data = {
            "ca.crt": b"".join(each.certificate_pem for each in authorities),
            "ca.key": b"".join(each.key_pem for each in authorities),
        }
        await self._write(CA_SECRET, seen.ca_secret, "Opaque", data, {})

    async def write_serving(
        self, seen: StoredSecrets, bundle: Iterable[x509.Certificate], serving: KeyPair | None, now: datetime
    ) -> None:
        """Store this bundle, and that certificate if there is one."""
        data = {"ca.crt": b"".join(map(to_pem, bundle))}
        annotations = {}
        if serving is not None:
            data |= {"tls.crt": serving.certificate_pem, "tls.key": serving.key_pem}
            annotations[SINCE] = format_time(now)
        await self._write(TLS_SECRET, seen.tls_secret, _TLS_TYPE, data, annotations)

    async def _get(self, name: str) -> dict[str, Any] | None:
        return await find(self._client, f"{self._path}/{name}")

    async def _write(
        self,
        name: str,
        seen: _Secret | None,
        type_: str,
        data: Mapping[str, bytes],
        annotations: Mapping[str, str],
    ) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        query = f"?fieldManager={FIELD_MANAGER}"
        if seen is None:
            metadata = {"name": name, "labels": {LABEL: OURS}, "annotations": dict(annotations)}
            body = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": metadata,
                "type": type_,
                "data": encoded,
            }
            await self._client.request("POST", self._path + query, body)
            return
        # Keep everything that others added.
        metadata = {**seen["metadata"], "annotations": {**_annotations(seen), **annotations}}
        body = {**seen, "metadata": metadata, "data": {**(seen.get("data") or {}), **encoded}}
        await self._client.request("PUT", f"{self._path}/{name}{query}", body)


def facts_of(seen: StoredSecrets, since: datetime) -> CertificateFacts:
    """The facts that a decision needs. `since` is when the serving certificate was stored."""
    own = [each.certificate for each in seen.authorities]
    serving = seen.serving
    return CertificateFacts(
        authorities=tuple(_authority(each) for each in own),
        bundle=tuple(_authority(each) for each in seen.bundle),
        serving=None if serving is None else _serving(serving, seen, own, since),
        tidy=seen.bundle_pem == b"".join(map(to_pem, seen.bundle)),
    )


def _serving(
    found: x509.Certificate, seen: StoredSecrets, own: Sequence[x509.Certificate], since: datetime
) -> StoredCertificate:
    anchor = anchor_of(found, seen.chain[1:], [*seen.bundle, *own])
    return StoredCertificate(
        id=fingerprint(found),
        issuer="" if anchor is None else fingerprint(anchor),
        names=names_of(found),
        not_before=found.not_valid_before_utc,
        not_after=found.not_valid_after_utc,
        since=since,
    )


def _authority(found: x509.Certificate) -> Authority:
    return Authority(fingerprint(found), found.not_valid_before_utc, found.not_valid_after_utc)


def _annotations(secret: _Secret | None) -> dict[str, str]:
    return dict(((secret or {}).get("metadata") or {}).get("annotations") or {})


def _is_ours(secret: _Secret | None) -> bool:
    if secret is None:
        return True
    labels = secret["metadata"].get("labels") or {}
    return labels.get(LABEL) == OURS and _CERT_MANAGER not in _annotations(secret)


def _data(secret: _Secret | None, key: str) -> bytes:
    try:
        return base64.b64decode(((secret or {}).get("data") or {}).get(key) or "")
    except binascii.Error:  # the API server rejects it, a proxy may not
        return b""


def _time(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
