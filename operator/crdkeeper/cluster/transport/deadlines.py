"""Requests that end in time, with all of their attempts and the pauses that an answer asks for."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from crdkeeper.cluster.transport.client import Unreachable

_T = TypeVar("_T")


async def within(seconds: float, answer: Awaitable[_T], what: str = "no answer") -> _T:
    """The answer. Raises Unreachable, whose text begins with `what`, if it takes longer; it is cut off."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        raise Unreachable(f"{what} within {seconds:g} seconds") from None
