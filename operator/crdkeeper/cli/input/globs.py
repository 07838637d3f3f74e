"""Globs of files in a configuration: `*` and `?` within a name, `**` across folders.

They are matched by RE2, in time linear in the path: like the repository, its configuration is a stranger's.
"""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import re2

MAX_GLOBS: Final = 1_000
MAX_LENGTH: Final = 1_000
"""Characters of a glob. Both are far beyond what configurations have."""
STEPS: Final = 1_000_000_000
"""Characters of paths times characters of globs, for all files beyond their shares: some seconds for globs
that are made to be slow.
"""
SHARE: Final = 2_000_000
"""The same for each file: 200 globs of 100 characters, and a path of 100."""

_MEANING: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class TooManyGlobs(ValueError):
    """There are more globs than are tried, also for as many files, or one is longer."""


class Globs:
    """Some globs, each of which stands also for all that is in a folder of that name."""

    def __init__(self, globs: Sequence[str]) -> None:
        """Raises TooManyGlobs."""
        if len(globs) > MAX_GLOBS:
            raise TooManyGlobs(f"more than {MAX_GLOBS:,} globs")
        if any(len(each) > MAX_LENGTH for each in globs):
            raise TooManyGlobs(f"a glob of more than {MAX_LENGTH:,} characters")
        self._patterns = [re2.compile(_pattern(each)) for each in globs]
        self._size = sum(map(len, globs))
        self._left = STEPS

    def match(self, path: PurePath) -> bool:
        """Whether one of them is about the path, which is relative to where the globs begin.

        Raises TooManyGlobs.
        """
        text = _readable(path.as_posix())
        self._left += SHARE - len(text) * self._size
        if self._left < 0:
            raise TooManyGlobs("to match all globs with all files would take too long")
        return any(each.fullmatch(text) is not None for each in self._patterns)


def _pattern(glob: str) -> str:
    made, rest = "(?s)", _readable(glob if glob.endswith("**/") else glob.removesuffix("/"))
    while rest:
        token = next((each for each in _MEANING if rest.startswith(each)), None)
        made += _MEANING[token] if token else re2.escape(rest[0])
        rest = rest[len(token or rest[0]) :]
    return made + "(?:/.*)?"


def _readable(text: str) -> str:
    """Without bytes that are not UTF-8, which RE2 rejects."""
    return text.encode(errors="replace").decode()
