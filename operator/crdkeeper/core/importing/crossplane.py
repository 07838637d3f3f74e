"""Rewrites Crossplane's CompositeResourceDefinition, of v1 or v2, as one of crdkeeper.

Facts about Crossplane come from its API (apis/apiextensions/v1 and v2) and from what it makes of a definition
(internal/xcrd). What has no counterpart is reported.
"""

from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinitionSpec, CompositeVersion
from crdkeeper.api.meta import API_VERSION
from crdkeeper.apiserver.objects.objectnode import copied
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.core.importing.note import Imported, ImportNote, NotImportable
from crdkeeper.core.importing.parts import is_at

GROUP: Final = "apiextensions.crossplane.io"
_VERSIONS: Final = (f"{GROUP}/v1", f"{GROUP}/v2")
_LEGACY: Final = "LegacyCluster"
_COUNTERPARTS: Final = (
    "compositionRef",
    "compositionSelector",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionUpdatePolicy",
)
"""Fields that composites of both have, in spec.crossplane, or in spec at LegacyCluster."""
_LOST: Final = (
    *(".spec.crossplane", ".status.crossplane", ".status.connectionDetails"),
    *(f".spec.{each}" for each in ("claimRef", "resourceRefs", "writeConnectionSecretToRef")),
)
_DROPPED: Final = {
    "claimNames": (
        "crdkeeper has no claims",
        "Let users create composites: set scope to Namespaced, in another group, and move the objects.",
    ),
    "connectionSecretKeys": (
        "crdkeeper makes no connection secrets",
        "Compose a Secret.",
    ),
    "conversion": (
        "crdkeeper leaves spec.conversion of the CRD to whoever converts",
        "Write a VersionConversion, or set the webhook on the CRD.",
    ),
    "defaultCompositeDeletePolicy": ("it is about claims", ""),
}
_OF_SPEC: Final = frozenset(str(each.alias) for each in CompositeResourceDefinitionSpec.model_fields.values())
_OF_VERSION: Final = frozenset(str(each.alias) for each in CompositeVersion.model_fields.values())
_ORDER: Final = ("group", "scope", "names", "versions")
_KEPT_AT_ROOT: Final = frozenset(
    ("type", "description", "properties", "required", "x-kubernetes-validations")
)
_KEPT_IN_PART: Final = _KEPT_AT_ROOT | {"oneOf", "x-kubernetes-preserve-unknown-fields"}
_SHOWN_NAMES: Final = ("metadata", "spec", "status", "apiVersion", "kind")


def is_of_crossplane(value: object) -> bool:
    """Whether the object claims to be a CompositeResourceDefinition of Crossplane."""
    return (
        isinstance(value, Mapping)
        and value.get("kind") == "CompositeResourceDefinition"
        and value.get("apiVersion") in _VERSIONS
    )


def imported(document: Mapping[str, Any]) -> Imported:
    """The definition rewritten. Raises NotImportable, naming the field."""
    if not is_of_crossplane(document):
        raise NotImportable(f"apiVersion: {document.get('apiVersion')!r} is none of {', '.join(_VERSIONS)}")
    if not isinstance(document.get("spec"), dict):
        raise NotImportable("spec: must be an object")
    return _Import(document).done()


