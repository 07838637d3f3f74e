"""ConversionReview: what the API server asks of a conversion webhook, and what it wants to hear.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.conversion.values import Unconvertible

_GROUP: Final = "apiextensions.k8s.io"
_VERSIONS: Final = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")


class BadReview(ValueError):
    """A request that is no ConversionReview: an answer in its form would not be understood."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The ConversionReview to answer with, and what became of the objects."""

    review: dict[str, Any]
    objects: int
    """How many were converted; 0 if any could not be."""
    error: str = ""
    """Which object could not be converted, and why."""


def answer(review: Any, conversion: Conversion) -> Answer:
    """Convert all objects of a request, or none. Raises BadReview.

    The API server wants all of them or a failure, so the message names the object at fault.
    """
    version, request = _read(review)
    uid, desired, objects = request["uid"], request["desiredAPIVersion"], request["objects"]
    group, _, target = desired.rpartition("/")
    made: list[Any] = []
    error = ""
    if group != conversion.group or target not in conversion.versions:
        known = f"{', '.join(conversion.versions)} of {conversion.group}"
        error = f"{desired} is none of the versions known here: {known}"
    for each in objects if not error else ():
        try:
            made.append(conversion.convert(each, target))
        except Unconvertible as unconvertible:
            error = f"{_name(each)}: {unconvertible}"
        except RecursionError:
            error = f"{_name(each)}: is nested too deep"
        if error:
            made.clear()
            break
    result = {"status": "Failed", "message": error} if error else {"status": "Success"}
    response = {"uid": uid, "convertedObjects": made, "result": result}
    document = {"apiVersion": version, "kind": "ConversionReview", "response": response}
    return Answer(document, len(made), error)


def _read(review: Any) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(review, dict) or review.get("kind") != "ConversionReview":
        raise BadReview("kind: must be ConversionReview")
    version = review.get("apiVersion")
    if version not in _VERSIONS:
        raise BadReview(f"apiVersion: must be one of {', '.join(_VERSIONS)}")
    request = review.get("request")
    if not isinstance(request, dict):
        raise BadReview("request: must be an object")
    for field in ("uid", "desiredAPIVersion"):
        if not isinstance(request.get(field), str):
            raise BadReview(f"request.{field}: must be a string")
    objects = request.get("objects")
    if not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
        raise BadReview("request.objects: must be a list of objects")
    return str(version), request


def _name(value: Mapping[str, Any]) -> str:
    metadata = value.get("metadata")
    names = (metadata.get("namespace"), metadata.get("name")) if isinstance(metadata, dict) else ()
    name = "/".join(str(each) for each in names if each)
    return f"{value.get('kind')} {name or 'without a name'}"
