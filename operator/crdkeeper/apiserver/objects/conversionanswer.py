"""What the API server takes from the answer of a conversion webhook, and when it rejects it.

As in webhookConverter of k8s.io/apiextensions-apiserver. A webhook may change only labels and annotations of
metadata: the rest comes from the original. Any other name, UID or version fails the whole request, even a
list of thousands. The result is then pruned by `ObjectSchema.converted`, but not validated by the schema.
"""

from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.golang.text import quote
from crdkeeper.apiserver.objects.objectmetarules import annotation_findings, label_findings
from crdkeeper.apiserver.schema.decoding import ABSENT, Anything, ListOf, Struct, Text
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.finding import FieldErrors, structural_violations
from crdkeeper.apiserver.schema.violation import Report

_V1 = "apiextensions.k8s.io/v1"
_KIND = "ConversionReview"
_ANY = Anything()
_RESULT = Struct(
    {
        **dict.fromkeys(("status", "message", "reason", "kind", "apiVersion"), Text()),
        **dict.fromkeys(("metadata", "details", "code"), _ANY),
    }
)
_RESPONSE = Struct({"uid": Text(), "result": _RESULT, "convertedObjects": ListOf(_ANY, None)})
_REVIEW = Struct({"apiVersion": Text(), "kind": Text(), "request": _ANY, "response": _RESPONSE})


class RefusedAnswer(ValueError):
    """The API server rejects a webhook's answer; the text is its message, or the beginning of it."""


def taken(answer: Any, original: Mapping[str, Any], api_version: str, uid: str) -> dict[str, Any]:
    """The object that the API server takes from a ConversionReview of v1, in answer to one about `original`.

    `original` is the object as in the request. Does not change its arguments. Raises RefusedAnswer.
    """
    failed = f"conversion webhook for {_described(original)} failed: "
    report = Report()
    review: Any = _REVIEW.decode(answer, Path("", ()), report)
    if (
        review is ABSENT
        or report.violations
        or (review.get("apiVersion"), review.get("kind")) != (_V1, _KIND)
    ):
        raise RefusedAnswer(failed)
    response = review.get("response")
    if response is None:
        raise RefusedAnswer(f"{failed}no response provided")
    if response.get("uid", "") != uid:
        got = quote(response.get("uid", ""))
        raise RefusedAnswer(f"{failed}expected response.uid={quote(uid)}, got {got}")
    result = response.get("result", {})
    if result.get("status") != "Success":
        said = f"response.result.status was '{result.get('status', '')}', not 'Success'"
        raise RefusedAnswer(failed + result.get("message", said))
    objects = response.get("convertedObjects", [])
    if len(objects) != 1:
        returned = (
            f"conversion webhook for {_described(original)} returned {len(objects)} objects, expected 1"
        )
        raise RefusedAnswer(returned)
    return restored(original, objects[0], api_version)


def restored(original: Mapping[str, Any], converted: Any, api_version: str) -> dict[str, Any]:
    """The converted object with the metadata of the original, except labels and annotations.

    Raises RefusedAnswer for changes that a webhook may not make.
    """
    returned = f"conversion webhook for {_described(original)} returned invalid "
    if converted is None:
        raise RefusedAnswer("unexpected end of JSON input")
    if not isinstance(converted, dict):
        raise RefusedAnswer("json: cannot unmarshal ")
    version, kind = _text(converted, "apiVersion"), _text(converted, "kind")
    if not kind or version.count("/") > 1:
        raise RefusedAnswer("Object 'Kind' is missing in ")
    if version != api_version:
        expected = f"invalid groupVersion (expected {api_version}, received {version.removeprefix('/')})"
        raise RefusedAnswer(f"{returned}object at index 0: {expected}")
    if kind != original.get("kind"):
        expected = f"invalid kind (expected {original.get('kind')}, received {kind})"
        raise RefusedAnswer(f"{returned}object at index 0: {expected}")
    for field, name in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        before, after = (_text(_mapping(each.get("metadata")), field) for each in (original, converted))
        if before != after:
            raise RefusedAnswer(f"{returned}object: must have the same {name}: {before} != {after}")
    try:
        metadata = _metadata(original, converted)
    except _BadMetadata as error:
        raise RefusedAnswer(f"{returned}metadata: {error}") from None
    return {**converted, "metadata": metadata}


class _BadMetadata(ValueError):
    """The metadata of a converted object is invalid."""


def _metadata(original: Mapping[str, Any], converted: Mapping[str, Any]) -> dict[str, Any]:
    if "metadata" not in converted:
        raise _BadMetadata("missing metadata in converted object")
    answered = converted["metadata"]
    if not isinstance(answered, dict):
        raise _BadMetadata(f"invalid metadata of type {_go_type(answered)} in converted object")
    metadata = dict(original.get("metadata") or {})
    for field in ("labels", "annotations"):
        found, before = answered.get(field), metadata.pop(field, None)
        if found is None:
            continue
        if not isinstance(found, dict):
            raise _BadMetadata(f"invalid metadata.{field} of type {_go_type(found)} in converted object")
        for key, value in found.items():
            if not isinstance(value, str):
                problem = f"must be a string, but is {_go_type(value)} in converted object"
                raise _BadMetadata(f"metadata.{field}[{key}] {problem}")
        # Unchanged values may be invalid, as in an old object.
        if found != (before or {}):
            _check(field, found)
        metadata[field] = found
    return metadata


def _check(field: str, found: dict[str, str]) -> None:
    findings: FieldErrors
    if field == "labels":
        path, findings = root("metadata").child("labels"), label_findings(found)
    else:
        path, findings = root("metadata").child("annotation"), annotation_findings(found)
    said = [f"{each.path}: {each.message}" for each in structural_violations(findings, path)]
    said = list(dict.fromkeys(said))
    if said:
        raise _BadMetadata(said[0] if len(said) == 1 else f"[{', '.join(said)}]")


def _described(value: Mapping[str, Any]) -> str:
    return f"{value.get('apiVersion')}, Kind={value.get('kind')}"


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _go_type(value: Any) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    for type_, name in (
        (str, "string"),
        (int, "int64"),
        (float, "float64"),
        (list, "[]interface {}"),
    ):
        if isinstance(value, type_):
            return name
    return "map[string]interface {}"
