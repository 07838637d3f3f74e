"""A CRD compiled for rehearsals: how its versions handle stored objects.

On a read from etcd an object is pruned and defaulted by the schema of the version it is stored in, converted,
and then pruned, but not defaulted, by the schema of the requested version (crdConversionRESTOptionsGetter in
k8s.io/apiextensions-apiserver, the versioning codec in k8s.io/apimachinery). On a write, the schema of the
storage version prunes it on its way there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition, schemas_of
from crdkeeper.apiserver.objects.jsonvalue import stored
from crdkeeper.apiserver.objects.objectschema import Admitted, CannotCompile, ObjectSchema
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.conversion.target import describe

NONE, WEBHOOK = "None", "Webhook"


class NotRehearsed(Exception):
    """Something cannot be predicted; the text says what."""


@dataclass(frozen=True, slots=True)
class CompiledVersion:
    """One version of a CRD."""

    name: str
    served: bool
    storage: bool
    schema: ObjectSchema | None
    """None if the schema cannot be compiled here; `problem` says why."""
    problem: str
    scale: Mapping[str, Any] | None
    """The scale subresource, if there is one."""
    has_status: bool
    """Whether status is a subresource."""
    declared: Schema
    """The schema that was compiled."""
    prunes: bool
    """Whether fields that it does not declare are dropped: not with preserveUnknownFields from v1beta1."""


@dataclass(frozen=True, slots=True)
class CompiledDefinition:
    """A CRD whose schemas are compiled."""

    name: str
    group: str
    plural: str
    kind: str
    namespaced: bool
    strategy: str
    versions: Mapping[str, CompiledVersion]
    conversion: Conversion | None = None
    """The rules by which a webhook converts."""
    webhook: str = ""
    """The webhook that the CRD names, in words; empty if it names none."""

    @property
    def storage(self) -> str:
        """The version in which objects are written."""
        return next(each.name for each in self.versions.values() if each.storage)

    @property
    def served(self) -> tuple[str, ...]:
        """The versions at which objects can be read and written."""
        return tuple(each.name for each in self.versions.values() if each.served)

    @property
    def endpoint(self) -> str | None:
        """Where to write an object without a required version: at the storage version if it is served."""
        return self.storage if self.storage in self.served else next(iter(self.served), None)

    def converts(self, source: str, version: str) -> bool:
        """Whether the result of converting an object between these versions is known."""
        return source == version or self.strategy == NONE or self.conversion is not None

    def schema(self, version: str) -> ObjectSchema:
        """The compiled schema. Raises NotRehearsed."""
        found = self.versions.get(version)
        if found is None:
            raise NotRehearsed(f"{version} is no version of it")
        if found.schema is None:
            raise NotRehearsed(f"the schema of {version}: {found.problem}")
        return found.schema

    def read(self, obj: Any, version: str) -> Admitted:
        """The object at `version` if it is stored in the version of its apiVersion.

        Raises NotRehearsed, and Unconvertible if the rules refuse it.
        """
        source = version_of(obj)
        found = self.schema(source).stored(obj)
        if found.object is None:
            return found
        return self.arrived(found.object, version)

    def arrived(self, obj: Any, version: str) -> Admitted:
        """An object converted to another version, for a reader or for storage.

        Raises NotRehearsed and Unconvertible.
        """
        schema = self.schema(version)
        return schema.converted(stored(self.convert(obj, version)))

    def convert(self, obj: Any, version: str) -> Any:
        """The object at another version, before pruning. Raises NotRehearsed and Unconvertible."""
        source = version_of(obj)
        if source == version:
            return obj
        if self.conversion is not None and self.strategy == WEBHOOK:
            return self.conversion.convert(obj, version)
        if self.strategy != NONE:
            raise NotRehearsed(f"the conversion from {source} to {version}: a webhook does it")
        return {**obj, "apiVersion": f"{self.group}/{version}"}


def version_of(obj: Mapping[str, Any]) -> str:
    """The version of an object's apiVersion."""
    return str(obj.get("apiVersion") or "").rpartition("/")[2]


def compile_definition(
    document: Mapping[str, Any],
    conversion: Conversion | None = None,
    known: CompiledDefinition | None = None,
    schemas: Mapping[str, Schema] | None = None,
) -> CompiledDefinition:
    """Compile the CRD of a document that the API server would accept; with rules, a webhook converts by them.

    Versions whose schema `known` has, too, are taken from it: compiling one takes up to a second. `schemas`
    by version replace those of the document. Raises UnreadableDefinition, naming the field.
    """
    if schemas is None:
        schemas = schemas_of(document)
    spec = document.get("spec") or {}
    names, metadata = spec.get("names") or {}, document.get("metadata") or {}
    prunes = not spec.get("preserveUnknownFields")
    versions = {}
    for each in spec.get("versions") or ():
        name = each.get("name", "")
        before = known.versions.get(name) if known is not None else None
        made = _version(each, schemas[name], before, prunes)
        versions[made.name] = made
    if sum(each.storage for each in versions.values()) != 1:
        raise UnreadableDefinition("spec.versions: exactly one must be the storage version")
    strategy = (spec.get("conversion") or {}).get("strategy") or NONE
    webhook = describe(document) if strategy == WEBHOOK else ""
    if conversion is not None:
        strategy = WEBHOOK
    return CompiledDefinition(
        name=metadata.get("name") or f"{names.get('plural')}.{spec.get('group')}",
        group=spec.get("group") or "",
        plural=names.get("plural") or "",
        kind=names.get("kind") or "",
        namespaced=spec.get("scope") == "Namespaced",
        strategy=strategy,
        versions=versions,
        conversion=conversion,
        webhook=webhook,
    )


def _version(
    entry: Mapping[str, Any], schema: Schema, known: CompiledVersion | None, prunes: bool
) -> CompiledVersion:
    subresources = entry.get("subresources") or {}
    has_status = subresources.get("status") is not None
    compiled, problem = None, ""
    if known is not None and (known.has_status, known.prunes, known.declared) == (has_status, prunes, schema):
        compiled, problem = known.schema, known.problem
    else:
        try:
            compiled = ObjectSchema.of(schema, status=has_status, prunes=prunes)
        except CannotCompile as error:
            problem = str(error)
    return CompiledVersion(
        name=entry.get("name", ""),
        served=bool(entry.get("served")),
        storage=bool(entry.get("storage")),
        schema=compiled,
        problem=problem,
        scale=subresources.get("scale"),
        has_status=has_status,
        declared=schema,
        prunes=prunes,
    )
