"""What an import says besides the manifests that it makes."""

from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.schema.fieldpath import Path


class NotImportable(ValueError):
    """The document is not what it claims to be."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message if path is None else f"{path}: {message}")
        self.path = path
        """In the old file; None if the whole document is meant."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """Something that differs after the import."""

    path: Path
    """In the old file."""
    message: str
    remedy: str = ""
    """What a person must decide or do; empty if nothing."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The new definition, the Composition if the old definition contains one, and what differs."""

    definition: dict[str, Any]
    notes: tuple[ImportNote, ...]
    composition: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ImportedComposition:
    """The new Composition, and what differs."""

    composition: dict[str, Any]
    notes: tuple[ImportNote, ...]
