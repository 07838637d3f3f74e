"""The fields that rules name: `spec.host`, `metadata.annotations[example.com/host]`.

A path leads through objects, to an entry of a map (`spec.limits[memory]`), and to the first item of a list
(`spec.listeners[0].port`). A rule's `each` reaches all items and entries.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from crdkeeper.apiserver.dnsnames import key_errors
from crdkeeper.apiserver.golang.strings import to_lower

Steps = tuple[str, ...]

ABSENT: Final = object()
"""The value of an absent field; null is a value."""

FIRST: Final = "[0]"
"""The step to the first item of a list; no key looks like that."""

_STEP = re.compile(r"\.?([A-Za-z_$][-\w$]*)|\[([^\[\]]+)\]")
_FREE = ("annotations", "labels")


class BadPath(ValueError):
    """The text does not name a field that a rule may read or write."""


def parse(text: str) -> Steps:
    """The keys that lead to a field, with the key 0 for a first item. Raises BadPath."""
    steps: list[str] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or (at == 0) != (not found[0].startswith((".", "["))):
            raise BadPath(
                f"{text!r}: not a field such as spec.host or metadata.annotations[example.com/host]"
            )
        steps.append(found[1] or found[2])
        at = found.end()
    if not steps:
        raise BadPath("must name a field")
    return tuple(steps)


def check_top(steps: Steps) -> None:
    """Raise BadPath for a field that the API server does not let a conversion change."""
    if steps[0] in ("apiVersion", "kind"):
        raise BadPath(f"{show(steps)}: is set by the conversion itself")
    if steps[0] == "metadata" and not (len(steps) == 3 and steps[1] in _FREE):
        raise BadPath(
            f"{show(steps)}: of metadata a conversion may change single annotations and labels only"
        )
    if steps[0] == "metadata":
        # The API server rejects the whole answer because of one bad key; it ignores the case of
        # annotation keys.
        errors = key_errors(steps[2] if steps[1] == "labels" else to_lower(steps[2]))
        if errors:
            raise BadPath(f"{show(steps)}: {errors[0]}")


def show(steps: Steps) -> str:
    """Format a path as people write it."""
    shown = ""
    for step in steps:
        if step == FIRST:
            shown += step
            continue
        plain = re.fullmatch(r"[A-Za-z_$][\w$]*", step)
        shown += (f".{step}" if shown else step) if plain else f"[{step}]"
    return shown


def get(value: Any, steps: Steps) -> Any:
    """The value at a path; ABSENT if it, or something on the way, does not exist."""
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif step == FIRST and isinstance(value, list) and value:
            value = value[0]
        else:
            return ABSENT
    return value


def reader(steps: Steps) -> Callable[[Any], Any]:
    """Returns `get` for this path, prepared once: a webhook reads it in each object."""
    if FIRST in steps or not steps:
        return lambda value: get(value, steps)
    *way, last = steps

    def read(value: Any) -> Any:
        try:
            for step in way:
                value = value[step]
            return value[last]
        except (KeyError, TypeError):
            return ABSENT

    return read


def writer(steps: Steps) -> Callable[[dict[str, Any], Any], None]:
    """Returns `put` for this path; it may change what exists on the way, as `put` may."""
    if FIRST in steps:
        return lambda target, value: put(target, steps, value)
    *way, last = steps

    def write(target: dict[str, Any], value: Any) -> None:
        inner: Any = target
        try:
            for step in way:
                inner = inner[step]
            inner[last] = value
        except (KeyError, TypeError):
            put(target, steps, value)

    return write


def put(target: dict[str, Any], steps: Steps, value: Any) -> None:
    """Set a field, and create what is missing on the way. The caller must own what exists on the way."""
    if FIRST in steps:
        _put_in_list(target, steps, value)
        return
    for step in steps[:-1]:
        inner = target.get(step)
        if not isinstance(inner, dict):
            inner = target[step] = {}
        target = inner
    target[steps[-1]] = value


def _put_in_list(target: Any, steps: Steps, value: Any) -> None:
    for step, following in pairwise(steps):
        kind = list if following == FIRST else dict
        found = get(target, (step,))
        if not isinstance(found, kind):
            found = kind()
            _set(target, step, found)
        target = found
    _set(target, steps[-1], value)


def _set(target: Any, step: str, value: Any) -> None:
    if step == FIRST:
        target[:1] = [value]
    else:
        target[step] = value
