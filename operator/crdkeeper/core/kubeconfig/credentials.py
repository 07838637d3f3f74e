"""What a kubeconfig's user authenticates with."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from typing import Any, Final

from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.core.kubeconfig.error import KubeconfigError
from crdkeeper.core.text import visible

_LEFT: Final = 10.0
"""Seconds for which a token must be valid: kubectl asks for as many."""


def take_id_token(user: dict[str, Any], now: float) -> bool:
    """Make the ID token of `auth-provider: oidc` the user's token; False if there is no such provider.

    The libraries would refresh one that expires soon, but send the refresh token to whoever answers, without
    verifying the certificate, and lose the next one. Raises KubeconfigError if it has expired.
    """
    match user:
        case {"auth-provider": {"name": "oidc", "config": {"id-token": str(token)}}}:
            valid = _expiry(token) > now + _LEFT
        case {"auth-provider": {"name": "oidc"}}:
            valid, token = False, ""
        case _:
            return False
    if not valid:
        raise KubeconfigError(
            "The kubeconfig's auth-provider oidc has no id-token that is still valid. "
            "Only kubectl renews it: run a command of kubectl as this user, or have an exec plugin log in."
        )
    del user["auth-provider"]
    user["token"] = token
    return True


def _expiry(token: str) -> float:
    """When a JSON Web Token expires; 0 if it does not say."""
    try:
        _, claims, _ = token.split(".")
        return float(json.loads(urlsafe_b64decode(f"{claims}=="))["exp"])
    except (ValueError, TypeError, LookupError):
        return 0.0


def check_plugin(
    user: Mapping[str, Any], token: str | None, certificate: str | None, said: Iterable[str] = ()
) -> None:
    """Raise KubeconfigError if the user has an exec plugin, and there are no credentials.

    The libraries only log what was `said`, and go on as system:anonymous.
    """
    plugin = user.get("exec")
    # The libraries put the scheme before whatever they have.
    if not plugin or certificate or (token or "").removeprefix("Bearer").strip():
        return
    text = ": ".join((f"The exec plugin {plugin.get('command')!r} gave no credentials", *said))
    raise KubeconfigError(bounded(visible(text), LINE_BYTES))
