"""Which rules to report: `--rules` and `lint.rules`, by groups and ids."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from crdkeeper.apiserver.schema.rules import all_rules
from crdkeeper.core.composition import problem
from crdkeeper.core.lint.registry import GROUPS, all_conventions
from crdkeeper.core.lint.severity import Severity

ALL: Final = "all"
DEFAULT: Final = "default"
SERVER: Final = "server"
"""The group of the API server's own rules."""
COMPOSITES: Final = "composites"
"""The group of the rules for CompositeResourceDefinitions."""


MAX_NAMES: Final = 1_000
"""There are fewer rules."""


class BadSelection(Exception):
    """The names do not select rules; the text says why, and lists the existing groups."""


class Level(IntEnum):
    """How much of a rule is reported."""

    NOTHING = 0
    WARNINGS = 1
    """Errors and warnings; infos only if all are requested."""
    EVERYTHING = 2


class Selection:
    """The level of each rule. What the API server rejects is reported in any case."""

    def __init__(self, levels: Mapping[str, Level] | None = None) -> None:
        self._levels = levels

    def level(self, id: str) -> Level:
        """How much of this rule is reported."""
        return Level.WARNINGS if self._levels is None else self._levels[id]

    def shows(self, id: str, severity: Severity, *, everything: bool) -> bool:
        """Whether a finding is reported; with `everything`, infos of all selected rules are."""
        level = self.level(id)
        return level is Level.EVERYTHING or (
            level is Level.WARNINGS and (everything or severity is not Severity.INFO)
        )


def select(names: Iterable[str]) -> Selection:
    """Select rules by names, from left to right: a name with `-` removes its rules.

    `default` are the errors and warnings of all rules, `all` also the infos; a group or a rule is reported
    completely. Names that begin with a removal imply `default` first. Raises BadSelection.
    """
    chosen = list(names)
    if len(chosen) > MAX_NAMES:
        raise BadSelection(f"more than {MAX_NAMES:,} names of rules and groups")
    groups = _groups()
    levels: dict[str, Level] = dict.fromkeys(groups[ALL], Level.NOTHING)
    if not chosen or chosen[0].startswith("-"):
        chosen.insert(0, DEFAULT)
    for each in chosen:
        name = each.removeprefix("-")
        if name == DEFAULT and not each.startswith("-"):
            levels |= {id: max(level, Level.WARNINGS) for id, level in levels.items()}
            continue
        ids = groups.get(name) or ((name,) if name in levels else ())
        if not ids:
            known = ", ".join((DEFAULT, *groups))
            raise BadSelection(f"there is no rule and no group {name!r}; the groups are {known}")
        levels |= dict.fromkeys(ids, Level.NOTHING if each.startswith("-") else Level.EVERYTHING)
    return Selection(levels)


def _groups() -> dict[str, tuple[str, ...]]:
    conventions = all_conventions()
    servers = tuple(each.id for each in all_rules())
    groups = {name: tuple(each.id for each in conventions if each.group == name) for name in GROUPS}
    composites = tuple(each.id for each in problem.ALL)
    every = (*servers, *composites, *(each.id for each in conventions))
    return {ALL: every, SERVER: servers, COMPOSITES: composites, **groups}
