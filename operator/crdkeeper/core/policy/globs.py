"""API groups as globs, exactly as the ValidatingAdmissionPolicy crdkeeper-definition-protection reads them.

It makes a regular expression of each glob, in CEL. If this were another reading, a policy would count CRDs
as protected that are not.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import re2

_GLOB: Final = re2.compile(r"[a-z0-9.*?!\[\]-]+")
"""A glob with anything else matches nothing."""
_QUIET: Final = re2.Options()
_QUIET.log_errors = False
_QUIET.encoding = re2.Options.Encoding.LATIN1
"""Groups are ASCII. With UTF-8, 64 globs of 253 characters would take ten times the memory."""


def matches_any(globs: Sequence[str], group: str) -> bool:
    """Whether one of the globs matches an API group."""
    pattern = _pattern(tuple(globs))
    return pattern is not None and pattern.fullmatch(group.encode()) is not None


@lru_cache(maxsize=64)
def _pattern(globs: tuple[str, ...]) -> Any:
    """All globs as one pattern, as a policy may have 64 and a cluster 10,000 CRDs; None if none can match."""
    readable = [pattern for pattern in map(_translated, globs) if pattern]
    return re2.compile(b"|".join(b"(?:%b)" % each for each in readable), _QUIET) if readable else None


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
