"""All functions that an expression of Kubernetes 1.37 can call, ready to be run."""

from collections.abc import Callable, Sequence
from typing import Final

from crdkeeper.core.cel import (
    library_conversion,
    library_lists,
    library_names,
    library_network,
    library_optional,
    library_quantity,
    library_regex,
    library_semver,
    library_strings,
    library_time,
    library_urls,
)
from crdkeeper.core.cel.overloads import Overload, Table, Unguarded, callable_function
from crdkeeper.core.cel.values import Value

_WITH_MEMBERS: Final = (
    library_conversion,
    library_strings,
    library_lists,
    library_names,
    library_network,
    library_optional,
    library_quantity,
    library_regex,
    library_semver,
    library_time,
    library_urls,
)
_WITH_GLOBALS: Final = tuple(each for each in _WITH_MEMBERS if each is not library_time)


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
"""Functions that are called by name, which may have dots in it."""
