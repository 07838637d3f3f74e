"""CRDs as a watch has shown them, compressed, until they are assessed: they need not be read again.

A decoded CRD takes twenty times the memory of its JSON, compressed JSON a tenth of it. There is room for some
thousand CRDs, and those beyond are read when it is their turn.
"""

import zlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

MOST_BYTES: Final = 16 << 20
_FASTEST: Final = 1
_NULLS: Final = (b":null", b"[null", b",null")


class KeptContents:
    """The latest content of each CRD that waits, by name."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: dict[str, tuple[str, bytes]] = {}

    def keep(self, name: str, revision: str, crd: Mapping[str, Any]) -> None:
        """Keep a revision of a CRD if there is room for it, instead of an older one."""
        if self._kept.get(name, ("",))[0] == revision:
            return
        self.drop(name)
        try:
            content = orjson.dumps(crd)
        except orjson.JSONEncodeError:
            return  # numbers or texts that JSON of ours cannot have
        if any(each in content for each in _NULLS):
            return  # perhaps in place of what is nested too deep (cluster/transport/shallow.py)
        packed = zlib.compress(content, _FASTEST)
        if self._bytes + len(packed) <= self._most_bytes:
            self._kept[name] = revision, packed
            self._bytes += len(packed)

    def take(self, name: str) -> bytes | None:
        """The CRD as JSON, which is kept no longer; None if it is to be read."""
        packed = self.drop(name)
        return zlib.decompress(packed) if packed is not None else None

    def drop(self, name: str) -> bytes | None:
        """Keep it no longer. Returns it, compressed."""
        _, packed = self._kept.pop(name, ("", None))
        if packed is not None:
            self._bytes -= len(packed)
        return packed
