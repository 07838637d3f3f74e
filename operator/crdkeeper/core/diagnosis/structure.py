"""The facts behind NonStructuralSchema: the check of all schemas of a CRD, each violation with its path."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.structural import conversion_error, violations
from crdkeeper.apiserver.schema.violation import Report

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Structure:
    """The result of checking all schemas of a CRD."""

    violations: int = 0
    shown: tuple[str, ...] = ()
    """The first of them, each as `path: message`."""
    error: str = ""
    """Why a schema cannot be converted at all; empty if all can."""
    decided: bool = True


def structure(crd: Mapping[str, Any]) -> Structure:
    """Check all schemas of a CRD as the API server decodes it.

    Raises RecursionError if they are nested too deeply.
    """
    spec = crd.get("spec", {})
    report = Report()
    if spec.get("preserveUnknownFields"):
        at = root("spec").child("preserveUnknownFields")
        report.invalid(rules.PRESERVE_UNKNOWN_FIELDS, at, True, "must be false")
    errors = []
    for i, version in enumerate(spec.get("versions", ())):
        schema = version.get("schema", {}).get("openAPIV3Schema")
        if schema is None:
            continue
        error = conversion_error(schema)
        if error is not None:
            name = version.get("name", "")
            errors.append(f"failed to check validation schema for version {name}: {error}")
        else:
            at = root("spec").child("versions").index(i).child("schema").child("openAPIV3Schema")
            violations(schema, at, report)
    found = report.violations
    shown = tuple(f"{each.path}: {each.message}"[:300] for each in found[:_SHOWN])
    return Structure(len(found), shown, "; ".join(errors)[:1000])
