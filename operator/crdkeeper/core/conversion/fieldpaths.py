"""The fields that rules name: `spec.host`, `metadata.annotations[example.com/host]`.

A path leads through objects, to an entry of a map (`spec.limits[memory]`), and to the first item of a list
(`spec.listeners[0].port`). All items and entries are reached by a rule's `each`.
"""

import re
from itertools import pairwise
from typing import Any, Final

from crdkeeper.apiserver.dnsnames import key_errors

Steps = tuple[str, ...]

ABSENT: Final = object()
"""In place of the value of a field that is not there; null is a value."""

FIRST: Final = "[0]"
"""The step to the first item of a list; no key is written like that."""

_STEP = re.compile(r"\.?([A-Za-z_$][-\w$]*)|\[([^\[\]]+)\]")
_FREE = ("annotations", "labels")


class BadPath(ValueError):
    """A text names no field that a rule may read or write."""


def parse(text: str) -> Steps:
    """The keys that lead to a field, a first item as the key 0. Raises BadPath."""
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
    """Raises BadPath for a field of an object that the API server lets no conversion change."""
    if steps[0] in ("apiVersion", "kind"):
        raise BadPath(f"{show(steps)}: is set by the conversion itself")
    if steps[0] == "metadata" and not (len(steps) == 3 and steps[1] in _FREE):
        raise BadPath(
            f"{show(steps)}: of metadata a conversion may change single annotations and labels only"
        )
    if steps[0] == "metadata":
        # The API server refuses the whole answer for one bad key; case does not count in annotations.
        errors = key_errors(steps[2] if steps[1] == "labels" else steps[2].lower())
        if errors:
            raise BadPath(f"{show(steps)}: {errors[0]}")


def show(steps: Steps) -> str:
    """A path as people write it."""
    shown = ""
    for step in steps:
        if step == FIRST:
            shown += step
            continue
        plain = re.fullmatch(r"[A-Za-z_$][\w$]*", step)
        shown += (f".{step}" if shown else step) if plain else f"[{step}]"
    return shown


def get(value: Any, steps: Steps) -> Any:
    """What is at a path; ABSENT if it, or something on the way, is not there."""
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif step == FIRST and isinstance(value, list) and value:
            value = value[0]
        else:
            return ABSENT
    return value


def put(target: dict[str, Any], steps: Steps, value: Any) -> None:
    """Set a field, making what is missing on the way. What is there must be the caller's to change."""
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
