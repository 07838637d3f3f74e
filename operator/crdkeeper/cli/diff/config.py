"""The section `diff` of `.crdkeeper.yaml`: how severe a team considers each kind of change.

diff:
  severity:                 # breaking, risky, safe or off, by id
    enum-loosened: safe
    columns: off
"""

from dataclasses import dataclass, field
from pathlib import Path

from crdkeeper.cli.input.configuration import NearestConfigurations, read_section
from crdkeeper.cli.input.files import STDIN
from crdkeeper.core.compatibility.change import Impact, Severities
from crdkeeper.core.compatibility.compare import all_kinds

_FIELDS = ("severity",)


@dataclass(frozen=True, slots=True)
class DiffConfiguration:
    """The content of a file."""

    path: Path | None = None
    """None if there is no file."""
    severities: Severities = field(default_factory=dict)


class DiffConfigurations:
    """The configuration of each compared file."""

    def __init__(self, chosen: Path | None = None) -> None:
        """Raise BadConfiguration if there is an error in the chosen one."""
        self._nearest = NearestConfigurations(chosen, _load)

    def of_name(self, file: str) -> DiffConfiguration:
        """The configuration of a file by name. CRDs that are in no file on disk have the working directory's.

        That is standard input, a file in a git revision, and a CRD in a cluster. Raises BadConfiguration.
        """
        return self._nearest.of(Path(file) if file != STDIN and _is_file(file) else None)


def _is_file(name: str) -> bool:
    try:
        return bool(name) and Path(name).is_file()
    except OSError:  # a path in a revision, after the name of which it is too long for a file
        return False


def _load(path: Path | None) -> DiffConfiguration:
    section = read_section(path, "diff", _FIELDS) if path is not None else None
    if section is None:
        return DiffConfiguration(path)
    kinds = {each.id: each for each in all_kinds()}
    severities = section.severities("kind of change", kinds, tuple(Impact))
    for id in severities:
        if kinds[id].fixed:
            message = f"severity of {id}: cannot be changed, because the API server refuses such a CRD"
            raise section.bad(message, "severity", id)
    return DiffConfiguration(path, severities)
