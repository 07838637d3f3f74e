"""What happens to a CRD that is sent to the API server: errors, warnings, and the resulting object.

As in PrepareForCreate and PrepareForUpdate of CRDs in k8s.io/apiextensions-apiserver, and its defaults. The
server's controllers set the conditions and the accepted names later.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.apiserver.definitions.fields import DEFINITION
from crdkeeper.apiserver.definitions.rules.internalform import Decoded, internal, same_validation
from crdkeeper.apiserver.definitions.update import check_update
from crdkeeper.apiserver.schema.decoding import ABSENT
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.violation import Report
from tests.cluster.definitions.lint.predictedwarnings import (
    creation_warnings,
    general_warnings,
    update_warnings,
)

_HTTPS = 443
_OPTIONAL_LISTS = ("additionalPrinterColumns", "selectableFields")


@dataclass(frozen=True, slots=True)
class AcceptedDefinition:
    """How an accepted CRD differs from the request."""

    generation: int
    names: Mapping[str, Any]
    """spec.names with its defaults."""
    conversion: Mapping[str, Any]
    """spec.conversion with its defaults."""
    status: Mapping[str, Any]
    """The old status, whatever was sent; with the storage version added to its storedVersions."""


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The response to a CRD."""

    report: Report
    warnings: tuple[str, ...]
    result: AcceptedDefinition | None
    """None if it is rejected."""


def creation(document: Mapping[str, Any]) -> RequestOutcome:
    """The response to a new CRD. See `check_creation`."""
    report = check_creation(document)
    crd = _decoded(document, report)
    if crd is None:
        return RequestOutcome(report, (), None)
    warnings = general_warnings(crd, report)
    if report.violations:
        return RequestOutcome(report, warnings, None)
    status = {"storedVersions": [_storage_version(crd)]}
    result = AcceptedDefinition(1, _names(crd), _shown_conversion(crd), status)
    return RequestOutcome(report, (*warnings, *creation_warnings(crd)), result)


def update(new: Mapping[str, Any], old: Mapping[str, Any], *, complete: bool = False) -> RequestOutcome:
    """The response to a CRD that replaces `old`, the response to a GET. See `check_update`."""
    report = check_update(new, old, complete=complete)
    crd, stored = _decoded(new, report), _decoded(old, Report())
    if crd is None or stored is None:
        return RequestOutcome(report, (), None)
    warnings = general_warnings(crd, report)
    if report.violations:
        return RequestOutcome(report, warnings, None)
    generation = stored.get("metadata", {}).get("generation", 0)
    if not _same_spec(crd, stored):
        generation += 1
    status = dict(old.get("status") or {})
    versions = list(status.get("storedVersions") or [_storage_version(stored)])
    storage = _storage_version(crd)
    status["storedVersions"] = versions if storage in versions else [*versions, storage]
    result = AcceptedDefinition(generation, _names(crd), _shown_conversion(crd), status)
    return RequestOutcome(report, (*warnings, *update_warnings(crd, stored)), result)


def _decoded(document: Mapping[str, Any], report: Report) -> Decoded | None:
    """None if the report already says that it cannot be decoded, or is left to the server."""
    try:
        crd: Any = DEFINITION.decode(document, Path("", ()), Report())
    except RecursionError:
        return None
    return None if crd is ABSENT else crd


def _storage_version(crd: Decoded) -> str:
    versions = crd.get("spec", {}).get("versions", ())
    return next((str(each.get("name", "")) for each in versions if each.get("storage")), "")


def _names(crd: Decoded) -> dict[str, Any]:
    return {key: value for key, value in internal(crd).names.items() if value}


def _conversion(crd: Decoded) -> dict[str, Any]:
    conversion: Decoded = crd.get("spec", {}).get("conversion", {"strategy": "None"})
    found = dict(conversion)
    webhook = dict(found.pop("webhook", {}))
    service = webhook.get("clientConfig", {}).get("service")
    if service is not None:
        service = {"port": _HTTPS, **service}
        webhook["clientConfig"] = {**webhook["clientConfig"], "service": service}
    if any(webhook.values()):
        found["webhook"] = {"conversionReviewVersions": [], **webhook}
    return found


def _shown_conversion(crd: Decoded) -> dict[str, Any]:
    found = _conversion(crd)
    client = found.get("webhook", {}).get("clientConfig", {})
    if "caBundle" in client:
        client = {**client, "caBundle": b64encode(client["caBundle"]).decode()}
        found["webhook"] = {**found["webhook"], "clientConfig": client}
    return found


def _same_spec(new: Decoded, old: Decoded) -> bool:
    """Whether the server considers the two specs equal: then the generation remains."""
    one, other = new.get("spec", {}), old.get("spec", {})
    for key in ("group", "scope", "preserveUnknownFields"):
        if one.get(key) != other.get(key):
            return False
    if _names(new) != _names(old) or _conversion(new) != _conversion(old):
        return False
    versions, others = one.get("versions", ()), other.get("versions", ())
    return len(versions) == len(others) and all(map(_same_version, versions, others))


def _same_version(new: Decoded, old: Decoded) -> bool:
    if not same_validation(new.get("schema"), old.get("schema")):
        return False
    return all(
        new.get(key) == old.get(key) or (key in _OPTIONAL_LISTS and not new.get(key) and not old.get(key))
        for key in (new.keys() | old.keys()) - {"schema"}
    )
