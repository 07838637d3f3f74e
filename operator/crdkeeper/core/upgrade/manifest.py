"""Rewrites a CRD manifest of v1beta1 for v1, with the same meaning if v1 can express it.

v1beta1's implicit settings and moved fields follow the API server's own conversion between the two
(apiextensions-apiserver, pkg/apis/apiextensions/v1beta1: defaults.go and conversion.go). The server converts
what was stored before, but no longer accepts v1beta1 manifests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.props import PRESERVE
from crdkeeper.apiserver.schema.violation import Violation
from crdkeeper.core.text import count
from crdkeeper.core.upgrade import topics
from crdkeeper.core.upgrade.skeleton import make_structural
from crdkeeper.core.upgrade.topics import Topic, UpgradeNote
from crdkeeper.core.upgrade.unknownfields import keep_unknown_fields
from crdkeeper.core.upgrade.v1form import NEW_API_VERSION, OLD_API_VERSION, check_size

_SERVER_METADATA: Final = (
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "selfLink",
    "uid",
    "managedFields",
)
_PROTECTED: Final = ("k8s.io", "kubernetes.io")
_APPROVAL: Final = "api-approved.kubernetes.io"
_ORDER: Final = ("group", "names", "scope", "conversion", "versions")


class NotV1beta1(ValueError):
    """The document is not a CRD of apiextensions.k8s.io/v1beta1."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The new manifest with notes on the changes, and the errors that the API server would still report."""

    definition: dict[str, Any]
    notes: tuple[UpgradeNote, ...]
    """The notes in the order of the changes, with paths in the old manifest."""
    violations: tuple[Violation, ...]
    """The violations of the new manifest, with paths in it."""

    @property
    def decisions(self) -> list[UpgradeNote]:
        """The decisions left to a person."""
        return [each for each in self.notes if each.topic.open]


def upgrade(document: Mapping[str, Any]) -> Upgraded:
    """The v1 manifest of a v1beta1 CRD. Raises TooManyValues and, naming the field, NotV1beta1."""
    if document.get("apiVersion") != OLD_API_VERSION:
        raise NotV1beta1(f"apiVersion: {document.get('apiVersion')!r} is not {OLD_API_VERSION}")
    if not isinstance(document.get("spec"), Mapping):
        raise NotV1beta1("spec: must be an object")
    check_size(document)
    work = _Work(_copy(document))
    return work.done()


