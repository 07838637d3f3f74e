"""Which version the API server prefers: GA before beta before alpha, then the highest number.

As in CompareKubeAwareVersionStrings of k8s.io/apimachinery/pkg/version.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from crdkeeper.apiserver.golang.numbers import MAX_INT

_T = TypeVar("_T")
_KUBERNETES: Final = re.compile(r"v0*(\d{1,19})(?:(alpha|beta)0*(\d{1,19}))?", re.ASCII)
_STAGES: Final = {"alpha": 0, "beta": 1, None: 2}

Priority = tuple[int, int, int]
"""The stage, and the two numbers of a name such as v1beta2."""


def priority(name: str) -> Priority | None:
    """Greater for the preferred version; None for a name of another form, which comes last."""
    match = _KUBERNETES.fullmatch(name)
    if match is None:
        return None
    major, minor = int(match[1]), int(match[3] or 0)
    return (_STAGES[match[2]], major, minor) if max(major, minor) <= MAX_INT else None


def preferred(versions: Iterable[_T], name: Callable[[_T], str]) -> _T | None:
    """The version for clients that do not name one; None if there is none.

    Among names of other forms, the alphabetically first is preferred.
    """
    by_name = sorted(versions, key=name)
    return max(by_name, key=lambda each: priority(name(each)) or (-1, 0, 0), default=None)
