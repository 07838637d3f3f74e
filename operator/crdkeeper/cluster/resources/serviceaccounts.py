"""Tokens of ServiceAccounts, by TokenRequest: for the API server itself, and for a short time."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from crdkeeper.cluster.transport.client import Client, Unreachable
from crdkeeper.cluster.transport.deadlines import within

_SECONDS: Final = 10.0
_LIFETIME: Final = 3600
"""In seconds, as kubelets ask for: at least 600, and the API server may give another one."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token, which is shown nowhere."""

    value: str = field(repr=False)
    seconds: float
    """For how long it is accepted."""


async def request_token(client: Client, namespace: str, name: str) -> Token:
    """A token of a ServiceAccount. Raises ApiError and Unreachable; 404 if there is no such account."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/serviceaccounts/{quote(name, safe='')}/token"
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _LIFETIME},
    }
    answer = await within(_SECONDS, client.request("POST", path, body, once=True))
    return _read(answer, client.now())


def _read(answer: dict[str, Any], now: datetime) -> Token:
    status = answer.get("status") or {}
    try:
        value, until = status["token"], datetime.fromisoformat(status["expirationTimestamp"])
        if not (isinstance(value, str) and value.isascii() and value.isprintable() and value):
            raise ValueError
        return Token(value, (until - now).total_seconds())
    except (KeyError, TypeError, ValueError):
        # Without what was answered, which may be a token.
        raise Unreachable("the API server's answer to a TokenRequest has no token") from None