class _Work:
    def __init__(self, crd: dict[str, Any]) -> None:
        self._crd = crd
        self._spec: dict[str, Any] = crd["spec"]
        self._path = root("spec")
        self._notes: list[UpgradeNote] = []

    def _tell(self, topic: Topic, path: Path, message: str) -> None:
        self._notes.append(UpgradeNote(topic, path, message))

    def done(self) -> Upgraded:
        self._crd["apiVersion"] = NEW_API_VERSION
        self._metadata()
        versions = self._versions()
        self._schemas(versions)
        self._columns(versions)
        self._subresources(versions)
        self._conversion()
        self._unknown_fields(versions)
        if "scope" not in self._spec:
            self._spec["scope"] = "Namespaced"
            self._tell(topics.SCOPE, self._path.child("scope"), "set to Namespaced")
        rest = {key: each for key, each in self._spec.items() if key not in _ORDER}
        self._crd["spec"] = {**{key: self._spec[key] for key in _ORDER if key in self._spec}, **rest}
        violations = check_creation(self._crd).violations
        return Upgraded(self._crd, tuple(self._notes), tuple(violations))

    def _metadata(self) -> None:
        lost = ["status"] if self._crd.pop("status", None) is not None else []
        metadata = self._crd.get("metadata")
        if isinstance(metadata, dict):
            lost += [f"metadata.{key}" for key in _SERVER_METADATA if key in metadata]
            for key in _SERVER_METADATA:
                metadata.pop(key, None)
        if lost:
            self._tell(topics.SERVER_FIELDS, root("metadata"), f"removed {', '.join(lost)}")
        group = self._spec.get("group")
        protected = isinstance(group, str) and any(
            group == each or group.endswith(f".{each}") for each in _PROTECTED
        )
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if protected and not (isinstance(annotations, dict) and annotations.get(_APPROVAL)):
            self._tell(topics.API_APPROVAL, self._path.child("group"), f"{group} needs the annotation")

    def _versions(self) -> list[dict[str, Any]]:
        name = self._spec.pop("version", None)
        versions = self._spec.get("versions")
        if not isinstance(versions, list) or not versions:
            self._spec["versions"] = versions = [{"name": name, "served": True, "storage": True}]
            self._tell(topics.VERSIONS, self._path.child("version"), f"{name} moved to spec.versions")
        elif name is not None:
            self._tell(
                topics.VERSIONS, self._path.child("version"), "removed; it repeats the first of versions"
            )
        return [each for each in versions if isinstance(each, dict)]

    def _schemas(self, versions: list[dict[str, Any]]) -> None:
        shared = self._spec.pop("validation", None)
        schema = shared.get("openAPIV3Schema") if isinstance(shared, dict) else None
        shared_path = self._path.child("validation").child("openAPIV3Schema")
        if schema is not None:
            self._moved("validation", "schema")
        reported = False
        for i, version in enumerate(versions):
            own = version.get("schema")
            found = own.get("openAPIV3Schema") if isinstance(own, dict) else None
            at = self._path.child("versions").index(i).child("schema").child("openAPIV3Schema")
            if not isinstance(found, dict) and isinstance(schema, dict):
                found, at = _copy(schema), shared_path
            if not isinstance(found, dict):
                version["schema"] = {"openAPIV3Schema": {"type": "object", PRESERVE: True}}
                self._tell(topics.NO_SCHEMA, at, f"{version.get('name')} has none")
                continue
            # What all versions share is reported once.
            tell = self._tell if at is not shared_path or not reported else _silent
            reported = reported or at is shared_path
            make_structural(found, at, tell)
            version["schema"] = {"openAPIV3Schema": found}

    def _columns(self, versions: list[dict[str, Any]]) -> None:
        shared = self._spec.pop("additionalPrinterColumns", None)
        if shared:
            self._moved("additionalPrinterColumns", "additionalPrinterColumns")
        renamed: Path | None = None
        for i, version in enumerate(versions):
            at = self._path.child("versions").index(i)
            if shared and not version.get("additionalPrinterColumns"):
                version["additionalPrinterColumns"], at = _copy(shared), self._path
            columns = version.get("additionalPrinterColumns")
            for column in columns if isinstance(columns, list) else ():
                if isinstance(column, dict) and "JSONPath" in column:
                    column["jsonPath"] = column.pop("JSONPath")
                    renamed = renamed or at.child("additionalPrinterColumns")
        if renamed is not None:
            self._tell(topics.COLUMNS, renamed, "JSONPath renamed to jsonPath")

    def _subresources(self, versions: list[dict[str, Any]]) -> None:
        shared = self._spec.pop("subresources", None)
        if not shared:
            return
        self._moved("subresources", "subresources")
        for version in versions:
            version.setdefault("subresources", _copy(shared))

    def _moved(self, field: str, to: str) -> None:
        self._tell(topics.PER_VERSION, self._path.child(field), f"copied to {to} of each version")

    def _conversion(self) -> None:
        conversion = self._spec.get("conversion")
        if not isinstance(conversion, dict):
            return
        at = self._path.child("conversion")
        client = conversion.pop("webhookClientConfig", None)
        reviews = conversion.pop("conversionReviewVersions", None)
        if conversion.get("strategy") != "Webhook":
            if client or reviews:
                self._tell(topics.OBSOLETE, at, "removed the settings of a webhook that is not used")
            return
        if not reviews:
            reviews = ["v1beta1"]
            self._tell(topics.REVIEW_VERSIONS, at.child("conversionReviewVersions"), "set to [v1beta1]")
        elif isinstance(reviews, list) and "v1" not in reviews:
            self._tell(topics.REVIEW_VERSIONS, at.child("conversionReviewVersions"), f"still {reviews}")
        conversion["webhook"] = {
            **({"clientConfig": client} if client else {}),
            "conversionReviewVersions": reviews,
        }
        self._tell(topics.CONVERSION, at, "moved to spec.conversion.webhook")

    def _unknown_fields(self, versions: list[dict[str, Any]]) -> None:
        kept = self._spec.pop("preserveUnknownFields", True)
        if kept is False:
            return
        places = sum(keep_unknown_fields(version["schema"]["openAPIV3Schema"]) for version in versions)
        self._tell(
            topics.UNKNOWN_FIELDS,
            self._path.child("preserveUnknownFields"),
            f"unknown fields are still kept, by {count(places, 'mark')}",
        )


def _silent(topic: Topic, path: Path, message: str) -> None:
    """Reports nothing, where a note already exists."""


def _copy(value: Any) -> Any:
    """A copy in which nothing is shared, unlike with YAML's aliases."""
    if isinstance(value, Mapping):
        return {key: _copy(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_copy(each) for each in value]
    return value
