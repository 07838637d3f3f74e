"""X.509 certificates: those in a caBundle, and the one that a webhook serves."""

import asyncio
import ssl
from urllib.parse import urlsplit

from cryptography import x509

from crdkeeper.cluster.transport.tls import verifying
from crdkeeper.core.diagnosis.certificates import Certificate, Handshake
from crdkeeper.core.diagnosis.conversionfacts import WebhookFacts

SECONDS = 5.0
"""The time limit for both handshakes together."""
_UNREADABLE = (ValueError, x509.InvalidVersion)
"""What cryptography raises for a certificate that it cannot parse."""


def parse_bundle(pem: bytes) -> tuple[tuple[Certificate, ...], str]:
    """The certificates of a PEM bundle, or the reason why there are none; neither if there is no bundle."""
    if not pem:
        return (), ""
    try:
        return tuple(_certificate(each) for each in x509.load_pem_x509_certificates(pem)), ""
    except _UNREADABLE as error:
        return (), " ".join(str(error).split()).rstrip(".")


def _certificate(found: x509.Certificate) -> Certificate:
    return Certificate(
        subject=found.subject.rfc4514_string(),
        issuer=found.issuer.rfc4514_string(),
        not_before=found.not_valid_before_utc,
        not_after=found.not_valid_after_utc,
    )


async def served_certificate(webhook: WebhookFacts) -> Handshake:
    """Shake hands as the API server would, then hang up; no HTTP request is sent.

    A Service is dialled by its name in the cluster's DNS, which resolves only inside the cluster.
    """
    try:
        host, port = _address(webhook)
    except ValueError as error:
        return Handshake(webhook.url, error=str(error))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        async with asyncio.timeout(SECONDS):
            return await _served(address, host, port, webhook.ca_bundle)
    except TimeoutError:
        return Handshake(address, error=f"no TLS handshake within {SECONDS:g} seconds")
    except ConnectionRefusedError:
        return Handshake(address, error="connection refused")
    except (OSError, *_UNREADABLE) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Handshake(address, error=" ".join(said.split()).rstrip("."))


def _address(webhook: WebhookFacts) -> tuple[str, int]:
    """Raises ValueError: the API server accepts URLs with impossible ports, for example."""
    if not webhook.url:
        return f"{webhook.service}.{webhook.namespace}.svc", webhook.port
    parts = urlsplit(webhook.url)
    return parts.hostname or "", parts.port or 443


async def _served(address: str, host: str, port: int, bundle: bytes) -> Handshake:
    context = verifying(ca_data=bundle.decode("ascii", errors="ignore") if bundle else None)
    try:
        return Handshake(address, await _handshake(host, port, context))
    except ssl.SSLCertVerificationError as error:
        refused = error.verify_message.rstrip(".")
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return Handshake(address, await _handshake(host, port, context), refused, untrusted=True)


async def _handshake(host: str, port: int, context: ssl.SSLContext) -> Certificate:
    """The peer's certificate. Raises OSError (which includes ssl.SSLError), or ValueError for a bad one."""
    _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=host)
    try:
        encoded = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.transport.abort()
    if not encoded:
        raise ValueError("no certificate was served")
    return _certificate(x509.load_der_x509_certificate(encoded))
