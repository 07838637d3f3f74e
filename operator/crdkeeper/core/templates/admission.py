"""What their CRDs say of a Composition and of a composite, before anything is compiled."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from crdkeeper.api import crdgen
from crdkeeper.api.composition import Composition, CompositionSpec
from crdkeeper.api.meta import API_VERSION
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.apiserver.objects.objectschema import CannotCompile, ObjectSchema
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.composition.acceptance import path_of
from crdkeeper.core.templates.problem import Problems, TemplateProblem


def is_composition(value: object) -> bool:
    """Whether the object claims to be a Composition of crdkeeper."""
    return (
        isinstance(value, Mapping)
        and value.get("kind") == "Composition"
        and value.get("apiVersion") == API_VERSION
    )


def admit_composition(value: Mapping[str, Any]) -> tuple[CompositionSpec | None, list[TemplateProblem]]:
    """The spec of a Composition, or why the API server would refuse it."""
    admitted, problems = _admitted(_schema(), value)
    if problems or admitted is None:
        return None, problems
    return Composition.model_validate(admitted).spec, []


def stored_composition(value: Mapping[str, Any]) -> dict[str, Any]:
    """A Composition that is admitted as the API server stores it: with the defaults of its CRD."""
    stored, _ = _admitted(_schema(), value)
    return dict(stored)


def admit_composite(value: Mapping[str, Any], schema: Schema) -> tuple[Any, list[TemplateProblem]]:
    """A composite with its defaults, or why the API server would refuse it."""
    try:
        return _admitted(ObjectSchema.of(schema), value)
    except CannotCompile as error:
        problems = Problems()
        problems.add(path_of(""), f"the schema cannot be evaluated: {error}")
        return None, problems.found


def _admitted(schema: ObjectSchema, value: Mapping[str, Any]) -> tuple[Any, list[TemplateProblem]]:
    admitted = schema.admit(value)
    problems = Problems()
    for violation in admitted.violations:
        problems.add(violation.path, violation.message)
    for name in admitted.unknown:
        problems.add(path_of(name), "there is no such field", "Check the spelling and the indentation.")
    if admitted.object is None:
        for left in admitted.unchecked:
            problems.add(left.path, left.reason)
    return admitted.object, problems.found


@cache
def _schema() -> ObjectSchema:
    (schema,) = schemas_of(crdgen.definition(Composition)).values()
    return ObjectSchema.of(schema)
