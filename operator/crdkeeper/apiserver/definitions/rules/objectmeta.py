"""The rules for metadata, which are those of every Kubernetes object, except for a CRD's name."""

from collections.abc import Mapping

from crdkeeper.apiserver.definitions.rules.internalform import Decoded
from crdkeeper.apiserver.dnsnames import key_errors, path_segment_errors, subdomain_errors, value_errors
from crdkeeper.apiserver.golang.strings import to_lower
from crdkeeper.apiserver.golang.text import quote
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.violation import OMITTED, Report

_ANNOTATION_BYTES = 256 << 10
_GENERATED_FROM = 58
_SUFFIX = "x" * 5
_EXCLUSIVE_FINALIZERS = ("orphan", "foregroundDeletion")
_IMMUTABLE = "field is immutable"


def check_created_metadata(metadata: Decoded, spec: Decoded, report: Report) -> None:
    """metadata of a new CRD."""
    path = root("metadata")
    wanted = f"{spec.get('names', {}).get('plural', '')}.{spec.get('group', '')}"
    beginning, name = metadata.get("generateName", ""), metadata.get("name", "")
    if beginning:
        masked = f"{beginning[:-2]}a" if len(beginning) > 1 and beginning.endswith("-") else beginning
        _check_name(beginning, subdomain_errors(masked), wanted, path.child("generateName"), report)
    if name:
        _check_name(name, subdomain_errors(name), wanted, path.child("name"), report)
    elif beginning:
        # The server adds five random characters. Which ones does not matter: the result is never the wanted
        # name.
        generated = beginning.encode()[:_GENERATED_FROM].decode(errors="replace") + _SUFFIX
        for error in (*subdomain_errors(generated), _WRONG_NAME):
            report.invalid(rules.NAME, path.child("name"), OMITTED, error)
    else:
        report.required(rules.NAME, path.child("name"), "name or generateName is required")
    _check_common(metadata, path, report)
    _check_finalizers(metadata.get("finalizers", []), path.child("finalizers"), report)


_WRONG_NAME = 'must be spec.names.plural+"."+spec.group'


def _check_name(name: str, errors: list[str], wanted: str, path: Path, report: Report) -> None:
    for error in errors:
        report.invalid(rules.NAME, path, name, error)
    if name != wanted:
        report.invalid(rules.NAME, path, name, _WRONG_NAME)


def check_updated_metadata(new: Decoded, old: Decoded, report: Report) -> None:
    """metadata of an existing CRD, except its name, uid and resourceVersion."""
    path = root("metadata")
    for key, prefix in (("generateName", True), ("name", False)):
        for error in path_segment_errors(new.get(key, ""), prefix=prefix):
            report.invalid(rules.NAME, path.child(key), new[key], error)
    finalizers, at = new.get("finalizers", []), path.child("finalizers")
    _check_finalizers(finalizers, at, report)
    added = sorted(set(finalizers) - set(old.get("finalizers", [])))
    if "deletionTimestamp" in old:
        if added:
            shown = ", ".join(map(quote, added))
            detail = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{shown}}}"
            )
            report.forbidden(rules.METADATA, at, detail)
    elif "deletionTimestamp" in new:
        report.invalid(rules.METADATA, path.child("deletionTimestamp"), OMITTED, _IMMUTABLE)
    seconds = new.get("deletionGracePeriodSeconds")
    if seconds is not None and seconds != old.get("deletionGracePeriodSeconds"):
        at = path.child("deletionGracePeriodSeconds")
        report.invalid_as_json(rules.METADATA, at, seconds, _IMMUTABLE)
    _check_common(new, path, report)


def _check_common(metadata: Decoded, path: Path, report: Report) -> None:
    _check_labels(metadata.get("labels", {}), path.child("labels"), report)
    _check_annotations(metadata.get("annotations", {}), path.child("annotations"), report)
    _check_owners(metadata.get("ownerReferences", []), path.child("ownerReferences"), report)


def _check_labels(labels: Mapping[str, str], path: Path, report: Report) -> None:
    for key, value in labels.items():
        for error in key_errors(key):
            report.invalid(rules.METADATA, path, key, error)
        for error in value_errors(value):
            report.invalid(rules.METADATA, path, value, error)


def _check_annotations(annotations: Mapping[str, str], path: Path, report: Report) -> None:
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        for error in key_errors(to_lower(key)):
            report.invalid(rules.METADATA, path, key, error)
    if size > _ANNOTATION_BYTES:
        report.too_long(rules.METADATA, path, _ANNOTATION_BYTES)


def _check_finalizers(finalizers: list[str], path: Path, report: Report) -> None:
    for each in finalizers:
        for error in key_errors(each):
            report.invalid(rules.METADATA, path, each, error)
    if set(_EXCLUSIVE_FINALIZERS) <= set(finalizers):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        report.invalid(rules.METADATA, path, finalizers, detail)


def _check_owners(owners: list[Decoded], path: Path, report: Report) -> None:
    # Their values are texts and booleans, so that equal ones are found without a look at all others.
    unique = list({tuple(sorted(each.items())): each for each in owners}.values())
    controller = ""
    for i, each in enumerate(unique):
        at = path.index(i)
        api_version = each.get("apiVersion", "")
        if not api_version:
            report.required(rules.METADATA, at.child("apiVersion"), "must not be empty")
        elif api_version.count("/") > 1 or api_version.endswith("/"):
            detail = "must be <group>/<version> or <version>"
            report.invalid(rules.METADATA, at.child("apiVersion"), api_version, detail)
        for key in ("kind", "name", "uid"):
            if not each.get(key):
                report.required(rules.METADATA, at.child(key), "must not be empty")
        if api_version in ("v1", "/v1") and each.get("kind") == "Event":
            detail = "/v1, Kind=Event is disallowed from being an owner"
            report.invalid(rules.METADATA, at, OMITTED, detail)
        if each.get("controller"):
            mine = f"{each.get('kind', '')}/{each.get('name', '')}"
            if controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {mine}"
                )
                report.invalid(rules.METADATA, path, OMITTED, detail)
            else:
                controller = mine
