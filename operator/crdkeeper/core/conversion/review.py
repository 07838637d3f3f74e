"""ConversionReview: what the API server asks of a conversion webhook, and what it expects as an answer.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from crdkeeper.api.texts import bounded
from crdkeeper.core.conversion.nesting import dumps, forget, loads, without_abysses
from crdkeeper.core.conversion.objects import Conversion, ConversionTally
from crdkeeper.core.conversion.values import Unconvertible

_GROUP: Final = "apiextensions.k8s.io"
MAX_VALUES: Final = 1_600_000
"""Commas and opening brackets of a request. Three bytes of JSON can take a hundred of memory, so a size limit
alone is not enough. An object that etcd can store (1.5 MiB) has fewer, so this fails none.
"""
_VERSIONS: Final = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")


_NAME_BYTES: Final = 600
"""For a kind, a namespace and a name; those of API servers have at most 63, 63 and 253."""


_NOTHING_MET: Final = ConversionTally()


class BadReview(ValueError):
    """The request is not a ConversionReview: an answer in its form would not be understood."""


class ReviewResponse(NamedTuple):
    """The ConversionReview to answer with, and the result for the objects."""

    review: dict[str, Any]
    objects: int
    """How many were converted; 0 if one could not be."""
    error: str = ""
    """Which object could not be converted, and why."""
    tally: ConversionTally = _NOTHING_MET


def answer(review: Any, conversion: Conversion) -> ReviewResponse:
    """Convert all objects of a request, or none. Raises BadReview.

    The API server expects all objects or a failure, so the message names the object at fault.
    """
    version, request = _read(review)
    uid, desired, objects = request["uid"], request["desiredAPIVersion"], request["objects"]
    group, _, target = desired.rpartition("/")
    made: list[Any] = []
    tally = ConversionTally()
    error = ""
    if group != conversion.group or target not in conversion.versions:
        known = f"{', '.join(conversion.versions)} of {conversion.group}"
        error = f"{desired} is none of the versions known here: {known}"
    for each in objects if not error else ():
        try:
            _check_metadata(each)
            made.append(without_abysses(conversion.convert(each, target, tally)))
        except Unconvertible as unconvertible:
            error = f"{_name(each)}: {unconvertible}"
        except RecursionError:
            error = f"{_name(each)}: is nested too deep"
        except MemoryError:
            raise  # nobody's bug
        except Exception as failure:
            # Our own bug: the API server should still learn which object it concerns.
            error = (
                f"{_name(each)}: the conversion failed ({type(failure).__name__}), a defect; please report it"
            )
        if error:
            made.clear()
            break
    error = bounded(error)
    result = _failed(error) if error else {"status": "Success"}
    response = {"uid": uid, "convertedObjects": made, "result": result}
    document = {"apiVersion": version, "kind": "ConversionReview", "response": response}
    return ReviewResponse(document, len(made), error, tally)


class Reply(NamedTuple):
    """An answer as JSON."""

    content: bytes
    objects: int
    """How many were converted; 0 if one could not be."""
    error: str = ""
    """Which object could not be converted, and why."""
    tally: ConversionTally = _NOTHING_MET


def answered(body: bytes | bytearray, conversion: Conversion) -> Reply:
    """`answer` from JSON to JSON. Raises BadReview."""
    forget()
    if len(body) > MAX_VALUES and sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise BadReview(f"more than {MAX_VALUES:,} commas and brackets")
    try:
        review = loads(body)
    except orjson.JSONDecodeError as error:
        raise BadReview(str(error)) from None
    made = answer(review, conversion)
    return Reply(dumps(made.review), made.objects, made.error, made.tally)


def given_up(body: bytes | bytearray, problem: str) -> Reply:
    """The answer to a ConversionReview whose processing was aborted. Raises BadReview."""
    version, request = _read(loads(body))
    objects = request["objects"]
    error = bounded(f"{_name(objects[0]) if len(objects) == 1 else f'{len(objects)} objects'}: {problem}")
    response = {"uid": request["uid"], "convertedObjects": [], "result": _failed(error)}
    review = {"apiVersion": version, "kind": "ConversionReview", "response": response}
    return Reply(orjson.dumps(review), 0, error)


def _failed(message: str) -> dict[str, str]:
    return {"status": "Failed", "message": message}


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


def _check_metadata(value: Mapping[str, Any]) -> None:
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        raise Unconvertible("metadata: is no object")
    for field in ("annotations", "labels"):
        found = metadata.get(field)
        if found is not None and not isinstance(found, dict):
            raise Unconvertible(f"metadata.{field}: is no object")


def _name(value: Mapping[str, Any]) -> str:
    metadata = value.get("metadata")
    names = (metadata.get("namespace"), metadata.get("name")) if isinstance(metadata, dict) else ()
    name = "/".join(str(each) for each in names if each)
    return bounded(f"{value.get('kind')} {name or 'without a name'}", _NAME_BYTES)
