"""All conventions that a finding can name, and the groups by which people select them."""

from types import ModuleType
from typing import Final

from crdkeeper.apiserver.schema.rules import all_rules
from crdkeeper.core.composition import problem
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.conventions import (
    columns,
    definition,
    limits,
    lists,
    objects,
    status,
    style,
    suppressions,
    values,
)

_MODULES: Final = (definition, status, columns, objects, lists, values, limits, style, suppressions)

GROUPS: Final[dict[str, str]] = {each.__name__.rpartition(".")[2]: each.ABOUT for each in _MODULES}
"""The subject of each group, by name."""


def _of(module: ModuleType) -> list[Convention]:
    return [each for each in vars(module).values() if isinstance(each, Convention)]


_ALL: Final = {each.id: each for module in _MODULES for each in _of(module)}


def all_conventions() -> tuple[Convention, ...]:
    """Every convention, by id."""
    return tuple(_ALL[id] for id in sorted(_ALL))


def known_ids() -> frozenset[str]:
    """All ids that a configuration or a suppression may name."""
    return frozenset(_ALL) | {each.id for each in (*all_rules(), *problem.ALL)}
