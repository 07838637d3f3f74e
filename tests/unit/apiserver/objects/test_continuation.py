"""Tokens as API servers make them, and everything else that may be in a status."""

from base64 import urlsafe_b64encode
from typing import Any

import orjson
import pytest

from crdkeeper.apiserver.objects.continuation import at_latest

USUAL = {"v": "meta.k8s.io/v1", "rv": 1234, "start": "default/db-00499\x00"}


def token(value: Any) -> str:
    """As Go's base64.RawURLEncoding."""
    return urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


def test_the_same_key_with_current_data() -> None:
    assert at_latest(token(USUAL)) == token({**USUAL, "rv": -1})


def test_one_with_current_data_stays() -> None:
    latest = token({**USUAL, "rv": -1})
    assert at_latest(latest) == latest


@pytest.mark.parametrize(
    "other",
    [
        "",
        "opaque",
        "ÿ",
        "a" * 100_000,
        token("text"),
        token([]),
        token({}),
        token({**USUAL, "v": "meta.k8s.io/v2"}),
        token({**USUAL, "more": 1}),
        token({**USUAL, "rv": "1234"}),
        token({**USUAL, "start": 7}),
        urlsafe_b64encode(b"[" * 6000).decode(),
        urlsafe_b64encode(b"\xff\xfe").decode(),
    ],
)
def test_other_tokens(other: str) -> None:
    assert at_latest(other) is None
