"""The facts behind VersionsCurrent, besides a census: which versions a CRD marks as deprecated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.definitions.facts import DefinitionFacts


@dataclass(frozen=True, slots=True)
class DeprecatedVersion:
    """An entry of spec.versions with deprecated: true."""

    name: str
    served: bool
    warning: str
    """deprecationWarning; empty if it uses the API server's default."""


def deprecated_versions(crd: Mapping[str, Any]) -> tuple[DeprecatedVersion, ...]:
    """The deprecated versions of a CRD object."""
    return tuple(
        DeprecatedVersion(each["name"], each["served"], each.get("deprecationWarning") or "")
        for each in crd["spec"]["versions"]
        if each.get("deprecated")
    )


def needs_census(definition: DefinitionFacts, deprecated: tuple[DeprecatedVersion, ...]) -> bool:
    """Whether the result can depend on who writes what: not for a CRD that has only ever had one version."""
    return len(definition.versions) > 1 or definition.generation > 1 or bool(deprecated)
