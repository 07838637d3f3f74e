"""The rules for apiVersion, kind and metadata: of an object itself, and of embedded resources.

They are those of ValidateObjectMeta (apimachinery) and of objectmeta.Validate (apiextensions-apiserver).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from crdkeeper.apiserver.dnsnames import key_errors, label_errors, subdomain_errors, value_errors
from crdkeeper.apiserver.golang.strings import UNICODE_VARIES, is_printable, to_lower
from crdkeeper.apiserver.golang.text import StructValue, quote
from crdkeeper.apiserver.objects.objectmeta import OWNER_FIELDS, Malformed, object_meta
from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.apiserver.objects.valuerules import METADATA
from crdkeeper.apiserver.schema.finding import (
    INVALID,
    MOST_FINDINGS,
    NO_FINDINGS,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    FieldError,
    FieldErrors,
    Step,
    UndecidedValue,
    below,
)

_LONGEST_PREFIX: Final = 58
_ANNOTATION_BYTES: Final = 256 << 10
_LONGEST_MANAGER: Final = 128
_LONGEST_SUBRESOURCE: Final = 256


def _invalid(value: Any, detail: str) -> FieldError:
    return FieldError(METADATA, INVALID, value, detail)


def _required(detail: str = "") -> FieldError:
    return FieldError(METADATA, REQUIRED, "", detail)


def _at(name: str, *findings: FieldError) -> list[FieldError]:
    return list(below(Step.FIELD, name, findings))


def check_root(metadata: dict[str, Any], *, create: bool) -> FieldErrors:
    """Check an object's own normalized metadata. The namespace is the request's, and is not checked here.

    In a generated name, x represents the server's random characters.
    """
    found: list[FieldError] = []
    if create:
        generated = metadata.get("generateName", "")[:_LONGEST_PREFIX] + "xxxxx"
        found += _names({"name": generated, **metadata} if len(generated) > 5 else metadata, _subdomain)
    found += _common(metadata)
    if create:
        found += _finalizers(metadata.get("finalizers", []))
    return below(Step.FIELD, "metadata", found)


def _names(metadata: dict[str, Any], errors: Callable[[str, bool], list[str]]) -> list[FieldError]:
    found: list[FieldError] = []
    prefix, name = metadata.get("generateName", ""), metadata.get("name", "")
    if prefix:
        found += _at("generateName", *(_invalid(prefix, each) for each in errors(prefix, True)))
    if name:
        found += _at("name", *(_invalid(name, each) for each in errors(name, False)))
    elif not prefix:
        found += _at("name", _required("name or generateName is required"))
    return found


def _subdomain(name: str, prefix: bool) -> list[str]:
    if prefix and len(name) > 1 and name.endswith("-"):
        # As in the server: the byte before the dash is removed as well.
        name = name.encode(errors="replace")[:-2].decode(errors="replace") + "a"
    return subdomain_errors(name)


def _path_segment(name: str, prefix: bool) -> list[str]:
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{each}'" for each in ("/", "%") if each in name]


def _common(metadata: dict[str, Any]) -> list[FieldError]:
    found = _at("labels", *label_findings(metadata.get("labels", {})))
    found += _at("annotations", *annotation_findings(metadata.get("annotations", {})))
    return found + _at("ownerReferences", *_owners(metadata.get("ownerReferences", [])))


def label_findings(labels: Mapping[str, str]) -> list[FieldError]:
    """Errors of labels, all reported at the field itself."""
    found: list[FieldError] = []
    for key, value in labels.items():
        found += [_invalid(key, each) for each in key_errors(key)]
        found += [_invalid(value, each) for each in value_errors(value)]
    return found


def annotation_findings(annotations: Mapping[str, str]) -> list[FieldError]:
    """Errors of annotations, all reported at the field itself."""
    found: list[FieldError] = []
    size = 0
    for key, value in annotations.items():
        size += len(key.encode(errors="replace")) + len(value.encode(errors="replace"))
        found += [_invalid(key, each) for each in key_errors(to_lower(key))]
    if size > _ANNOTATION_BYTES:
        found.append(FieldError(METADATA, TOO_LONG, "", f"may not be more than {_ANNOTATION_BYTES} bytes"))
    return found


def _owners(owners: list[dict[str, Any]]) -> list[FieldError]:
    found: list[FieldError] = []
    controller = ""
    shown: list[StructValue] = []
    for i, each in enumerate(owners):
        found += below(Step.INDEX, i, _owner(each))
        if each.get("controller"):
            name = f"{each['kind']}/{each['name']}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {name}'
                )
                shown = shown or [_shown(each) for each in owners]
                found.append(_invalid(shown, detail))
            else:
                controller = name
    return found


def _owner(owner: dict[str, Any]) -> list[FieldError]:
    found: list[FieldError] = []
    version = owner["apiVersion"]
    if not version:
        found += _at("apiVersion", _required("must not be empty"))
    elif version.count("/") > 1 or version.endswith("/"):
        found += _at("apiVersion", _invalid(version, "must be <group>/<version> or <version>"))
    for key in ("kind", "name", "uid"):
        if not owner[key]:
            found += _at(key, _required("must not be empty"))
    if version in ("v1", "/v1") and owner["kind"] == "Event":
        found.append(_invalid(_shown(owner), "/v1, Kind=Event is disallowed from being an owner"))
    return found


def _shown(owner: dict[str, Any]) -> StructValue:
    return StructValue((key, owner[key]) for key in OWNER_FIELDS if key in owner)


def _finalizers(finalizers: list[str]) -> list[FieldError]:
    found = [_invalid(each, error) for each in finalizers for error in key_errors(each)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        found.append(_invalid(finalizers, "finalizer orphan and foregroundDeletion cannot be both set"))
    return _at("finalizers", *found)


def check_embedded(value: Any, node: ObjectNode | None) -> FieldErrors:
    """Check the resources embedded in a value, and itself if its schema says so. Raises UndecidedValue.

    It ends with `MOST_FINDINGS`.
    """
    if node is None or not node.has_embedded:
        return NO_FINDINGS
    found: list[FieldError] = []
    if type(value) is dict:
        if node.embedded:
            found += _resource(value)
        for key, each in value.items():
            child = node.child(key)
            if child is not None and child.has_embedded:
                step = Step.FIELD if key in node.properties else Step.KEY
                found += below(step, key, check_embedded(each, child))
                if len(found) >= MOST_FINDINGS:
                    break
    elif type(value) is list:
        for i, each in enumerate(value):
            found += below(Step.INDEX, i, check_embedded(each, node.items))
            if len(found) >= MOST_FINDINGS:
                break
    return found


def _resource(value: dict[str, Any]) -> list[FieldError]:
    found: list[FieldError] = []
    for key, check in (("apiVersion", _api_version), ("kind", _kind)):
        if key not in value:
            found += _at(key, _required())
        elif not isinstance(value[key], str):
            found += _at(key, _invalid(value[key], "must be a string"))
        elif not value[key]:
            found += _at(key, _invalid("", "must not be empty"))
        else:
            found += _at(key, *check(value[key]))
    if "metadata" in value:
        found += _at("metadata", *_embedded_metadata(value["metadata"]))
    return found


def _api_version(text: str) -> list[FieldError]:
    return [_invalid(text, f"unexpected GroupVersion string: {text}")] if text.count("/") > 1 else []


def _kind(text: str) -> list[FieldError]:
    errors = label_errors(to_lower(text))
    if not errors:
        return []
    return [_invalid(text, "may have mixed case, but should otherwise match: " + ",".join(errors))]


def _embedded_metadata(raw: Any) -> list[FieldError]:
    try:
        metadata = object_meta(raw)
    except Malformed as error:
        return [_invalid(raw, str(error))]
    found = _names({"name": "fakename", **metadata}, _path_segment)
    namespace = metadata.get("namespace", "")
    found += _at("namespace", *(_invalid(namespace, each) for each in _namespace_errors(namespace)))
    if metadata.get("generation", 0) < 0:
        found += _at("generation", _invalid(metadata["generation"], "must be greater than or equal to 0"))
    found += _common(metadata)
    found += _finalizers(metadata.get("finalizers", []))
    return found + _at("managedFields", *_managers(metadata.get("managedFields", [])))


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_IS_LABEL = re.compile(_LABEL)
_IS_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def _namespace_errors(name: str) -> list[str]:
    if not name:
        return []
    errors = []
    if len(name.encode(errors="replace")) > 63:
        errors.append("must be no more than 63 characters")
    if _IS_LABEL.fullmatch(name):
        return errors
    if _IS_SUBDOMAIN.fullmatch(name):
        errors.append("must not contain dots")
    else:
        errors.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
            "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
            f"validation is '{_LABEL}')"
        )
    return errors


def _managers(managers: list[dict[str, Any]]) -> list[FieldError]:
    found: list[FieldError] = []
    for i, each in enumerate(managers):
        found += below(Step.INDEX, i, _manager(each))
    return found


def _manager(entry: dict[str, Any]) -> list[FieldError]:
    found: list[FieldError] = []
    operation, manager = entry.get("operation", ""), entry.get("manager", "")
    if not operation:
        found += _at("operation", _required("must not be empty"))
    elif operation not in ("Apply", "Update"):
        detail = "supported values: " + ", ".join(map(quote, ("Apply", "Update")))
        found += _at("operation", FieldError(METADATA, NOT_SUPPORTED, operation, detail))
    if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
        found += _at("fieldsType", _invalid(entry["fieldsType"], "must be `FieldsV1`"))
    for key, text, limit in (
        ("manager", manager, _LONGEST_MANAGER),
        ("subresource", entry.get("subresource", ""), _LONGEST_SUBRESOURCE),
    ):
        if len(text.encode(errors="replace")) > limit:
            found += _at(key, FieldError(METADATA, TOO_LONG, "", f"may not be more than {limit} bytes"))
    position = 0
    for char in manager:
        printable = is_printable(char)
        if printable is None:
            raise UndecidedValue(UNICODE_VARIES)
        if not printable:
            detail = f"invalid character U+{ord(char):04X} (at position {position})"
            found += _at("manager", _invalid(manager, detail))
        position += len(char.encode(errors="replace"))
    return found
