"""The API server's answer to a CRD that replaces a stored one: rules, order and messages.

The rules of a creation apply to an update, except those that the old CRD already violates (see
`requirements`), plus some of its own: what identifies the resource is immutable, and a version remains as
long as objects may be stored in it. As in ValidateCustomResourceDefinitionUpdate of
k8s.io/apiextensions-apiserver, and BeforeUpdate of k8s.io/apiserver/pkg/registry/rest.
"""

from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.definitions.create import MOST_STEPS, decode, leave_too_deep
from crdkeeper.apiserver.definitions.fields import DEFINITION
from crdkeeper.apiserver.definitions.rules.internalform import Decoded, Spec, internal
from crdkeeper.apiserver.definitions.rules.names import check_api_approval, check_given_names
from crdkeeper.apiserver.definitions.rules.objectmeta import check_updated_metadata
from crdkeeper.apiserver.definitions.rules.requirements import update_requirements
from crdkeeper.apiserver.definitions.rules.spec import check_spec
from crdkeeper.apiserver.definitions.rules.versions import (
    check_preserve_unknown_fields,
    check_stored_versions,
    storing,
)
from crdkeeper.apiserver.golang.text import quote
from crdkeeper.apiserver.objects.effort import limited
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.violation import Report, Violation

_IMMUTABLE = "field is immutable"


def check_update(new: Mapping[str, Any], old: Mapping[str, Any], *, complete: bool = False) -> Report:
    """All errors and warnings for `new` as a replacement of `old`, the CRD in the API server.

    `new` is a manifest, for which the client takes missing metadata from the old object, as `kubectl apply`
    and `kubectl replace` do. With `complete` it is the whole object as sent by a PUT: then it needs a
    resourceVersion. `old` is the response to a GET; a manifest without status means a CRD that is not
    established yet.
    """
    report = Report()
    try:
        crd, stored = decode(new, report), DEFINITION.decode(old, Path("", ()), Report())
        if crd is not None:
            _check(crd, stored, report, complete=complete)
    except RecursionError:
        leave_too_deep(report)
    return report


def _check(new: Decoded, old: Decoded, report: Report, *, complete: bool) -> None:
    metadata, stored = new.get("metadata", {}), old.get("metadata", {})
    if not complete:
        metadata = {**stored, **metadata}
    if not _is_same(metadata, stored, report):
        return
    spec, old_spec, status = internal(new), internal(old), old.get("status", {})
    established = _is_established(status)
    check_updated_metadata(metadata, stored, report)
    requirements = update_requirements(spec, old_spec, established=established)
    with limited(MOST_STEPS):
        check_spec(spec, requirements, report)
    _check_immutable(spec, old_spec, report, established=established)
    check_given_names(status.get("acceptedNames", {}), root("status").child("acceptedNames"), report)
    check_stored_versions(spec, status.get("storedVersions") or storing(old_spec), report)
    check_api_approval(metadata, spec.spec, stored, report)
    if requirements.not_preserving:
        check_preserve_unknown_fields(spec, report)


def _is_same(metadata: Decoded, old: Decoded, report: Report) -> bool:
    """Whether both are the same object in the same state; otherwise nothing more is checked."""
    path = root("metadata")
    name, uid, version = (metadata.get(key, "") for key in ("name", "uid", "resourceVersion"))
    at_version = path.child("resourceVersion")
    if name != old.get("name", ""):
        report.invalid(rules.NAME, path.child("name"), name, _IMMUTABLE)
    elif uid and uid != old.get("uid", ""):
        detail = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.get('uid', '')}"
        report.conflict(rules.RESOURCE_VERSION, path.child("uid"), detail)
    elif version in ("", "0") and "resourceVersion" in old:
        report.invalid_as_json(rules.RESOURCE_VERSION, at_version, 0, "must be specified for an update")
    elif version and not (version.isascii() and version.isdigit()):
        detail = f"strconv.ParseUint: parsing {quote(version)}: invalid syntax"
        report.violations.append(
            Violation(rules.RESOURCE_VERSION, at_version, "Internal error", None, detail)
        )
    elif version != old.get("resourceVersion", ""):
        detail = "the object has been modified; please apply your changes to the latest version and try again"
        report.conflict(rules.RESOURCE_VERSION, at_version, detail)
    else:
        return True
    return False


def _is_established(status: Decoded) -> bool:
    return any(
        each.get("type") == "Established" and each.get("status") == "True"
        for each in status.get("conditions", ())
    )


def _check_immutable(new: Spec, old: Spec, report: Report, *, established: bool) -> None:
    path = new.path
    names, old_names = new.names, old.names
    if established:
        scope = new.spec.get("scope", "")
        if scope != old.spec.get("scope", ""):
            report.invalid_as_json(rules.IMMUTABLE, path.child("scope"), scope, _IMMUTABLE)
        if names.get("kind", "") != old_names.get("kind", ""):
            at = path.child("names").child("kind")
            report.invalid(rules.IMMUTABLE, at, names.get("kind", ""), _IMMUTABLE)
    group = new.spec.get("group", "")
    if group != old.spec.get("group", ""):
        report.invalid(rules.IMMUTABLE, path.child("group"), group, _IMMUTABLE)
    if names.get("plural", "") != old_names.get("plural", ""):
        at = path.child("names").child("plural")
        report.invalid(rules.IMMUTABLE, at, names.get("plural", ""), _IMMUTABLE)
