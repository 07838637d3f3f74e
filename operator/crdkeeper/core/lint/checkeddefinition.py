"""The CRD to check: as the API server decodes it, as its author wrote it, and its versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crdkeeper.core.lint.place import SchemaPlace


@dataclass(frozen=True, slots=True)
class CheckedDefinition:
    """One CRD."""

    crd: Mapping[str, Any]
    """The CRD as the API server decodes it."""
    manifest: Mapping[str, Any] | None
    """The CRD as its author wrote it; None if it was read from a cluster."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Empty if missing."""
        found: Mapping[str, Any] = self.crd.get("metadata") or {}
        return found

    @property
    def spec(self) -> Mapping[str, Any]:
        """Empty if missing."""
        found: Mapping[str, Any] = self.crd.get("spec") or {}
        return found

    @property
    def versions(self) -> Sequence[Mapping[str, Any]]:
        """The entries of spec.versions."""
        found: Sequence[Mapping[str, Any]] = self.spec.get("versions") or ()
        return found


@dataclass(frozen=True, slots=True)
class CheckedVersion:
    """A version that is served or stored."""

    declared: Mapping[str, Any]
    """Its entry in spec.versions."""
    root: SchemaPlace
    """The root of its schema."""
    unpruned: bool
    """Whether undeclared fields are preserved: with preserveUnknownFields from v1beta1."""
