"""Responses for Kopf without deeply nested values.

Kopf's JSON parser fails on them, which ends Kopf and with it the process, also after each restart. Anyone
who may write a CRD, or an object of a kind that preserves unknown fields, can store such values.
"""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson

from crdkeeper.core.conversion.nesting import loads


def shallow(text: bytes) -> bytes:
    """JSON with null in place of what is nested too deep; anything else as it is."""
    try:
        orjson.dumps(orjson.loads(text))
        return text
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    try:
        return orjson.dumps(loads(text), default=lambda _: None)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return text


class ShallowContent:
    """The content of a response as Kopf reads it: at once, or as the lines of a watch."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def read(self, n: int = -1) -> bytes:
        """The whole body."""
        return shallow(await self._content.read(n))

    async def iter_chunked(self, n: int) -> AsyncIterator[bytes]:
        """Pieces of the body, each of whole lines."""
        pending: list[bytes] = []
        async for piece in self._content.iter_chunked(n):
            *ended, rest = piece.split(b"\n")
            if ended:
                lines = [b"".join([*pending, ended[0]]), *ended[1:]]
                pending = []
                yield b"".join(shallow(each) + b"\n" for each in lines)
            pending.append(rest)
        yield shallow(b"".join(pending))


async def make_shallow(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """A middleware for Kopf's session."""
    response = await handler(request)
    response.content = ShallowContent(response.content)  # type: ignore[assignment]
    return response
