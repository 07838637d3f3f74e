"""What the API server's messages about failed conversions mean.

The texts come from webhook_converter.go (apiextensions-apiserver), from ResolveEndpoint (apiserver,
util/proxy), from client-go's rest client, and from Go's net, net/http and crypto/x509. They are not an API:
unrecognized messages are shown unchanged, with a reason that makes no promises.
"""

import re
from enum import Enum


class Cause(Enum):
    """What to look at."""

    UNREACHABLE = "Unreachable"
    """No connection: no Service, no endpoints, no route, or nothing listens."""
    CERTIFICATE = "Certificate"
    """The API server does not trust the certificate of what it reached."""
    EXPIRED = "Expired"
    """The certificate has expired, or is not valid yet."""
    TIMEOUT = "Timeout"
    """It did not answer in time."""
    ANSWER = "Answer"
    """Its answer is not a ConversionReview that the API server accepts."""
    REFUSED = "Refused"
    """The webhook itself refused the object, or the message is unknown."""


_BLAMES_WEBHOOK = re.compile(r"conversion webhook for .*?, Kind=\S+ (?:failed:? |returned ).*", re.DOTALL)
_TRANSPORT = re.compile(r'Post "[^"]*": ')
"""How net/http begins the error of a request without response; a webhook's own messages differ."""

_CERTIFICATE = re.compile(r"x509: |tls: |server gave HTTP response to HTTPS client")
_EXPIRED = re.compile(r"certificate has expired")
_TIMEOUT = re.compile(r"context deadline exceeded|Client\.Timeout|TLS handshake timeout")
_ANSWER = re.compile(
    r"returned \d+ objects, expected|returned invalid|expected webhook response of|no response provided"
    r"|expected response\.uid=|response\.result\.status was|no objects returned|unexpected type"
    r"|json: |invalid character|unexpected end of JSON|'Kind' is missing|couldn't get version/kind|no kind \""
    r"|an error on the server \(|the server could not find the requested resource"
    r"|the server rejected our request|the server has asked for the client to provide credentials"
    r"|the server does not allow this method|the server is currently unable to handle the request"
    r"|0-length response|failed: unknown$"
    r"|the server was unable to return a response|the server responded with the status code"
)


def blames_webhook(message: str) -> bool:
    """Whether the API server names the conversion webhook as the cause."""
    return _BLAMES_WEBHOOK.search(message) is not None


def is_unconverted(message: str) -> bool:
    """Whether an object could not be read because it could not be converted."""
    # For a version that was removed from spec.versions, the API server does not even call the webhook.
    return blames_webhook(message) or "request to convert CR" in message


def essence(message: str) -> str:
    """The part about the webhook, without the text around it: `StorageError: corrupt object, Code: 7, …`."""
    found = _BLAMES_WEBHOOK.search(message)
    return (found[0] if found else message).rstrip(".")


def classify(message: str) -> Cause:
    """The cause in the API server's message."""
    transport = _TRANSPORT.search(message)
    if transport is None:
        return Cause.ANSWER if _ANSWER.search(message) else Cause.REFUSED
    said = message[transport.end() :]
    if _CERTIFICATE.search(said):
        return Cause.EXPIRED if _EXPIRED.search(said) else Cause.CERTIFICATE
    return Cause.TIMEOUT if _TIMEOUT.search(said) else Cause.UNREACHABLE
