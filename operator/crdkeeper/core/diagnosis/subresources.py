"""SubresourcesReady: do scale and status work as kubectl, autoscalers and controllers expect?

The API server checks of a scale path only that it starts with .spec or .status, not that there is such a
field. One that is not in the schema is pruned from every object, and one of the wrong type has every object
refused that sets it (scaleFromCustomResource in registry/customresource/etcd.go).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.conversionfailures import essence
from crdkeeper.core.diagnosis.probes import PERMIT, Failure, Trouble, not_permitted
from crdkeeper.core.diagnosis.verdict import Reason, Verdict

_TYPE = "SubresourcesReady"
NONE_DECLARED = Reason(
    _TYPE, "True", "NoneDeclared", "No served version has a status or a scale subresource."
)
DECLARED = Reason(
    _TYPE, "True", "Declared", "The schemas have the fields that the subresources need, in the right types."
)
READ = Reason(
    _TYPE, "True", "ScaleRead", "The fields are declared, and /scale of an object was read at each version."
)
SELECTOR_MISSING = Reason(
    _TYPE,
    "True",
    "SelectorMissing",
    "A scale subresource has no labelSelectorPath: kubectl scale works, a HorizontalPodAutoscaler does not.",
    "Add labelSelectorPath and have the controller write the pods' selector there, if it is to be "
    "autoscaled.",
)
STATUS_NOT_DECLARED = Reason(
    _TYPE,
    "True",
    "StatusNotDeclared",
    "There is a status subresource, but the schema has no status: whatever is written to it is pruned.",
    "Declare status in the schema, or remove the subresource if nothing writes it.",
)
PENDING = Reason(_TYPE, "Unknown", "Pending", "No object's /scale has been read yet.")
NOT_PERMITTED = Reason(
    _TYPE, "Unknown", "NotPermitted", "The fields are declared, but crdkeeper may not read /scale.", PERMIT
)
NOT_ASKED = Reason(
    _TYPE,
    "Unknown",
    "APIServerUnavailable",
    "The fields are declared, but the API server did not answer, was too busy, or does not serve the kind.",
    "Nothing: it is asked again.",
)
PATH_NOT_DECLARED = Reason(
    _TYPE,
    "False",
    "ScalePathNotDeclared",
    "A path of the scale subresource names a field that the schema does not have, so that it is always "
    "pruned.",
    "Add the field to the schema, or correct the path.",
    healthy=False,
)
PATH_WRONG_TYPE = Reason(
    _TYPE,
    "False",
    "ScalePathWrongType",
    "A path of the scale subresource leads to a field of the wrong type, so that objects with a value "
    "there are refused.",
    "Make the replicas an integer and the selector a string (a serialized label selector, no object).",
    healthy=False,
)
SCALE_FAILS = Reason(
    _TYPE,
    "False",
    "ScaleFails",
    "The /scale of an object cannot be read.",
    "Give the replicas field a default where it may be missing, and mend objects with a value of a wrong "
    "type.",
    healthy=False,
)
CONDITIONS_MALFORMED = Reason(
    _TYPE,
    "False",
    "ConditionsMalformed",
    "status.conditions is no list of objects with the strings `type` and `status`: kubectl wait and other "
    "tools cannot read it.",
    "Declare status.conditions as metav1.Condition does.",
    healthy=False,
)


@dataclass(frozen=True, slots=True)
class SubresourceProblem:
    """Something in the schema of a version that is not as its subresource needs it."""

    reason: Reason
    path: str
    """In the CRD, such as `spec.versions[0].subresources.scale.specReplicasPath`."""
    detail: str


@dataclass(frozen=True, slots=True)
class DeclaredSubresources:
    """What the served versions of a CRD declare, checked against their own schemas."""

    scaled: tuple[str, ...] = ()
    """Versions with a scale subresource."""
    status: tuple[str, ...] = ()
    """Versions with a status subresource."""
    problems: tuple[SubresourceProblem, ...] = ()
    """At most five for each version."""
    unselected: tuple[str, ...] = ()
    """Those of `scaled` without a labelSelectorPath."""
    statusless: tuple[str, ...] = ()
    """Those of `status` whose schema has no status."""


@dataclass(frozen=True, slots=True)
class ScaleRead:
    """The read of an object's /scale at one version."""

    version: str
    example: str
    """The object, as `namespace/name` or `name`."""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ScaleProbe:
    """What was found by asking."""

    reads: tuple[ScaleRead, ...] = ()
    """By version; empty where there is no object."""
    failure: Failure | None = None
    """Why no object could be looked for."""
    early: bool = False
    """Whether the CRD had changed just before, so that the API server may have answered as of the old one."""