class _Import:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._spec: dict[str, Any] = copied(document["spec"])
        self._notes: list[ImportNote] = []

    def _tell(self, path: Path, message: str, remedy: str = "") -> None:
        self._notes.append(ImportNote(path, message, remedy))

    def done(self) -> Imported:
        metadata = self._metadata()
        self._scope()
        self._without_counterpart()
        self._enforced()
        versions = self._spec.get("versions")
        for i, version in enumerate(versions if isinstance(versions, list) else ()):
            if isinstance(version, dict):
                self._version(version, root("spec").child("versions").index(i))
        definition = {
            "apiVersion": API_VERSION,
            "kind": "CompositeResourceDefinition",
            "metadata": metadata,
            "spec": {key: self._spec[key] for key in sorted(self._spec, key=_place)},
        }
        return Imported(definition, tuple(self._notes))

    def _metadata(self) -> dict[str, Any]:
        given = self._document.get("metadata")
        metadata: dict[str, Any] = copied(given) if isinstance(given, dict) else {}
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict):
            annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
        if metadata.get("labels"):
            self._tell(root("metadata").child("labels"), "crdkeeper does not copy these labels to the CRD")
        return {key: metadata[key] for key in ("name", "labels", "annotations") if metadata.get(key)}

    def _scope(self) -> None:
        at = root("spec").child("scope")
        is_v1 = self._document["apiVersion"] == _VERSIONS[0]
        scope = self._spec.setdefault("scope", _LEGACY if is_v1 else "Namespaced")
        if scope == _LEGACY:
            self._spec["scope"] = "Cluster"
            self._tell(
                at,
                f"{_LEGACY} becomes Cluster; what Crossplane has in spec of a composite is in spec.crdkeeper",
                "Move spec.compositionRef and the like of each composite to spec.crdkeeper.",
            )

    def _without_counterpart(self) -> None:
        for name in [each for each in self._spec if each not in _OF_SPEC]:
            value = self._spec.pop(name)
            unset = value in (None, [], {}) or (name == "conversion" and value == {"strategy": "None"})
            if not unset:
                message, remedy = _DROPPED.get(
                    name, ("there is no such field", "Decide what to do without it.")
                )
                self._tell(root("spec").child(name), f"dropped: {message}", remedy)

    def _enforced(self) -> None:
        enforced, default = (self._spec.get(f"{each}CompositionRef") for each in ("enforced", "default"))
        if enforced is not None and default is not None and enforced != default:
            del self._spec["defaultCompositionRef"]
            self._tell(
                root("spec").child("defaultCompositionRef"),
                "dropped: it has no effect beside enforcedCompositionRef",
            )

    def _version(self, version: dict[str, Any], path: Path) -> None:
        for name in [each for each in version if each not in _OF_VERSION]:
            del version[name]
            self._tell(path.child(name), "dropped: there is no such field", "Decide what to do without it.")
        holder = version.get("schema")
        schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
        if isinstance(schema, dict):
            self._schema(schema, path.child("schema").child("openAPIV3Schema"))
        columns = version.get("additionalPrinterColumns")
        for i, column in enumerate(columns if isinstance(columns, list) else ()):
            if isinstance(column, dict):
                at = path.child("additionalPrinterColumns").index(i).child("jsonPath")
                self._column(column, schema if isinstance(schema, dict) else {}, at)

    def _schema(self, schema: dict[str, Any], path: Path) -> None:
        schema.setdefault("type", "object")
        self._ignored(schema, path, _KEPT_AT_ROOT)
        properties = schema.get("properties")
        for name, part in properties.items() if isinstance(properties, dict) else ():
            at = path.child("properties").key(name)
            if name not in _SHOWN_NAMES:
                self._tell(at, "Crossplane ignores the field; crdkeeper keeps it", _REHEARSE)
            if name in ("spec", "status") and isinstance(part, dict):
                part.setdefault("type", "object")
                self._ignored(part, at, _KEPT_IN_PART)

    def _ignored(self, schema: Mapping[str, Any], path: Path, kept: frozenset[str]) -> None:
        for keyword in schema:
            if keyword not in kept:
                self._tell(
                    path.child(keyword), f"Crossplane ignores {keyword}; crdkeeper keeps it", _REHEARSE
                )

    def _column(self, column: dict[str, Any], schema: Mapping[str, Any], at: Path) -> None:
        path = column.get("jsonPath")
        if not isinstance(path, str):
            return
        for name in _COUNTERPARTS:
            for prefix in (
                f".spec.crossplane.{name}",
                *(() if _declares(schema, name) else (f".spec.{name}",)),
            ):
                if is_at(path, prefix):
                    column["jsonPath"] = f".spec.crdkeeper.{name}{path.removeprefix(prefix)}"
                    self._tell(at, f"{path} becomes {column['jsonPath']}")
                    return
        for prefix in _LOST:
            if is_at(path, prefix) and not _declares(schema, prefix.rpartition(".")[2]):
                self._tell(at, f"composites of crdkeeper have no {prefix}", "Remove the column.")


def _place(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


_REHEARSE: Final = "Try existing composites: crdkeeper rehearse --objects. Or remove it."


def _declares(schema: Mapping[str, Any], name: str) -> bool:
    """Whether spec or status has a field of that name in the user's own schema."""
    properties = schema.get("properties")
    parts = [properties.get(each) for each in ("spec", "status")] if isinstance(properties, dict) else []
    return any(isinstance(each, dict) and name in (each.get("properties") or {}) for each in parts)
