"""The objects in the checked files, besides the CRDs: samples for columns."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_MOST_OF_A_KIND: Final = 50
_MOST_VALUES: Final = 1_000_000
"""Values in all objects that are kept; a run may read whole clusters of them."""
_MOST_VALUES_OF_ONE: Final = 20_000


class Samples:
    """A limited number of objects by group and kind."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        self._left = _MOST_VALUES

    def add(self, value: Any) -> None:
        """Keep a document if it is an object of an API group."""
        if not isinstance(value, dict):
            return
        api_version, kind = value.get("apiVersion"), value.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str) or "/" not in api_version:
            return
        several = self._found.setdefault((api_version.partition("/")[0], kind), [])
        if len(several) >= _MOST_OF_A_KIND:
            return
        size = _size(value, min(self._left, _MOST_VALUES_OF_ONE))
        if size is not None:
            several.append(value)
            self._left -= size

    def of(self, group: str, kind: str) -> Sequence[Mapping[str, Any]]:
        """The objects of one kind, of all versions."""
        return self._found.get((group, kind), ())


def _size(value: Any, limit: int) -> int | None:
    """How many values there are in a document; None if there are more than the limit."""
    count, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        count += 1
        if count > limit:
            return None
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return count


def kind_of(definition: Mapping[str, Any]) -> tuple[str, str] | None:
    """The group and kind that a CRD defines, according to its manifest."""
    spec = definition.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return None
    group, kind = spec.get("group"), names.get("kind")
    return (group, kind) if isinstance(group, str) and isinstance(kind, str) else None
