"""What `crdkeeper convert` reads: rules, the CRD whose versions they are about, and objects."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.cli.lintinput import MAX_BYTES, STDIN, text_of
from crdkeeper.cli.options import run_async
from crdkeeper.cli.yamldocument import Unreadable, documents
from crdkeeper.cluster.client import Client
from crdkeeper.cluster.connection import Connection
from crdkeeper.cluster.definitions import get_definition_object
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.definition.schemas import UnreadableDefinition, schemas_of


class BadInput(click.ClickException):
    """Something that was given cannot be used."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Found:
    """An object and where it stands."""

    place: str
    value: dict[str, Any]


def read_objects(files: Iterable[str]) -> Iterator[Found]:
    """All objects in files, those in lists one by one. Raises BadInput."""
    for file in files:
        for place, value in _documents(file):
            yield from _objects(place, value)


def _objects(place: str, value: Any) -> Iterator[Found]:
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise BadInput(f"{place}: no Kubernetes object")
    if value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for each in value["items"]:
            yield from _objects(place, each)
    else:
        yield Found(place, value)


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
        raise BadInput(f"{file}: holds {len(found)} documents instead of one VersionConversion")
    place, value = found[0]
    try:
        return VersionConversion.model_validate(value)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        raise BadInput("\n".join(f"{place}: {line}" for line in lines)) from None


def read_conversion(
    rules: str, definition: str | None, kubeconfig: Path | None, context: str | None
) -> Conversion:
    """The compiled rules. The CRD comes from a file or, without one, from the cluster. Raises BadInput."""
    if STDIN in (rules, definition):
        raise BadInput("standard input is for objects: name files for the rules and the CRD")
    found = read_rules(rules)
    name = str(found.spec.resource)
    document = (
        _from_file(definition, name) if definition else run_async(_from_cluster(name, kubeconfig, context))
    )
    try:
        schemas = schemas_of(document)
    except UnreadableDefinition as error:
        raise BadInput(f"{definition or name}: {error}") from None
    made = compile_conversion(found.spec, schemas)
    if isinstance(made, Conversion):
        return made
    raise BadInput("\n".join(f"{rules}: {each.where}: {each.message}" for each in made))


def _from_file(file: str, name: str) -> dict[str, Any]:
    for each in read_objects([file]):
        if (each.value.get("metadata") or {}).get("name") == name:
            return each.value
    raise BadInput(f"{file}: no CustomResourceDefinition {name}")


async def _from_cluster(name: str, kubeconfig: Path | None, context: str | None) -> dict[str, Any]:
    async with Client(Connection(kubeconfig, context)) as client:
        found = await get_definition_object(client, name)
    if found is None:
        raise BadInput(f"there is no CustomResourceDefinition {name} in the cluster")
    return found
