"""`auth-provider: oidc`: its token is used, and its issuer left alone."""

import time
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import orjson
import pytest

from crdkeeper.cluster.transport.client import Client, NoCredentials
from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from tests.unit.cluster.transport.localserver import failure, json, kubeconfig, serving

Json = Any


def logged_in(issuer: str, seconds: float) -> dict[str, Json]:
    """A user with an ID token that is valid for as long."""
    claims = urlsafe_b64encode(orjson.dumps({"exp": int(time.time() + seconds)})).decode().rstrip("=")
    details = {"client-id": "c", "client-secret": "s", "idp-issuer-url": issuer, "refresh-token": "r"}
    details["id-token"] = f"e30.{claims}.signature"
    return {"auth-provider": {"name": "oidc", "config": details}}


async def test_an_id_token_is_used_until_it_expires(tmp_path: Path) -> None:
    """The issuer is not asked for another one: the library would not verify who answers."""
    async with serving(json({})) as issuer, serving(json({}), failure(401), json({})) as server:
        user = logged_in(issuer.url, 60.0)  # which the library already refreshes
        path = kubeconfig(tmp_path, server.url, user=user)
        async with Client(Connection(path)) as client:
            await client.request("GET", "/x")
            kubeconfig(tmp_path, server.url, user=logged_in(issuer.url, -60.0))
            with pytest.raises(NoCredentials, match="Only kubectl renews it"):
                await client.request("GET", "/x")
            kubeconfig(tmp_path, server.url, user=user)
            await client.request("GET", "/x")
    assert issuer.requests == []
    token = user["auth-provider"]["config"]["id-token"]
    assert [each.headers["Authorization"] for each in server.requests] == [f"Bearer {token}"] * 3


async def test_an_id_token_that_has_expired_is_an_error(tmp_path: Path) -> None:
    user = logged_in("https://issuer.example.com", -60.0)
    with pytest.raises(ConfigurationError, match="Only kubectl renews it"):
        await Connection(kubeconfig(tmp_path, "https://api.example.com", user=user)).load()
