"""What the imports of several kinds share."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.core.importing.note import ImportNote, NotImportable
from crdkeeper.core.templates.admission import admit_composition

MOST_DEPTH: Final = 100
"""Levels of a template."""
DROPPED: Final = ("dropped: it has no counterpart", "Decide what to do without it.")
"""The message and the remedy for a field that is not known."""


def mapping(value: Any, path: Path) -> dict[str, Any]:
    """The value, which has to be an object. Raises NotImportable."""
    if not isinstance(value, dict):
        raise NotImportable("must be an object", path)
    return value


def is_at(path: str, prefix: str) -> bool:
    """Whether a path of a column leads to a field, or into it."""
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))


def refusals(composition: Mapping[str, Any], before: Callable[[Path], Path]) -> Iterator[ImportNote]:
    """Why the API server would refuse a new Composition; `before` finds a place of it in the old file."""
    _, problems = admit_composition(composition)
    for each in problems:
        # That its rules are checked only once the rest is right is no problem of its own.
        if each.path.steps:
            yield ImportNote(before(each.path), each.message, each.hint or "Change the Composition.")
