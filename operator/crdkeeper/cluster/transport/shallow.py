"""Responses for Kopf without deeply nested values.

Kopf's JSON parser fails on them, which ends Kopf and with it the process, also after each restart. Anyone
who may write a CRD, or an object of a kind that preserves unknown fields, can store such values.
"""

import json
from collections.abc import AsyncIterator
from typing import Any, Self

import aiohttp
import orjson
from aiohttp.connector import Connection

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


def loaded(text: str) -> Any:
    """The value of JSON, with None in place of what is nested too deep.

    Raises json.JSONDecodeError.
    """
    try:
        value = orjson.loads(text)
        orjson.dumps(value)
        return value
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return json.loads(shallow(text.encode()))


class ShallowContent:
    """The content of a response as Kopf reads it line by line: a watch."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

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


class ShallowResponse(aiohttp.ClientResponse):
    """For Kopf's session."""

    async def start(self, connection: Connection) -> Self:
        """Called when the request is sent."""
        await super().start(connection)
        self.content = ShallowContent(self.content)  # type: ignore[assignment]
        return self

    async def json(self, **options: Any) -> Any:
        """The value of the body, which is parsed once: lists of CRDs are large. Raises as aiohttp's."""
        return await super().json(**{**options, "loads": loaded})
