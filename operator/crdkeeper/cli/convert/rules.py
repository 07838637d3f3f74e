"""The input of `crdkeeper convert`: rules, the CRD that they belong to, and objects."""

from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import ValidationError

from crdkeeper.api.meta import GROUP
from crdkeeper.api.versionconversion import VersionConversion, VersionConversionSpec
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition, schemas_of
from crdkeeper.apiserver.objects.objectmeta import Malformed, object_meta
from crdkeeper.apiserver.schema.finding import UndecidedValue
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.cli.input.files import (
    MAX_BYTES,
    STDIN,
    Failed,
    LocatedDefinition,
    read,
    text_of,
    warn_of_old_manifests,
)
from crdkeeper.cli.input.options import run_async
from crdkeeper.cli.output.printing import Trouble, lines_of
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.resources.discovery import list_resources
from crdkeeper.cluster.resources.versionconversions import list_conversions
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.conversion.verification import Trial, compile_trial
from crdkeeper.core.documents.yamldocument import Unreadable, documents
from crdkeeper.core.resourcenames import parse_resource, suggest
from crdkeeper.operations.rights import NotPermitted, explained, rights_to_read

_T = TypeVar("_T")


class BadInput(Trouble):
    """The input cannot be used."""

    exit_code = 2


def run_on_cluster(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end. Raises BadInput if there is a problem with the cluster.

    It must not look like an object that cannot be converted.
    """
    try:
        return run_async(work)
    except click.ClickException as error:
        raise BadInput(*lines_of(error)) from error


@asynccontextmanager
async def permitted(client: Client, needed: Sequence[Right]) -> AsyncIterator[None]:
    """Raises BadInput with the rules to add if the block fails because our account lacks these rights."""
    try:
        async with explained(client, needed):
            yield
    except NotPermitted as error:
        raise BadInput(*str(error).splitlines()) from error


@dataclass(frozen=True, slots=True)
class LocatedObject:
    """An object and its place in a file."""

    place: str
    value: dict[str, Any]


def read_objects(files: Iterable[str]) -> Iterator[LocatedObject]:
    """All objects in files, those in lists one by one, with metadata as of any object. Raises BadInput."""
    for file in files:
        for place, value in _documents(file):
            yield from _objects(place, value)


def _objects(place: str, value: Any) -> Iterator[LocatedObject]:
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise BadInput(f"{place}: not a Kubernetes object")
    if value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for each in value["items"]:
            yield from _objects(place, each)
        return
    try:
        object_meta(value.get("metadata"))
    except Malformed as error:
        raise BadInput(f"{place}: metadata: {error}") from None
    except UndecidedValue:
        pass  # a time that Python cannot represent
    yield LocatedObject(place, value)


def _documents(file: str) -> Iterator[tuple[str, Any]]:
    try:
        for document in documents(_text(file)):
            yield f"{file}:{document.position.line}", document.value
    except Unreadable as error:
        raise BadInput(f"{file}:{error.position.line}: {error}") from None


def _text(file: str) -> str:
    try:
        with click.open_file(file, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror or error}") from None
    return text_of(content)


def read_rules(file: str) -> VersionConversion:
    """The one VersionConversion in a file. Raises BadInput, naming the field."""
    found = list(_documents(file))
    if len(found) != 1:
        raise BadInput(f"{file}: holds {len(found)} documents; expected one VersionConversion")
    place, value = found[0]
    return _understood(value, place)


def _understood(value: Any, place: str) -> VersionConversion:
    try:
        return VersionConversion.model_validate(value)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        raise BadInput(*(f"{place}: {each}" for each in lines)) from None


@dataclass(frozen=True, slots=True)
class CompiledRules:
    """Rules that compile."""

    spec: VersionConversionSpec
    schemas: Mapping[str, Schema]
    trial: Trial


@dataclass(frozen=True, slots=True)
class Source:
    """The source of rules and CRD: files, or the cluster for what no file is given for."""

    rules: str | None
    definition: str | None
    kubeconfig: Path | None = None
    context: str | None = None

    def read(self, kind: tuple[str, str] | None = None, name: str | None = None) -> CompiledRules:
        """The compiled rules: those of the CRD called `name`, or of objects with this group and kind.

        Raises BadInput.
        """
        if STDIN in (self.rules, self.definition):
            raise BadInput("standard input is for objects: read the rules and the CRD from files")
        if name is not None:
            name = _resource(name)
        where = self.rules or "the cluster"
        if self.rules is not None:
            spec, name = _spec_in(self.rules, name)
        else:
            spec, name = run_on_cluster(self._live_rules(kind, name))
        document = (
            _from_file(self.definition, name)
            if self.definition
            else run_on_cluster(self._live_definition(name))
        )
        try:
            schemas = schemas_of(document)
        except UnreadableDefinition as error:
            raise BadInput(f"{self.definition or name}: {error}") from None
        made = compile_trial(spec, schemas)
        if isinstance(made, Trial):
            return CompiledRules(spec, schemas, made)
        raise BadInput(*(f"{where}: {each}" for each in made))

    async def _live_rules(
        self, kind: tuple[str, str] | None, name: str | None
    ) -> tuple[VersionConversionSpec, str]:
        needed = [Right("list", GROUP, VersionConversion.plural)]
        async with Client(Connection(self.kubeconfig, self.context)) as client, permitted(client, needed):
            for each in await list_conversions(client):
                found = each["metadata"]["name"]
                if name is None and kind is not None and found.partition(".")[2] == kind[0]:
                    async with permitted(client, rights_to_read([found])):
                        crd = await get_definition_object(client, found)
                    wanted = crd is not None and crd["spec"]["names"]["kind"] == kind[1]
                else:
                    wanted = found == name
                if wanted:
                    return _understood(each, f"VersionConversion {found}").spec, found
        if name is not None and self.definition is None:
            await self._live_definition(name)
        about = name or (f"{kind[1]} of {kind[0]}" if kind else "it")
        raise BadInput(f"the cluster has no VersionConversion for {about}: pass a file with --rules")

    async def _live_definition(self, name: str) -> dict[str, Any]:
        needed = rights_to_read([name])
        async with Client(Connection(self.kubeconfig, self.context)) as client, permitted(client, needed):
            found = await get_definition_object(client, name)
            if found is None:
                meant = suggest(name, await list_resources(client))
                raise BadInput(f"no CRD {name}" + (f"; did you mean {meant}?" if meant else ""))
        return found


def _resource(name: str) -> str:
    try:
        return str(parse_resource(name))
    except ValueError as error:
        raise BadInput(str(error)) from None


def _spec_in(file: str, name: str | None) -> tuple[VersionConversionSpec, str]:
    spec = read_rules(file).spec
    if name not in (None, str(spec.resource)):
        raise BadInput(f"{file}: converts {spec.resource}, not {name}")
    return spec, str(spec.resource)


def _from_file(file: str, name: str) -> dict[str, Any]:
    for found in read([file]):
        if isinstance(found, Failed):
            raise BadInput(f"{found.file}:{found.position.line}: {found.message}")
        if not isinstance(found, LocatedDefinition):
            continue
        metadata = found.value.get("metadata")
        if isinstance(metadata, dict) and metadata.get("name") == name:
            warn_of_old_manifests([found])
            return found.value
    raise BadInput(f"{file}: no CustomResourceDefinition {name}")
