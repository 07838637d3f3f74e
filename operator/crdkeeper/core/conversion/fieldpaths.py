"""The fields that rules name: `spec.host`, `metadata.annotations[example.com/host]`.

A path leads through objects only. What lies inside of lists and maps is reached by a rule's `each`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

Steps = tuple[str, ...]

ABSENT: Final = object()
"""In place of the value of a field that is not there; null is a value."""

_STEP = re.compile(r"\.?([A-Za-z_$][-\w$]*)|\[([^\[\]]+)\]")
_FREE = ("annotations", "labels")


class BadPath(ValueError):
    """A text names no field that a rule may read or write."""


def parse(text: str) -> Steps:
    """The keys that lead to a field. Raises BadPath."""
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


def show(steps: Steps) -> str:
    """A path as people write it."""
    shown = ""
    for step in steps:
        plain = re.fullmatch(r"[A-Za-z_$][\w$]*", step)
        shown += (f".{step}" if shown else step) if plain else f"[{step}]"
    return shown


def get(value: Any, steps: Steps) -> Any:
    """What is at a path; ABSENT if it, or something on the way, is not there."""
    for step in steps:
        if not isinstance(value, Mapping) or step not in value:
            return ABSENT
        value = value[step]
    return value


def put(target: dict[str, Any], steps: Steps, value: Any) -> None:
    """Set a field, making the objects on the way. Those that are there must be the caller's to change."""
    for step in steps[:-1]:
        inner = target.get(step)
        if not isinstance(inner, dict):
            inner = target[step] = {}
        target = inner
    target[steps[-1]] = value
