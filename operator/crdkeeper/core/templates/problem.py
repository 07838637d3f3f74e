"""What is wrong with a Composition: the field, the column in its text, and what to write instead."""

from dataclasses import dataclass
from typing import Final

from crdkeeper.apiserver.schema.fieldpath import Path

MOST_PROBLEMS: Final = 100
"""That are collected of one Composition."""
_LONGEST: Final = 1000


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """An error, because of which a Composition cannot be used."""

    path: Path
    message: str
    hint: str = ""
    column: int | None = None
    """The character of the field's text, counted from 1."""

    def __str__(self) -> str:
        at = f"{self.path}: column {self.column}" if self.column is not None else str(self.path)
        return f"{at}: {self.message}"


class Problems:
    """Collects problems, up to a number: the rest of a Composition with so many is not worth a line each."""

    def __init__(self) -> None:
        self.found: list[TemplateProblem] = []

    def add(self, path: Path, message: str, hint: str = "", column: int | None = None) -> None:
        """Add a problem."""
        if len(self.found) < MOST_PROBLEMS:
            self.found.append(TemplateProblem(path, message[:_LONGEST], hint[:_LONGEST], column))

    @property
    def full(self) -> bool:
        """Whether no more are collected."""
        return len(self.found) >= MOST_PROBLEMS
