"""The serving certificate: read from files that may change at any time, for handshakes from then on."""

import logging
import os
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from cryptography import x509

_log = logging.getLogger(__name__)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # API servers do not resume sessions.
    context.num_tickets = 0
    return context


@dataclass(slots=True)
class PortCertificate:
    """The certificate in use; open connections keep the one that they began with."""

    context: ssl.SSLContext = field(default_factory=_context)
    """Listens with the certificate that is current at each handshake."""
    expires: float = 0.0
    _latest: ssl.SSLContext = field(default_factory=_context)

    def __post_init__(self) -> None:
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        connection.context = self._latest

    def use(self, certificate: bytes, key: bytes) -> None:
        """Use this one from now on. Raises OSError, SSLError or ValueError if it is unusable."""
        # A context that was given a mismatched certificate and key ends up without a key.
        latest = _context()
        # OpenSSL reads files only, and the mounted ones may change between two looks at them.
        with _in_memory(certificate) as first, _in_memory(key) as second:
            latest.load_cert_chain(f"/proc/self/fd/{first.fileno()}", f"/proc/self/fd/{second.fileno()}")
        self.expires = x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()
        self._latest = latest


@dataclass(slots=True)
class CertificateFiles:
    """The files of a certificate and its key."""

    certificate: Path
    key: Path
    serving: PortCertificate = field(default_factory=PortCertificate)
    content: tuple[bytes, bytes] = (b"", b"")
    """The certificate and the key that were usable last."""

    def found(self) -> bool:
        """Load the files; False if they do not exist yet. Raises what `refresh` raises."""
        try:
            self.refresh()
        except FileNotFoundError:
            return False
        return True

    def refresh(self) -> bool:
        """Load changed files; returns whether they have changed.

        Raises OSError, SSLError or ValueError if they are unusable.
        """
        content = self.certificate.read_bytes(), self.key.read_bytes()
        if content == self.content:
            return False
        self.serving.use(*content)
        self.content = content
        expires = time.strftime("%F", time.gmtime(self.serving.expires))
        _log.info("Serving with the certificate that expires on %s.", expires)
        return True


def _in_memory(content: bytes) -> BinaryIO:
    file = os.fdopen(os.memfd_create("certificate"), "wb")
    file.write(content)
    file.flush()
    return file
