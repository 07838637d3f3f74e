"""The values that the author of a string names: as its default, as an example, or in its description."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from crdkeeper.apiserver.schema.props import Schema

MOST: Final = 20
"""Values of one description."""
_LONGEST: Final = 100
"""Characters of a value."""
_SEARCHED: Final = 4_000
"""Characters of a description."""
_QUOTED: Final = re.compile(rf"""(?<!\w)(["'`])([^\s"'`]{{1,{_LONGEST}}})\1(?!\w)""")


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A value, or a part of one that a description quotes."""

    text: str
    place: str
    """The key of the schema that has it."""

    def __str__(self) -> str:
        if self.place == "description":
            return f"{self.text!r} in the description"
        return f"the {self.place} {self.text!r}"


def named_values(schema: Schema) -> Iterator[NamedValue]:
    """What the schema of a string names."""
    for key in ("default", "example"):
        value = schema.get(key)
        if isinstance(value, str) and len(value) <= _LONGEST:
            yield NamedValue(value, key)
    quoted = _QUOTED.finditer((schema.get("description") or "")[:_SEARCHED])
    for each in islice(quoted, MOST):
        yield NamedValue(each[2], "description")
