"""`.crdkeeper.yaml`: which findings matter, and which files are looked at at all.

lint:
  all: true                 # also show what is only info
  rules: [default, limits]  # groups and ids to report; - before one takes it away
  forbid: [nullable]        # keywords that schemas must not have
  severity:                 # error, warning, info or off, by id
    duration-unit: off
    description: warning
  exclude:                  # globs, from the folder of this file; ** crosses folders
  - vendor/**
"""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from crdkeeper.apiserver.schema.props import FIELD_ORDER
from crdkeeper.cli.input.configuration import BadConfiguration, NearestConfigurations, Section, read_section
from crdkeeper.cli.input.files import CONFIGURATION
from crdkeeper.cli.input.globs import Globs, TooManyGlobs
from crdkeeper.cli.lint.selection import BadSelection, Selection, select
from crdkeeper.core.lint.registry import known_ids
from crdkeeper.core.lint.severity import Severity

_FIELDS = ("all", "exclude", "forbid", "rules", "severity")
_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The content of a file. `folder` is the base of its globs."""

    folder: Path = field(default_factory=Path)
    all: bool = False
    severities: dict[str, Severity | None] = field(default_factory=dict)
    """The severity of each rule by its id; None disables the rule."""
    exclude: Globs | None = None
    rules: Selection = field(default_factory=Selection)
    forbid: frozenset[str] = frozenset()
    """Keywords of schemas."""

    def excludes(self, file: Path) -> bool:
        """Whether a file is excluded. Raises BadConfiguration."""
        if self.exclude is None:
            return False
        try:
            relative = _real(file).relative_to(_real(self.folder))
        except ValueError:
            return False
        try:
            return self.exclude.match(relative)
        except TooManyGlobs as error:
            raise BadConfiguration(f"{self.folder / CONFIGURATION}: lint.exclude: {error}") from None


class Configurations:
    """The configuration of each linted file; `rules` replaces those that a file selects."""

    def __init__(self, chosen: Path | None, rules: Selection | None = None) -> None:
        """Raise BadConfiguration if there is an error in the chosen one."""
        self._rules = rules
        self._nearest = NearestConfigurations(chosen, self._load)

    def of(self, file: Path | None) -> Configuration:
        """The configuration of a file; without one, the working directory's. Raises BadConfiguration."""
        return self._nearest.of(file)

    def of_name(self, file: str) -> Configuration:
        """For a file by name. Standard input and CRDs of a cluster have the working directory's."""
        return self.of(Path(file) if file not in ("", "-") else None)

    def _load(self, path: Path | None) -> Configuration:
        found = load(path) if path is not None else Configuration()
        return found if self._rules is None else replace(found, rules=self._rules)


def _real(path: Path) -> Path:
    """The path without symlinks; without pathlib, which fails if they lead to each other."""
    return Path(os.path.realpath(path))


def load(path: Path) -> Configuration:
    """Read a configuration. Raises BadConfiguration."""
    section = read_section(path, "lint", _FIELDS)
    if section is None:
        return Configuration(path.parent)
    return Configuration(
        path.parent,
        section.flag("all"),
        section.severities("rule", known_ids(), _SEVERITIES),
        _exclude(section),
        _rules(section),
        _forbid(section),
    )


def _rules(section: Section) -> Selection:
    if section.get("rules") is None:
        return Selection()
    try:
        return select(section.texts("rules", "groups and ids of rules"))
    except BadSelection as error:
        raise section.bad(str(error), "rules") from None


def _forbid(section: Section) -> frozenset[str]:
    found = list(section.texts("forbid", "keywords of schemas"))
    for i, each in enumerate(found):
        if each not in FIELD_ORDER:
            raise section.bad(f"schemas have no keyword {each!r}", "forbid", i)
    return frozenset(found)


def _exclude(section: Section) -> Globs | None:
    globs = [each.removeprefix("./") for each in section.texts("exclude", "globs")]
    try:
        return Globs(globs) if globs else None
    except TooManyGlobs as error:
        raise section.bad(f"lint.exclude: {error}", "exclude") from None
