"""The facts behind SubresourcesReady: the schemas of status and scale, and the answers of /scale.

The API server checks of a scale path only that it starts with .spec or .status, not that the field exists. A
field that is not in the schema is pruned from every object, and one of the wrong type gets every object
rejected that sets it (scaleFromCustomResource in registry/customresource/etcd.go).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from crdkeeper.apiserver.schema.scalepaths import SCALE_TYPES, SchemaSpot, scale_path_problems
from crdkeeper.core.diagnosis.probes import Failure


class Flaw(Enum):
    """How a schema breaks its subresource."""

    PATH_NOT_DECLARED = "a scale path leads to nothing"
    PATH_WRONG_TYPE = "a scale path leads to a field of another type"
    CONDITIONS_MALFORMED = "status.conditions is not a list of conditions"


@dataclass(frozen=True, slots=True)
class SubresourceProblem:
    """A part of a version's schema that does not meet the needs of its subresource."""

    flaw: Flaw
    path: str
    """The field in the CRD, such as `spec.versions[0].subresources.scale.specReplicasPath`."""
    detail: str


@dataclass(frozen=True, slots=True)
class DeclaredSubresources:
    """The subresources of a CRD's served versions, checked against the versions' schemas."""

    scaled: tuple[str, ...] = ()
    """Versions with a scale subresource."""
    status: tuple[str, ...] = ()
    """Versions with a status subresource."""
    problems: tuple[SubresourceProblem, ...] = ()
    """At most five for each version."""
    unselected: tuple[str, ...] = ()
    """Versions in `scaled` without a labelSelectorPath."""
    statusless: tuple[str, ...] = ()
    """Versions in `status` whose schema has no status."""
    stateful: tuple[str, ...] = ()
    """Versions whose schema has a status, with or without the subresource."""
    deprecated: tuple[str, ...] = ()
    """Versions in `scaled` that are deprecated."""
    scale_status: tuple[str, ...] = ()
    """The fields that /scale reads from status, such as `.status.replicas`."""

    @property
    def read(self) -> tuple[str, ...]:
        """The versions at which /scale is read.

        An API server counts our reads like those of others: at a deprecated version they would be taken for a
        client's, and the version could never be retired.
        """
        return tuple(each for each in self.scaled if each not in self.deprecated)


@dataclass(frozen=True, slots=True)
class ScaleRead:
    """The result of reading an object's /scale at one version."""

    version: str
    example: str
    """The object, as `namespace/name` or `name`."""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ScaleProbe:
    """The results of a probe."""

    reads: tuple[ScaleRead, ...] = ()
    """A read at each of these versions; empty if there is no object."""
    failure: Failure | None = None
    """Why no object could be searched for."""
    early: bool = False
    """Whether the CRD had changed just before, so that the API server may have used its previous state."""


def declared_subresources(crd: Mapping[str, Any]) -> DeclaredSubresources:
    """Check the subresources of a CRD object, as returned by the API server, against its schemas."""
    spec = crd["spec"]
    scaled, status, unselected, statusless, stateful, deprecated = [], [], [], [], [], []
    scale_status: set[str] = set()
    problems: list[SubresourceProblem] = []
    for i, version in enumerate(spec["versions"]):
        subresources = version.get("subresources") or {}
        if not version["served"]:
            continue
        at = f"spec.versions[{i}]"
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        # Without a schema nothing is pruned, either: only a CRD from v1beta1 times has none.
        root = SchemaSpot(schema, not schema or bool(spec.get("preserveUnknownFields")))
        scale = subresources.get("scale")
        if scale is not None:
            scaled.append(version["name"])
            if version.get("deprecated"):
                deprecated.append(version["name"])
            if not scale.get("labelSelectorPath"):
                unselected.append(version["name"])
            paths = (scale.get(each) or "" for each in ("statusReplicasPath", "labelSelectorPath"))
            scale_status.update(each for each in paths if each.startswith(".status."))
            problems.extend(_scale_problems(scale, root, at))
        has_status = root.child("status") is not None
        if has_status:
            stateful.append(version["name"])
        if subresources.get("status") is not None:
            status.append(version["name"])
            if not has_status:
                statusless.append(version["name"])
        problems.extend(_conditions_problems(root, at))
    return DeclaredSubresources(
        tuple(scaled),
        tuple(status),
        tuple(problems),
        tuple(unselected),
        tuple(statusless),
        tuple(stateful),
        tuple(deprecated),
        tuple(sorted(scale_status)),
    )


def _scale_problems(scale: Mapping[str, Any], root: SchemaSpot, at: str) -> Iterator[SubresourceProblem]:
    for each in scale_path_problems(scale, root):
        where = f"{at}.subresources.scale.{each.key}"
        if not each.declared:
            yield SubresourceProblem(Flaw.PATH_NOT_DECLARED, where, f"the schema has no {each.path}")
        else:
            detail = f"{each.path} must be of type {SCALE_TYPES[each.key]}, but is {each.instead}"
            yield SubresourceProblem(Flaw.PATH_WRONG_TYPE, where, detail)


def _conditions_problems(root: SchemaSpot, at: str) -> Iterator[SubresourceProblem]:
    status = (root.schema.get("properties") or {}).get("status") or {}
    if "conditions" not in (status.get("properties") or {}):
        return
    where = f"{at}.schema.openAPIV3Schema.properties[status].properties[conditions]"
    conditions = SchemaSpot(status["properties"]["conditions"], root.unpruned)
    if other := conditions.lacks_type("array"):
        yield SubresourceProblem(Flaw.CONDITIONS_MALFORMED, where, f"must be of type array, but is {other}")
        return
    for name in ("type", "status"):
        field = conditions.items.child(name)
        if field is None:
            yield SubresourceProblem(Flaw.CONDITIONS_MALFORMED, where, f"its items have no field {name}")
        elif other := field.lacks_type("string"):
            detail = f"its items' {name} must be of type string, but is {other}"
            yield SubresourceProblem(Flaw.CONDITIONS_MALFORMED, where, detail)
