"""Findings for the CRD of a CompositeResourceDefinition, as its author sees them.

Versions, schemas and names are at the same place in both. Labels and annotations of the CRD are at
spec.metadata of the definition.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.core.composition.problem import CompositeProblem
from crdkeeper.core.lint.found import AtPath, Found, Steps
from crdkeeper.core.lint.severity import Severity

_MOVED: Final = (("metadata", "labels"), ("metadata", "annotations"))


def of_composite(problems: Iterable[CompositeProblem]) -> list[Found]:
    """The problems of the definition itself, in its own paths: `authored` leaves them as they are."""
    return [
        Found(
            each.rule,
            AtPath(each.path),
            (),
            each.message,
            Severity.ERROR if each.refused else Severity.WARNING,
            final=each.refused,
        )
        for each in problems
    ]


def authored(definition: Mapping[str, Any], found: Iterable[Found]) -> list[Found]:
    """Without findings about what crdkeeper adds to the CRD, and named and placed as in the definition.

    Findings of the API server remain in any case: it decides about the whole CRD.
    """
    placed = map(_placed, found)
    return [each for each in placed if each.final or _is_written(definition, each.owner)]


def _placed(found: Found) -> Found:
    if not isinstance(found.where, AtPath):
        return found
    at = found.where.at.in_file()
    return found._replace(where=AtPath(at.below(root("spec")) if at.steps[:2] in _MOVED else at))


def _is_written(definition: Any, steps: Steps) -> bool:
    at = definition
    for step in steps:
        try:
            at = at[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True
