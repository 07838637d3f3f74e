"""The rules of a CRD's metadata, and of the names that it gives to its resource."""

import re
from collections.abc import Mapping
from typing import Any

from crdkeeper.core.definition.internalform import Decoded, Spec
from crdkeeper.core.dnsnames import key_errors, label_errors, subdomain_errors, value_errors
from crdkeeper.core.schema import rules
from crdkeeper.core.schema.fieldpath import Path, root
from crdkeeper.core.schema.violation import Report

APPROVAL = "api-approved.kubernetes.io"
_ANNOTATION_BYTES = 256 << 10


def check_metadata(metadata: Decoded, spec: Decoded, report: Report) -> None:
    """metadata: the name, labels and annotations."""
    path = root("metadata")
    name = metadata.get("name", "")
    if metadata.get("generateName"):
        report.leave(rules.METADATA, path.child("generateName"), "the generated name is not known")
    elif not name:
        report.required(rules.NAME, path.child("name"), "name or generateName is required")
    else:
        wanted = f"{spec.get('names', {}).get('plural', '')}.{spec.get('group', '')}"
        for error in subdomain_errors(name):
            report.invalid(rules.NAME, path.child("name"), name, error)
        if name != wanted:
            report.invalid(rules.NAME, path.child("name"), name, 'must be spec.names.plural+"."+spec.group')
    _check_labels(metadata.get("labels", {}), path.child("labels"), report)
    _check_annotations(metadata.get("annotations", {}), path.child("annotations"), report)
    for key in ("finalizers", "ownerReferences"):
        if metadata.get(key):
            report.leave(rules.METADATA, path.child(key), f"{key} are not checked")


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
        for error in key_errors(key.lower()):
            report.invalid(rules.METADATA, path, key, error)
    if size > _ANNOTATION_BYTES:
        report.too_long(rules.METADATA, path, _ANNOTATION_BYTES)


def check_group(spec: Decoded, path: Path, report: Report) -> None:
    """spec.group."""
    group, at = spec.get("group", ""), path.child("group")
    errors = subdomain_errors(group)
    if not group:
        report.required(rules.GROUP, at)
    elif errors:
        report.invalid(rules.GROUP, at, group, ",".join(errors))
    elif "." not in group:
        report.invalid(rules.GROUP, at, group, "should be a domain with at least one dot")


def check_names(spec: Spec, report: Report) -> None:
    """spec.names with the defaults of singular and listKind."""
    names, path = spec.names, spec.path.child("names")
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key, "")
        if not value:
            report.required(rules.NAMES, path.child(key))
        elif key in ("plural", "singular"):
            _label(value, path.child(key), report)
        else:
            errors = label_errors(value.lower())
            if errors:
                detail = "may have mixed case, but should otherwise match: " + ",".join(errors)
                report.invalid(rules.NAMES, path.child(key), value, detail)
    if names.get("kind") and names["kind"] == names["listKind"]:
        detail = "kind and listKind may not be the same"
        report.invalid(rules.NAMES, path.child("listKind"), names["listKind"], detail)
    for key in ("shortNames", "categories"):
        for i, each in enumerate(names.get(key, ())):
            _label(each, path.child(key).index(i), report)


def _label(value: str, path: Path, report: Report) -> None:
    errors = label_errors(value)
    if errors:
        report.invalid(rules.NAMES, path, value, ",".join(errors))


_PLAIN_URL = re.compile(r"[a-z]+://[A-Za-z0-9.-]+(/[A-Za-z0-9._~/#-]*)?", re.ASCII)
_NO_URL = re.compile(r"[A-Za-z][A-Za-z0-9 _-]*", re.ASCII)


def check_api_approval(metadata: Mapping[str, Any], spec: Decoded, report: Report) -> None:
    """The annotation that groups of the Kubernetes project need."""
    group = spec.get("group", "")
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return
    at = root("metadata").child("annotations").key(APPROVAL)
    value = metadata.get("annotations", {}).get(APPROVAL, "")
    must = f'protected groups must have approval annotation "{APPROVAL}"'
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not value:
        report.required(rules.API_APPROVAL, at, f"{must}, {see}")
    elif value.startswith("unapproved") or _PLAIN_URL.fullmatch(value):
        return
    elif _NO_URL.fullmatch(value) or value.startswith("/"):
        detail = f'{must} with either a URL or a reason starting with "unapproved", {see}'
        report.invalid(rules.API_APPROVAL, at, value, detail)
    else:
        report.leave(rules.API_APPROVAL, at, "whether the annotation is a URL is not decided here")
