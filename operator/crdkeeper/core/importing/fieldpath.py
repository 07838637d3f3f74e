"""Field paths of Crossplane (crossplane-runtime pkg/fieldpath): in CEL, and in a base."""

import re
from itertools import pairwise
from typing import Any, Final

from crdkeeper.apiserver.cel.syntax.literaltext import literal_text
from crdkeeper.apiserver.cel.syntax.names import KEYWORDS, escape

Steps = tuple[str | int, ...]
"""Names of fields and indices; ANY for each item."""
ANY: Final = -1
"""In place of an index: each item, `[*]`."""
_LONGEST: Final = 1024
_MOST_STEPS: Final = 64
_MOST_ITEMS: Final = 1024
"""That one path may set."""
_SEGMENT: Final = re.compile(r"""\.?([^.\[\]"']+)|\[(?:(\d{1,9})|(\*)|"([^"]+)"|'([^']+)'|([^\]"'*]+))\]""")
_SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAPS: Final = ("annotations", "labels", "data", "stringData")
"""Fields whose names are keys of a map, in nearly every API."""


class BadFieldPath(ValueError):
    """A text that is no field path, or one that cannot be set in a base."""


def parse(text: object) -> Steps:
    """The steps of a field path. Raises BadFieldPath."""
    if not isinstance(text, str) or not text or len(text) > _LONGEST:
        raise BadFieldPath(f"a field path is a text of at most {_LONGEST:,} characters")
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        found = _SEGMENT.match(text, at)
        if found is None or (not at and text.startswith(".")):
            raise BadFieldPath(f"{text} is no field path")
        name, index, every, *quoted = found.groups()
        if index is not None:
            steps.append(int(index))
        elif every is not None:
            steps.append(ANY)
        else:
            steps.append(name or next(each for each in quoted if each is not None))
        at = found.end()
    if isinstance(steps[0], int):
        raise BadFieldPath(f"{text} is no field path")
    if len(steps) > _MOST_STEPS:
        raise BadFieldPath(f"the field path has more than {_MOST_STEPS} steps")
    return tuple(steps)


def selection(of: str, steps: Steps, *, optional: bool = False) -> str:
    """The fields of a variable in CEL; with `optional`, an optional without a value if a field is absent.

    Raises BadFieldPath: it names each item of a list.
    """
    if ANY in steps:
        raise BadFieldPath("a patch cannot read what [*] names")
    # A selection of an optional is an optional again.
    mark, text = "?" if optional else "", of
    for i, step in enumerate(steps):
        key = step
        if isinstance(step, str) and (i == 0 or steps[i - 1] not in _MAPS or _SIMPLE.fullmatch(step)):
            key = _name(step, steps[:i]) or step
            if key != step or _SIMPLE.fullmatch(step):
                text += f".{mark}{key}"
                mark = ""
                continue
        text += f"[{mark}{literal_text(key)}]"
        mark = ""
    return text


def _name(step: str, before: Steps) -> str | None:
    # Fields of metadata are no fields of the CRD's schema.
    if step in KEYWORDS and before == ("metadata",):
        return step
    return escape(step)


def put(base: dict[str, Any], steps: Steps, value: Any) -> Any:
    """Set a field, with all objects and lists around it; returns what was there, None if nothing.

    Raises BadFieldPath: there is something else on the way, or no item for `[*]`.
    """
    at: Any = base
    for step, following in pairwise(steps):
        found = _get(at, step)
        if found is None:
            found = [] if isinstance(following, int) else {}
            _set(at, step, found)
        at = found
    last = steps[-1]
    before = _get(at, last)
    _set(at, last, value)
    return before


def expanded(base: Any, steps: Steps) -> list[Steps]:
    """The paths that a path with `[*]` names in a base. Raises BadFieldPath: there is no list."""
    if ANY not in steps:
        return [steps]
    i = steps.index(ANY)
    at = base
    for step in steps[:i]:
        at = _get(at, step)
    if not isinstance(at, list):
        raise BadFieldPath("there is no list in the base for [*]")
    found: list[Steps] = []
    for j in range(len(at)):
        found += expanded(base, (*steps[:i], j, *steps[i + 1 :]))
        if len(found) > _MOST_ITEMS:
            raise BadFieldPath(f"more than {_MOST_ITEMS:,} items for [*]")
    return found


def _get(at: Any, step: str | int) -> Any:
    if isinstance(at, dict) and isinstance(step, str):
        return at.get(step)
    if isinstance(at, list) and isinstance(step, int):
        return at[step] if step < len(at) else None
    raise BadFieldPath(
        f"{'a list' if isinstance(at, list) else 'a value'} of the base is where an object or list should be"
    )


def _set(at: Any, step: str | int, value: Any) -> None:
    _get(at, step)
    if isinstance(step, str) or step < len(at):
        at[step] = value
    elif step == len(at):
        at.append(value)
    else:
        raise BadFieldPath(f"the base has no item before [{step}]")
