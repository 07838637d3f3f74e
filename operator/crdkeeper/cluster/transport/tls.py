"""Trusts what Go's programs trust: what kubectl and the API server accept is accepted, and nothing else.

Python's defaults differ in both directions: since 3.13 it rejects CAs without key identifiers, which many
clusters have; before 3.13 it rejects a CA file with only an intermediate CA; and without a subjectAltName it
uses the common name as host name. One difference remains: of two CAs with the same name and without key
identifiers, OpenSSL tries only the first, Go both.
"""

import ssl
from pathlib import Path


class ClientContext(ssl.SSLContext):
    """Expects its own name in certificates, whatever the host of the connection."""

    server_name: str | None = None
    renewed: ssl.SSLContext | None = None
    """What new connections use instead: it has another client certificate."""

    def __repr__(self) -> str:
        """Without an address in memory: aiohttp puts it into messages, which must be the same each time."""
        return "verified"

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Called by asyncio and uvloop for each connection."""
        if self.renewed is not None:
            return self.renewed.wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        return super().wrap_bio(incoming, outgoing, server_side, self.server_name or server_hostname, session)


def verifying(
    *, ca_file: Path | str | None = None, ca_data: str | bytes | None = None, server_name: str | None = None
) -> ClientContext:
    """A client's context that verifies chain and host as crypto/x509 does (https://pkg.go.dev/crypto/x509).

    Args:
        ca_file: the CAs to trust, in PEM; any certificate in it is an anchor.
        ca_data: the same as text (or as DER, in bytes). Without both, the system's CAs are trusted.
        server_name: the name that the certificate must have, if not the host of the URL: `tls-server-name` in
            https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/.

    Raises:
        OSError: the file, or its content (then ssl.SSLError), cannot be read.
        ValueError: `ca_data` is empty.
    """
    context = ClientContext(ssl.PROTOCOL_TLS_CLIENT)
    context.server_name = server_name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if ca_file is None and ca_data is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cafile=ca_file, cadata=ca_data)
    return context
