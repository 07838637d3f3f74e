"""Which of several versions the API server prefers: GA before beta before alpha, then the highest number."""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

_T = TypeVar("_T")
_KUBERNETES = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?", re.ASCII)
_STAGES = {"alpha": 0, "beta": 1, None: 2}


def priority(name: str) -> tuple[bool, int, int, int]:
    """Greater for the version that is preferred (apimachinery's CompareKubeAwareVersionStrings).

    Versions of other forms come last; among them the first by name is preferred.
    """
    match = _KUBERNETES.fullmatch(name)
    if match is None:
        return False, 0, 0, 0
    return True, _STAGES[match[2]], int(match[1]), int(match[3] or 0)


def preferred(versions: Iterable[_T], name: Callable[[_T], str]) -> _T | None:
    """The one that clients get who name no version; None if there is none."""
    by_name = sorted(versions, key=name)
    return max(by_name, key=lambda each: priority(name(each)), default=None)
