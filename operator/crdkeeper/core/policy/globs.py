"""API groups as globs, exactly as the ValidatingAdmissionPolicy crdkeeper-definition-protection reads them.

It makes a regular expression of each glob, in CEL. If this were another reading, a policy would count CRDs
as protected that are not.
"""

from collections.abc import Sequence
from typing import Any, Final

import re2

_GLOB: Final = re2.compile(r"[a-z0-9.*?!\[\]-]+")
"""A glob with anything else matches nothing."""
_QUIET: Final = re2.Options()
_QUIET.log_errors = False
_QUIET.encoding = re2.Options.Encoding.LATIN1
"""Groups are ASCII. With UTF-8, 64 globs of 253 characters would take ten times the memory."""


_MOST_CHARACTERS: Final = 1 << 20
"""Of the globs whose patterns are kept: those of 60 of the largest policies, or of 1,000 usual ones."""
_EACH: Final = 1024
"""What a pattern counts for besides its characters, as even that of one short glob takes memory."""


class _Patterns:
    """Compiled patterns, in bounded memory; the oldest go first.

    Each CRD is compared with each policy, in turn. If fewer patterns were kept than there are policies, each
    comparison would compile one.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Any] = {}
        self._characters = 0

    def of(self, globs: tuple[str, ...]) -> Any:
        """All globs as one pattern: a policy may have 64, a cluster 10,000 CRDs. None if none can match."""
        if globs in self._known:
            return self._known[globs]
        readable = [pattern for pattern in map(_translated, globs) if pattern]
        found = re2.compile(b"|".join(b"(?:%b)" % each for each in readable), _QUIET) if readable else None
        self._known[globs] = found
        self._characters += _size(globs)
        while self._characters > _MOST_CHARACTERS:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._characters -= _size(oldest)
        return found


def _size(globs: Sequence[str]) -> int:
    return _EACH + sum(map(len, globs))


_patterns = _Patterns()


def matches_any(globs: Sequence[str], group: str) -> bool:
    """Whether one of the globs matches an API group."""
    pattern = _patterns.of(tuple(globs))
    return pattern is not None and pattern.fullmatch(group.encode()) is not None


def _translated(glob: str) -> bytes:
    """The regular expression of a glob; empty if it is none."""
    if _GLOB.fullmatch(glob) is None:
        return b""
    pattern = glob.replace(".", r"\.").replace("*", ".*").replace("?", ".").replace("[!", "[^").encode()
    try:
        re2.compile(pattern, _QUIET)
    except re2.error:
        return b""
    return pattern
