"""Heads of requests that were parsed before: a client's are alike but for the length of the body.

To parse one is half of what the server itself does for a request. The same bytes mean the same: what the
parser and the server once found acceptable need not be parsed again.
"""

from typing import Final, NamedTuple

_LENGTH: Final = b"\r\nContent-Length: "
"""As Go's clients write it."""
_END: Final = b"\r\n\r\n"
_LONGEST: Final = 2 << 10
_MOST: Final = 512
"""Heads. The longest would take two megabytes, as a path can be nearly all of a head."""
MOST_DIGITS: Final = 19
"""The most digits of a Content-Length that fits into 64 bits."""


class Head(NamedTuple):
    """What a head says, besides the length of the body."""

    method: str
    path: str
    keep: bool
    """Whether the client wants the connection to stay open."""


Around = tuple[bytes, bytes]
"""A head before and after the length of the body."""


class KnownHeads:
    """The heads of a server, from all its clients."""

    def __init__(self) -> None:
        self._known: dict[Around, Head] = {}

    def get(self, around: Around) -> Head | None:
        """What was learned of it."""
        return self._known.get(around)

    def learn(self, around: Around, head: Head) -> None:
        """Keep a head that was parsed and found acceptable; the oldest gives way."""
        if len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[around] = head


def split(data: bytes) -> tuple[Around, int] | None:
    """The head, and where the body begins, of one whole request; None if `data` is anything else."""
    end = data.find(_END, 0, _LONGEST)
    at = data.find(_LENGTH, 0, end) + len(_LENGTH) if end > 0 else 0
    if at < len(_LENGTH):
        return None
    stop = data.find(b"\r\n", at)
    digits, start = data[at:stop], end + len(_END)
    if not digits.isdigit() or len(digits) > MOST_DIGITS or len(data) - start != int(digits):
        return None
    return (data[:at], data[stop:start]), start
