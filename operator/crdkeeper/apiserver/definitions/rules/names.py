"""The rules for a CRD's group, for the names of its resource, and for the API approval."""

from enum import Enum

from crdkeeper.apiserver.definitions.rules.internalform import Decoded, Spec
from crdkeeper.apiserver.dnsnames import label_errors, subdomain_errors
from crdkeeper.apiserver.golang.strings import to_lower
from crdkeeper.apiserver.golang.urls import UrlError, parse_request
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.violation import Report

APPROVAL = "api-approved.kubernetes.io"


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
        if not names.get(key):
            report.required(rules.NAMES, path.child(key))
    check_given_names(names, path, report)


def check_given_names(names: Decoded, path: Path, report: Report) -> None:
    """The names that are set, in spec or in status."""
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key, "")
        if value and key in ("plural", "singular"):
            _label(value, path.child(key), report)
        elif value:
            errors = label_errors(to_lower(value))
            if errors:
                detail = "may have mixed case, but should otherwise match: " + ",".join(errors)
                report.invalid(rules.NAMES, path.child(key), value, detail)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        detail = "kind and listKind may not be the same"
        report.invalid(rules.NAMES, path.child("listKind"), names["listKind"], detail)
    for key in ("shortNames", "categories"):
        for i, each in enumerate(names.get(key, ())):
            _label(each, path.child(key).index(i), report)


def _label(value: str, path: Path, report: Report) -> None:
    errors = label_errors(value)
    if errors:
        report.invalid(rules.NAMES, path, value, ",".join(errors))


class _Approval(Enum):
    """The meaning of the approval annotation."""

    INVALID = 0
    APPROVED = 1
    BYPASSED = 2
    MISSING = 3


def check_api_approval(metadata: Decoded, spec: Decoded, old: Decoded | None, report: Report) -> None:
    """The annotation that groups of the Kubernetes project require; `old` is the old CRD's metadata."""
    group = spec.get("group", "")
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return
    at = root("metadata").child("annotations").key(APPROVAL)
    state = _approval(metadata)
    if old is not None and _approval(old) is state:
        return
    must = f'protected groups must have approval annotation "{APPROVAL}"'
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if state is _Approval.MISSING:
        report.required(rules.API_APPROVAL, at, f"{must}, {see}")
    elif state is _Approval.INVALID:
        detail = f'{must} with either a URL or a reason starting with "unapproved", {see}'
        report.invalid(rules.API_APPROVAL, at, metadata["annotations"][APPROVAL], detail)


def _approval(metadata: Decoded) -> _Approval:
    value = metadata.get("annotations", {}).get(APPROVAL, "")
    if not value:
        return _Approval.MISSING
    if value.startswith("unapproved"):
        return _Approval.BYPASSED
    try:
        url = parse_request(value)
    except UrlError:
        return _Approval.INVALID
    return _Approval.APPROVED if url.host and url.scheme else _Approval.INVALID
