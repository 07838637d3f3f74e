"""How long a pass over one composite may take."""

import asyncio
from typing import Final

PASS_SECONDS: Final = 20.0
"""Then the status is written, and others have their turn."""


class PassClock:
    """Whether the time of a pass is over."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """All time is left."""
        self._began = asyncio.get_running_loop().time()

    def __call__(self) -> bool:
        return asyncio.get_running_loop().time() - self._began > PASS_SECONDS
