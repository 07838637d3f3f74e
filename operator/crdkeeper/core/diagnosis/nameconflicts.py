"""Which CRD has a name that another one wants.

The API server's NamesAccepted condition says `"db" is already in use`, but not by which CRD. Names are
claimed per API group, in the order of acceptance: status.acceptedNames of all CRDs in the group decide,
including the CRD's own (naming_controller.go, calculateNamesAndConditions). Plurals, singulars and short
names share one set, kinds and list kinds another. Categories never conflict: any number of CRDs may share
one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Names:
    """One set of names, as in spec.names or status.acceptedNames; an unset name is empty."""

    plural: str = ""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    kind: str = ""
    list_kind: str = ""


@dataclass(frozen=True, slots=True)
class NameClaims:
    """The names that one CRD wants, and those that it has."""

    definition: str
    """metadata.name of the CRD."""
    group: str
    wanted: Names
    accepted: Names


@dataclass(frozen=True, slots=True)
class NameConflict:
    """A wanted name that is taken."""

    field: str
    """The wanted kind of name: plural, singular, shortNames, kind or listKind."""
    name: str
    holder: str
    """metadata.name of the CRD that has it."""
    held_as: str
    """The kind of name that it is there, with the same values as `field`."""


def name_claims(crd: Mapping[str, Any]) -> NameClaims:
    """The claims of a CRD object. Raises KeyError if it is not a complete CRD."""
    status = crd.get("status") or {}
    wanted, accepted = _names(crd["spec"]["names"]), _names(status.get("acceptedNames") or {})
    return NameClaims(
        definition=crd["metadata"]["name"],
        group=crd["spec"]["group"],
        wanted=wanted,
        # Mostly all are, and an operator keeps the names of thousands of CRDs.
        accepted=wanted if accepted == wanted else accepted,
    )


def find_conflicts(claims: NameClaims, others: Iterable[NameClaims]) -> tuple[NameConflict, ...]:
    """Find each wanted name that the API server does not accept, and the CRD that has it.

    `others` may be all CRDs of the cluster; those of other groups are ignored. A short name that equals the
    CRD's own accepted plural or singular is rejected, too, with the CRD itself as the holder.
    """
    holders = [each for each in others if each.group == claims.group and each.definition != claims.definition]
    holders.append(claims)
    resources: dict[str, tuple[str, str]] = {}
    kinds: dict[str, tuple[str, str]] = {}
    for each in holders:
        for field, name in _resource_names(each.accepted):
            resources.setdefault(name, (each.definition, field))
        for field, name in _kind_names(each.accepted):
            kinds.setdefault(name, (each.definition, field))
    ours = claims.accepted
    fresh_resources = [
        (field, name) for field, name in _resource_names(claims.wanted) if name not in _own(ours, field)
    ]
    fresh_kinds = [
        (field, name) for field, name in _kind_names(claims.wanted) if name not in _own(ours, field)
    ]
    return tuple(
        NameConflict(field, name, *taken[name])
        for fresh, taken in ((fresh_resources, resources), (fresh_kinds, kinds))
        for field, name in fresh
        if name in taken
    )


def describe(conflict: NameConflict) -> str:
    """A clause for a message: `shortNames "db" is held by CRD databases.example.com (its singular)`."""
    held_as = {"shortNames": "short name", "listKind": "list kind"}.get(conflict.held_as, conflict.held_as)
    return f'{conflict.field} "{conflict.name}" is held by CRD {conflict.holder} (as its {held_as})'


def _names(found: Mapping[str, Any]) -> Names:
    return Names(
        plural=found.get("plural") or "",
        singular=found.get("singular") or "",
        short_names=tuple(found.get("shortNames") or ()),
        kind=found.get("kind") or "",
        list_kind=found.get("listKind") or "",
    )


def _resource_names(names: Names) -> list[tuple[str, str]]:
    found = [("plural", names.plural), ("singular", names.singular)]
    found += [("shortNames", each) for each in names.short_names]
    return [(field, name) for field, name in found if name]


def _kind_names(names: Names) -> list[tuple[str, str]]:
    return [(field, name) for field, name in (("kind", names.kind), ("listKind", names.list_kind)) if name]


def _own(accepted: Names, field: str) -> tuple[str, ...]:
    own = {
        "plural": (accepted.plural,),
        "singular": (accepted.singular,),
        "shortNames": accepted.short_names,
        "kind": (accepted.kind,),
        "listKind": (accepted.list_kind,),
    }
    return own[field]
