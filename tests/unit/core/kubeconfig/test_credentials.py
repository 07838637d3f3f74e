"""An ID token is used while it is valid, and never refreshed."""

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from crdkeeper.core.kubeconfig.credentials import take_id_token
from crdkeeper.core.kubeconfig.error import KubeconfigError

NOW = 1_000_000.0


def id_token(claims: Any) -> str:
    """Not signed: only the API server verifies that."""
    content = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{content}.signature"


def oidc(token: Any) -> dict[str, Any]:
    config = {"client-id": "c", "idp-issuer-url": "https://issuer.example.com", "refresh-token": "r"}
    return {"auth-provider": {"name": "oidc", "config": {**config, "id-token": token}}, "as": "a"}


# Text beside them, so that all remainders of the encoding occur, and both of its signs.
@pytest.mark.parametrize("claims", [{"exp": NOW + 11, "t": "ÿ>~?" * each} for each in range(5)], ids=str)
def test_one_that_is_valid_is_the_token(claims: Any) -> None:
    user = oidc(id_token(claims))
    assert take_id_token(user, NOW)
    assert user == {"token": id_token(claims), "as": "a"}


@pytest.mark.parametrize(
    "token",
    [
        id_token({"exp": NOW + 10}),
        id_token({"exp": 0}),
        id_token({"exp": None}),
        id_token({"exp": "soon"}),
        id_token({}),
        id_token([]),
        id_token({"exp": NOW + 100}).rpartition(".")[0],
        "a.b.c",
        "a.ü.c",
        "",
        None,
        5,
    ],
)
def test_any_other_is_refused(token: Any) -> None:
    with pytest.raises(KubeconfigError, match="Only kubectl renews it"):
        take_id_token(oidc(token), NOW)


@pytest.mark.parametrize("provider", [{"name": "oidc"}, {"name": "oidc", "config": None}])
def test_without_a_token_there_is_none(provider: Any) -> None:
    with pytest.raises(KubeconfigError, match="Only kubectl renews it"):
        take_id_token({"auth-provider": provider}, NOW)


@pytest.mark.parametrize(
    "user", [{}, {"token": "t"}, {"auth-provider": {"name": "gcp"}}, {"auth-provider": None}]
)
def test_others_are_left_alone(user: dict[str, Any]) -> None:
    before = dict(user)
    assert not take_id_token(user, NOW)
    assert user == before
