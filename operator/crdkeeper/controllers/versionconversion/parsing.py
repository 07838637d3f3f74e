"""A VersionConversion as it was read, even if it is not valid: its status has to say so."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from crdkeeper.api.meta import ObjectMeta
from crdkeeper.api.versionconversion import (
    SHOWN,
    RuleProblem,
    VersionConversion,
    VersionConversionSpec,
    VersionConversionStatus,
)


def parse(found: Mapping[str, Any]) -> tuple[VersionConversion, list[RuleProblem]]:
    """The object, without its spec if that is invalid, and why it is."""
    metadata = ObjectMeta.model_validate(found["metadata"])
    try:
        status = VersionConversionStatus.model_validate(found.get("status") or {})
    except ValidationError:
        status = VersionConversionStatus.model_validate({})
    spec, problems = None, []
    try:
        spec = VersionConversionSpec.model_validate(found["spec"])
    except ValidationError as error:
        problems = [
            RuleProblem(path=".".join(map(str, ("spec", *each["loc"]))), message=each["msg"])
            for each in error.errors()[:SHOWN]
        ]
    understood: dict[str, Any] = {"spec": spec} if spec is not None else {}
    return VersionConversion.model_construct(metadata=metadata, status=status, **understood), problems
