"""The v1 form of a v1beta1 CRD, by the API server's own conversion between the two, without repairs.

With it, commands that read v1 can read old manifests: what all versions share is copied to each version,
defaults are filled in (apiextensions-apiserver, pkg/apis/apiextensions: v1beta1/defaults.go,
v1/conversion.go). The form shares its values with the old document; `origin` returns the old path of a field.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

OLD_API_VERSION: Final = "apiextensions.k8s.io/v1beta1"
NEW_API_VERSION: Final = "apiextensions.k8s.io/v1"
REMOVED: Final = (
    f"{OLD_API_VERSION} was removed in Kubernetes 1.22. The CRD is read as API servers before that converted "
    "it to v1; `crdkeeper upgrade-manifest` rewrites the file"
)
MAX_VALUES: Final = 300_000
"""Values that all versions share, times the versions: a small manifest must not become a huge CRD."""

Steps = tuple[str | int, ...]

_SHARED: Final = {
    "validation": "schema",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Fields of the spec that every version gets, with their name there. They replace a version's own."""
_WEBHOOK: Final = {
    "webhookClientConfig": "clientConfig",
    "conversionReviewVersions": "conversionReviewVersions",
}


class TooManyValues(ValueError):
    """At v1, where each version has its own schema and columns, the CRD would be too large to be read."""

    def __init__(self) -> None:
        super().__init__(f"spec: more than {MAX_VALUES:,} values once every version has its own schema")


@dataclass(frozen=True, slots=True)
class V1Form:
    """A CRD at v1, and the mapping to the fields of the old document."""

    value: dict[str, Any]
    written: dict[str, Any]
    """The old document."""
    _shared: Mapping[str, str]
    """Fields of versions that come from the spec, with their name there."""
    _from_version: bool
    """Whether the only version comes from `spec.version`."""
    _old_columns: bool
    """Whether columns have a JSONPath."""

    def origin(self, steps: Steps) -> Steps:
        """The steps of a field of the form in the old document; unchanged if it has no such field."""
        match steps:
            case ("spec", "versions", int(), str(name), *rest) if name in self._shared:
                return ("spec", self._shared[name], *self._columns(name, rest))
            case ("spec", "versions", int(), *rest) if self._from_version:
                return ("spec", "version") if rest in ([], ["name"]) else ("spec", *rest)
            case ("spec", "versions", int(at), str(name), *rest):
                return ("spec", "versions", at, name, *self._columns(name, rest))
            case ("spec", "conversion", "webhook", str(name), *rest):
                old = next((key for key, new in _WEBHOOK.items() if new == name), name)
                return ("spec", "conversion", old, *rest)
            case ("spec", "conversion", "webhook"):
                return ("spec", "conversion")
        return steps

    def _columns(self, name: str, rest: list[str | int]) -> list[str | int]:
        if name == "additionalPrinterColumns" and rest[1:] == ["jsonPath"] and self._old_columns:
            return [rest[0], "JSONPath"]
        return rest


def v1_form(document: dict[str, Any]) -> V1Form:
    """The v1 form of a document of v1beta1. Values of a wrong type remain, for others to reject.

    Raises TooManyValues.
    """
    check_size(document)
    made = {**document, "apiVersion": NEW_API_VERSION}
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        return V1Form(made, document, {}, False, False)
    new = {key: each for key, each in spec.items() if key != "version" and key not in _SHARED}
    from_version = not spec.get("versions") and bool(spec.get("version"))
    versions = spec.get("versions")
    if from_version:
        versions = [{"name": spec["version"], "served": True, "storage": True}]
    shared = {each: key for key, each in _SHARED.items() if spec.get(key) is not None}
    old_columns = False
    if isinstance(versions, list):
        given = {each: spec[key] for each, key in shared.items()}
        versions = [{**each, **given} if isinstance(each, Mapping) else each for each in versions]
        for each in versions:
            columns = each.get("additionalPrinterColumns") if isinstance(each, dict) else None
            if isinstance(columns, list):
                each["additionalPrinterColumns"] = list(map(_column, columns))
                old_columns = old_columns or each["additionalPrinterColumns"] != columns
    if versions is not None:
        new["versions"] = versions
    if spec.get("scope") in (None, ""):
        new["scope"] = "Namespaced"
    if spec.get("preserveUnknownFields") is None:
        new["preserveUnknownFields"] = True
    if isinstance(spec.get("conversion"), Mapping):
        new["conversion"] = _conversion(spec["conversion"])
    made["spec"] = new
    return V1Form(made, document, shared, from_version, old_columns)


def _column(column: Any) -> Any:
    if not isinstance(column, Mapping) or "JSONPath" not in column:
        return column
    return {("jsonPath" if key == "JSONPath" else key): each for key, each in column.items()}


def _conversion(old: Mapping[str, Any]) -> dict[str, Any]:
    new = {key: each for key, each in old.items() if key not in _WEBHOOK}
    webhook = {_WEBHOOK[key]: each for key, each in old.items() if key in _WEBHOOK and each is not None}
    if old.get("strategy") == "Webhook":
        webhook["conversionReviewVersions"] = webhook.get("conversionReviewVersions") or ["v1beta1"]
    if webhook:
        new["webhook"] = webhook
    return new


def check_size(document: Mapping[str, Any]) -> None:
    spec = document.get("spec")
    versions = spec.get("versions") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(versions, list) or len(versions) < 2:
        return
    left = MAX_VALUES // len(versions)
    waiting = [spec[key] for key in _SHARED if key in spec]
    while waiting:
        each = waiting.pop()
        left -= 1
        if left < 0:
            raise TooManyValues
        if isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
