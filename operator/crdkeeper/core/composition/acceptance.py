"""Checks a CompositeResourceDefinition: creates its CRD, or explains why that is impossible."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from crdkeeper.api import crdgen
from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.meta import API_VERSION
from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.apiserver.objects.effort import StepAllowance
from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.violation import Report, Unchecked
from crdkeeper.core.composition import problem as problems
from crdkeeper.core.composition.definition import made_definition
from crdkeeper.core.composition.problem import CompositeProblem
from crdkeeper.core.composition.traps import traps

MOST_RULES: Final = 1_000_000
"""Characters of the rules that are parsed for spec.crdkeeper: a second or two."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The result for a CompositeResourceDefinition."""

    crd: dict[str, Any] | None
    """The CRD; None if the object cannot be read as a CompositeResourceDefinition. With a problem that is
    `refused`, the CRD cannot be applied, but shows where the API server would report errors.
    """
    problems: tuple[CompositeProblem, ...]
    unchecked: tuple[Unchecked, ...] = ()
    """The API server's checks of the CRD that only it can make: neither passed nor failed."""

    @property
    def refused(self) -> bool:
        """Whether no CRD may be applied."""
        return any(each.refused for each in self.problems)


def is_composite_definition(value: object) -> bool:
    """Whether the object claims to be a CompositeResourceDefinition of crdkeeper, not of Crossplane."""
    return (
        isinstance(value, Mapping)
        and value.get("kind") == "CompositeResourceDefinition"
        and value.get("apiVersion") == API_VERSION
    )


def accept(value: Mapping[str, Any]) -> Acceptance:
    """Check the object, as a manifest or as read from a cluster, but not the CRD by itself."""
    admitted = _schema().admit(value)
    found = [CompositeProblem(problems.INVALID, each.path, each.message) for each in admitted.violations]
    found += [CompositeProblem(problems.UNKNOWN, path_of(each), "unknown field") for each in admitted.unknown]
    if admitted.violations or admitted.object is None:
        found += [CompositeProblem(problems.INVALID, each.path, each.reason) for each in admitted.unchecked]
        return Acceptance(None, tuple(found))
    model = CompositeResourceDefinition.model_validate(admitted.object)
    crd = made_definition(model)
    parsing = StepAllowance(MOST_RULES)
    for i, version in enumerate(model.spec.versions):
        at = root("spec").child("versions").index(i).child("schema").child("openAPIV3Schema")
        found += traps(version.schema_.open_api_schema, at, parsing)
    return Acceptance(crd, tuple(found))


def with_server_errors(judged: Acceptance, report: Report | None = None) -> Acceptance:
    """The result with the errors that the API server would report, and what is open: by default of creation.

    The paths of its errors lead to the fields of the definition, whose versions and schemas are at the same
    place as in a CRD. They are named as there: the author of a definition has never seen `spec.validation`.
    """
    if judged.crd is None:
        return judged
    # `traps` reports what is not allowed at the root, with the alternative.
    said = {each.rule for each in judged.problems}
    report = report or check_creation(judged.crd)
    errors = [
        CompositeProblem(each.rule, each.path.in_file(), each.message)
        for each in report.violations
        if not (each.rule is rules.STATUS_ROOT and problems.ROOT in said)
    ]
    unchecked = tuple(replace(each, path=each.path.in_file()) for each in report.unchecked)
    return replace(judged, problems=(*judged.problems, *errors), unchecked=unchecked)


@cache
def _schema() -> ObjectSchema:
    (schema,) = schemas_of(crdgen.definition(CompositeResourceDefinition)).values()
    return ObjectSchema.of(schema)


def path_of(name: str) -> Path:
    """The path of an unknown field, which the server names as `spec.versions[0].nmae`."""
    path = Path("", ())
    for part in name.replace("]", "").replace("[", ".[").split("."):
        index = part.removeprefix("[")
        path = path.index(int(index)) if index != part and index.isdecimal() else path.child(part)
    return path
