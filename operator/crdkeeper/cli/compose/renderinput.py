"""The files of `crdkeeper compose render`: which object in them is what."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition
from crdkeeper.cli.input.files import (
    MAX_BYTES,
    Failed,
    LocatedDefinition,
    Skipped,
    WrittenObject,
    contents,
    parse,
    read,
)
from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.templates.admission import is_composition
from crdkeeper.core.templates.kinds import TargetKind, kinds_of
from crdkeeper.core.templates.namespaces import Identity, identity_of
from crdkeeper.core.templates.openapi import is_openapi, kinds_of_openapi


@dataclass(slots=True)
class RenderInput:
    """Everything that is read."""

    composition: WrittenObject | None = None
    kind: str = ""
    """The kind of the composites."""
    target: TargetKind = field(default_factory=lambda: TargetKind(None, None))
    """The composites' version of compositeTypeRef."""
    composites: list[Skipped] = field(default_factory=list)
    kinds: dict[tuple[str, str], TargetKind] = field(default_factory=dict)
    observed: dict[Identity, Any] = field(default_factory=dict)
    unused: list[Skipped] = field(default_factory=list)
    """What is neither: its kind may be misspelled."""
    failed: list[Failed] = field(default_factory=list)


def read_input(filenames: Sequence[str], schemas: Sequence[str], observed: Sequence[str]) -> RenderInput:
    """Read all files. What does not fit together is in `failed`."""
    given = RenderInput()
    others: list[Skipped] = []
    for each in (*read(filenames), *_schemas(given, schemas)):
        if isinstance(each, Failed):
            given.failed.append(each)
        elif isinstance(each, LocatedDefinition):
            _add_definition(given, each)
        elif isinstance(each, WrittenObject) and is_composition(each.value):
            if given.composition is not None:
                given.failed.append(
                    Failed(each.file, each.position, "a second Composition: render one at a time")
                )
            given.composition = each
        else:
            others.append(each)
    for each in read(observed):
        if isinstance(each, Failed):
            given.failed.append(each)
        elif isinstance(each, Skipped) and isinstance(each.value, dict):
            identity = identity_of(each.value)
            if identity is not None:
                given.observed[identity] = each.value
    _match(given, others, ", ".join(filenames))
    return given


def _schemas(given: RenderInput, names: Sequence[str]) -> Iterator[LocatedDefinition | Skipped | Failed]:
    """CRDs in files; the kinds of OpenAPI documents are added at once.

    These are JSON of megabytes, without lines that anybody would look for.
    """
    for each in contents(names):
        if isinstance(each, Failed):
            yield each
            continue
        file, content = each
        document = None
        if content.lstrip()[:1] == b"{" and len(content) <= MAX_BYTES:
            with suppress(orjson.JSONDecodeError):
                document = orjson.loads(content)
        if isinstance(document, dict) and is_openapi(document):
            given.kinds |= kinds_of_openapi(document)
        else:
            yield from parse(file, content)


def _add_definition(given: RenderInput, found: LocatedDefinition) -> None:
    refused = found.composite is not None and found.composite.refused
    try:
        kinds = kinds_of(found.value)
    except (UnreadableDefinition, KeyError, TypeError) as error:
        given.failed.append(Failed(found.file, found.find(()), f"not a definition that can be used: {error}"))
        return
    if refused:
        message = "the definition is refused: crdkeeper compose crd says why"
        given.failed.append(Failed(found.file, found.find(()), message))
    given.kinds |= kinds


def _match(given: RenderInput, others: Sequence[Skipped], names: str) -> None:
    """Find the definition of the composites, and the composites."""
    composition = given.composition
    if composition is None:
        if not given.failed:
            given.failed.append(Failed(names, Position(), "contains no Composition"))
        return
    spec = composition.value.get("spec")
    reference = spec.get("compositeTypeRef") if isinstance(spec, dict) else None
    if not isinstance(reference, dict):
        reference = {}
    api_version, given.kind = str(reference.get("apiVersion", "")), str(reference.get("kind", ""))
    at = composition.find(("spec", "compositeTypeRef"))
    if not api_version or not given.kind:
        # The Composition is refused for that, with the words of its CRD.
        return
    if (api_version, given.kind) not in given.kinds:
        message = f"no definition of {given.kind} ({api_version}) is given"
        given.failed.append(Failed(composition.file, at, message))
        return
    given.target = given.kinds[api_version, given.kind]
    group = api_version.rpartition("/")[0]
    for each in others:
        value = each.value if isinstance(each.value, dict) else {}
        version = str(value.get("apiVersion", ""))
        if value.get("kind") != given.kind or version.rpartition("/")[0] != group:
            given.unused.append(each)
        elif version == api_version:
            given.composites.append(each)
        else:
            message = f"the {given.kind} is at {version}, but the Composition reads {api_version}"
            given.failed.append(Failed(each.file, each.position, message))
