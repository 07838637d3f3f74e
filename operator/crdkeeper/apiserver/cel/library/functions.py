"""All functions that an expression can call in Kubernetes 1.37, ready to run."""

from collections.abc import Callable, Sequence
from typing import Final

from crdkeeper.apiserver.cel.library import (
    conversion,
    lists,
    names,
    network,
    optional,
    quantity,
    regex,
    semver,
    strings,
    time,
    urls,
)
from crdkeeper.apiserver.cel.values.overloads import Overload, Table, Unguarded, callable_function
from crdkeeper.apiserver.cel.values.values import Value

_WITH_MEMBERS: Final = (
    conversion,
    strings,
    lists,
    names,
    network,
    optional,
    quantity,
    regex,
    semver,
    time,
    urls,
)
_WITH_GLOBALS: Final = tuple(each for each in _WITH_MEMBERS if each is not time)


def _merged(tables: Sequence[Table]) -> dict[str, Callable[..., Value]]:
    overloads: dict[str, list[Overload]] = {}
    functions: dict[str, Callable[..., Value]] = {}
    for table in tables:
        for name, each in table.items():
            if isinstance(each, Unguarded):
                functions[name] = callable_function(name, each)
            else:
                overloads.setdefault(name, []).extend(each)
    return functions | {name: callable_function(name, each) for name, each in overloads.items()}


MEMBERS: Final = _merged([each.MEMBERS for each in _WITH_MEMBERS])
"""Functions that are called on a value, by name; the value is the first argument."""
GLOBALS: Final = _merged([each.GLOBALS for each in _WITH_GLOBALS])
"""Functions that are called by name, which may contain dots."""
