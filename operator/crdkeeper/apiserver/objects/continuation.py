"""Continue tokens of lists, as API servers make them: base64 of JSON with a revision and the next key.

With a token of an old revision the API server shows the objects as they were then. When it has forgotten
that revision it offers (in its answer of 410) the same key with the revision -1: the objects as they are.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import orjson

_VERSION: Final = "meta.k8s.io/v1"
_LATEST: Final = -1
_CHARACTERS: Final = 8192
"""A key is a namespace and a name, of at most 317 bytes."""


def at_latest(token: str) -> str | None:
    """The token that goes on at the same key with current data; None if this is none of that form.

    Aggregated API servers may make other tokens.
    """
    if not 0 < len(token) <= _CHARACTERS or not token.isascii():
        return None
    try:
        found = orjson.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except ValueError:
        return None
    if not isinstance(found, dict) or found.keys() != {"v", "rv", "start"} or found["v"] != _VERSION:
        return None
    if not isinstance(found["rv"], int) or not isinstance(found["start"], str):
        return None
    return urlsafe_b64encode(orjson.dumps({**found, "rv": _LATEST})).decode().rstrip("=")
