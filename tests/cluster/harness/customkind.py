"""A custom resource as a team would define it, in versions whose storage can be switched."""

from dataclasses import dataclass, field, replace
from typing import Any

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["engine"],
    "properties": {
        "engine": {"type": "string", "enum": ["postgres", "mysql"]},
        "replicas": {"type": "integer", "minimum": 0, "default": 1},
        "storage": {
            "type": "object",
            "properties": {"size": {"type": "string"}, "class": {"type": "string"}},
        },
        "users": {
            "type": "array",
            "maxItems": 32,
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "maxLength": 63},
                    "roles": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                },
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "note": {"type": "string", "maxLength": 4096},
    },
}
STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {"endpoint": {"type": "string"}, "readyReplicas": {"type": "integer"}},
}


@dataclass(frozen=True, slots=True)
class Version:
    """One entry of spec.versions; `spec` is the schema of the objects' spec."""

    name: str
    served: bool = True
    storage: bool = False
    spec: dict[str, Any] = field(default_factory=lambda: SPEC)

    def to_object(self) -> dict[str, Any]:
        """The entry in a CRD."""
        properties = {"spec": self.spec, "status": STATUS}
        return {
            "name": self.name,
            "served": self.served,
            "storage": self.storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            "subresources": {"status": {}},
            "additionalPrinterColumns": [
                {"name": "Engine", "type": "string", "jsonPath": ".spec.engine"},
                {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
            ],
        }


@dataclass(frozen=True, slots=True)
class CustomKind:
    """A CRD of databases: by default v1 and v2 are both served with the same schema, and v1 is stored."""

    group: str
    plural: str = "databases"
    kind: str = "Database"
    namespaced: bool = True
    versions: tuple[Version, ...] = (Version("v1", storage=True), Version("v2"))
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The CRD's."""
        return f"{self.plural}.{self.group}"

    @property
    def storage_version(self) -> str:
        return next(each.name for each in self.versions if each.storage)

    @property
    def served_version(self) -> str:
        """A version to read and write at: the storage version if it is served."""
        served = [each.name for each in self.versions if each.served]
        return self.storage_version if self.storage_version in served else served[0]

    def storing(self, version: str) -> "CustomKind":
        """The same with another storage version."""
        return replace(
            self, versions=tuple(replace(each, storage=each.name == version) for each in self.versions)
        )

    def changed(self, version: str, **changes: Any) -> "CustomKind":
        """The same with changes to one version, such as `served=False` or another `spec`."""
        return replace(
            self,
            versions=tuple(
                replace(each, **changes) if each.name == version else each for each in self.versions
            ),
        )

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}"

    def to_object(self) -> dict[str, Any]:
        """The CRD as in a user's manifest."""
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name, **({"labels": self.labels} if self.labels else {})},
            "spec": {
                "group": self.group,
                "names": {
                    "plural": self.plural,
                    "singular": self.kind.lower(),
                    "kind": self.kind,
                    "listKind": f"{self.kind}List",
                },
                "scope": "Namespaced" if self.namespaced else "Cluster",
                "versions": [each.to_object() for each in self.versions],
            },
        }

    def path(self, name: str = "", *, version: str | None = None, namespace: str = "default") -> str:
        """The URL path of the collection, or of one object."""
        space = f"/namespaces/{namespace}" if self.namespaced else ""
        base = f"/apis/{self.group}/{version or self.served_version}{space}/{self.plural}"
        return f"{base}/{name}" if name else base

    def etcd_key(self, name: str, *, namespace: str = "default") -> str:
        """The key of an object in etcd."""
        space = f"{namespace}/" if self.namespaced else ""
        return f"/registry/{self.group}/{self.plural}/{space}{name}"

    @property
    def definition_key(self) -> str:
        """The key of the CRD in etcd."""
        return definition_key(self.name)

    def instance(
        self, name: str, *, version: str | None = None, namespace: str = "default", **spec: Any
    ) -> dict[str, Any]:
        """One object; keywords go to its spec."""
        content = {
            "engine": "postgres",
            "storage": {"size": "10Gi", "class": "fast"},
            "users": [{"name": "app", "roles": ["read", "write"]}, {"name": "backup", "roles": ["read"]}],
        }
        metadata = {"name": name, "labels": {"team": "storage"}}
        if self.namespaced:
            metadata = {**metadata, "namespace": namespace}
        return {
            "apiVersion": self.api_version(version or self.served_version),
            "kind": self.kind,
            "metadata": metadata,
            "spec": {**content, **spec},
        }


def definition_key(name: str) -> str:
    """The key in etcd of the CRD with that name."""
    return f"/registry/apiextensions.k8s.io/customresourcedefinitions/{name}"
