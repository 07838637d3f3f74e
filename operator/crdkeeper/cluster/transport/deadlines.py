"""Requests that end in time, with all of their attempts and the pauses that an answer asks for."""

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from crdkeeper.cluster.transport.client import Unreachable

_T = TypeVar("_T")
WRITE_SECONDS: Final = 40.0
"""For one write: API servers end it after 34 seconds, whatever admission webhooks do."""


class TooSlow(Unreachable):
    """No answer in the time that the caller has."""


async def within(seconds: float, answer: Awaitable[_T], what: str = "no answer") -> _T:
    """The answer. Raises TooSlow, whose text begins with `what`, if it takes longer; it is cut off."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        raise TooSlow(f"{what} within {seconds:g} seconds") from None