@dataclass(frozen=True, slots=True)
class SubresourceFacts:
    """All that SubresourcesReady depends on."""

    definition: DefinitionFacts
    declared: DeclaredSubresources
    probe: ScaleProbe | None
    """None before the first probe, and where no version has a scale subresource."""


def declared_subresources(crd: Mapping[str, Any]) -> DeclaredSubresources:
    """Check the subresources of a CRD object, as the API server returns it, against its schemas."""
    spec = crd["spec"]
    scaled, status, unselected, statusless = [], [], [], []
    problems: list[SubresourceProblem] = []
    for i, version in enumerate(spec["versions"]):
        subresources = version.get("subresources") or {}
        if not version["served"]:
            continue
        at = f"spec.versions[{i}]"
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        # Without a schema nothing is pruned either: only a CRD of the v1beta1 days has none.
        root = _Node(schema, not schema or bool(spec.get("preserveUnknownFields")))
        scale = subresources.get("scale")
        if scale is not None:
            scaled.append(version["name"])
            if not scale.get("labelSelectorPath"):
                unselected.append(version["name"])
            problems.extend(_scale_problems(scale, root, at))
        if subresources.get("status") is not None:
            status.append(version["name"])
            if root.child("status") is None:
                statusless.append(version["name"])
        problems.extend(_conditions_problems(root, at))
    return DeclaredSubresources(
        tuple(scaled), tuple(status), tuple(problems), tuple(unselected), tuple(statusless)
    )


def judge(facts: SubresourceFacts) -> Verdict:
    """The condition. What the schema lacks comes before what one object shows."""
    declared, probe = facts.declared, facts.probe
    if declared.problems:
        return _verdict(declared.problems[0].reason, _listed(declared.problems))
    if not declared.scaled:
        return _judge_sound(declared, None)
    if probe is None:
        return _verdict(PENDING, "The paths of /scale are declared; no object's /scale has been read yet.")
    failed = [(each, each.failure) for each in probe.reads if each.failure is not None]
    for read, failure in failed:
        if failure.trouble is Trouble.FAILED:
            said = essence(failure.message)
            return _verdict(
                SCALE_FAILS, f"/scale of {read.example} cannot be read at {read.version}: {said}."
            )
    failure_ = probe.failure or (failed[0][1] if failed else None)
    if failure_ is not None and failure_.trouble is Trouble.FORBIDDEN:
        return _verdict(NOT_PERMITTED, not_permitted(facts.definition, failure_))
    if failure_ is not None:
        return _verdict(NOT_ASKED, f"{facts.definition.name} could not be read: {essence(failure_.message)}.")
    return _judge_sound(declared, probe)


def _judge_sound(declared: DeclaredSubresources, probe: ScaleProbe | None) -> Verdict:
    reason, said = DECLARED, "The fields of the subresources are declared in the right types."
    if not declared.scaled and not declared.status:
        reason, said = NONE_DECLARED, "No served version has a subresource."
    elif probe is not None and probe.reads:
        versions = ", ".join(each.version for each in probe.reads)
        reason, said = READ, f"/scale of {probe.reads[0].example} was read at {versions}."
    elif probe is not None:
        said += " There is no object whose /scale could be read."
    if declared.statusless:
        reason = STATUS_NOT_DECLARED
        said += f" The schema has no status at {', '.join(declared.statusless)}."
    if declared.unselected:
        reason = SELECTOR_MISSING
        said += f" There is no labelSelectorPath at {', '.join(declared.unselected)}."
    return _verdict(reason, said)


def _verdict(reason: Reason, said: str) -> Verdict:
    return Verdict(reason, f"{said} {reason.remedy}".rstrip())


def _listed(problems: tuple[SubresourceProblem, ...]) -> str:
    shown = "; ".join(f"{each.path}: {each.detail}" for each in problems[:5])
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return f"{shown}{more}."


@dataclass(frozen=True, slots=True)
class _Node:
    """A place in a schema."""

    schema: Mapping[str, Any]
    unpruned: bool = False
    """Whether all below is kept, declared or not: below an undeclared field that is kept, and everywhere
    with the preserveUnknownFields of the v1beta1 days."""

    def child(self, name: str) -> "_Node | None":
        """A field; None if it is pruned."""
        properties = self.schema.get("properties") or {}
        if name in properties:
            return _Node(properties[name], self.unpruned)
        values = self.schema.get("additionalProperties")
        if isinstance(values, dict):
            return _Node(values, self.unpruned)
        return _Node({}, True) if values is True or self._keeps_unknown else None

    @property
    def items(self) -> "_Node":
        """The entries of a list."""
        items = self.schema.get("items")
        return _Node(items, self.unpruned) if isinstance(items, dict) else _Node({}, True)

    def lacks_type(self, wanted: str) -> str:
        """What stands here instead of that type; empty if it does, or anything may."""
        found = self.schema.get("type")
        if found == wanted or (not found and self._keeps_unknown):
            return ""
        if self.schema.get("x-kubernetes-int-or-string"):
            return "an integer or a string"
        return f"of type {found}" if found else "of no type"

    @property
    def _keeps_unknown(self) -> bool:
        return self.unpruned or bool(self.schema.get("x-kubernetes-preserve-unknown-fields"))


def _find(root: _Node, path: str) -> _Node | None:
    """Where a scale path leads; it is split at dots and nothing else (splitReplicasPath)."""
    here: _Node | None = root
    for name in path.removeprefix(".").split("."):
        if here is None:
            return None
        here = here.child(name)
    return here


_SCALE_TYPES = {"specReplicasPath": "integer", "statusReplicasPath": "integer", "labelSelectorPath": "string"}


def _scale_problems(scale: Mapping[str, Any], root: _Node, at: str) -> Iterator[SubresourceProblem]:
    for key, wanted in _SCALE_TYPES.items():
        path = scale.get(key)
        if not path:
            continue
        where, found = f"{at}.subresources.scale.{key}", _find(root, path)
        if found is None:
            yield SubresourceProblem(PATH_NOT_DECLARED, where, f"the schema has no {path}")
        elif other := found.lacks_type(wanted):
            detail = f"{path} must be of type {wanted}, but is {other}"
            yield SubresourceProblem(PATH_WRONG_TYPE, where, detail)


def _conditions_problems(root: _Node, at: str) -> Iterator[SubresourceProblem]:
    status = (root.schema.get("properties") or {}).get("status") or {}
    if "conditions" not in (status.get("properties") or {}):
        return
    where = f"{at}.schema.openAPIV3Schema.properties[status].properties[conditions]"
    conditions = _Node(status["properties"]["conditions"], root.unpruned)
    if other := conditions.lacks_type("array"):
        yield SubresourceProblem(CONDITIONS_MALFORMED, where, f"must be of type array, but is {other}")
        return
    for name in ("type", "status"):
        field = conditions.items.child(name)
        if field is None:
            yield SubresourceProblem(CONDITIONS_MALFORMED, where, f"its items have no field {name}")
        elif other := field.lacks_type("string"):
            detail = f"its items' {name} must be of type string, but is {other}"
            yield SubresourceProblem(CONDITIONS_MALFORMED, where, detail)
