"""The input of `crdkeeper rehearse`: new CRDs, conversion rules, and objects from files."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition, schemas_of
from crdkeeper.cli.convert.rules import BadInput, read_objects, read_rules
from crdkeeper.cli.diff.definitions import Side, name_of, read_files
from crdkeeper.cli.input.files import files_below, warn_of_old_manifests
from crdkeeper.cli.input.paths import is_folder
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.target import ConversionOwner, WebhookAddress, holder


def read_definitions(names: Iterable[str]) -> list[dict[str, Any]]:
    """The CRDs in files and directories. Raises BadInput, naming the place."""
    return list(_checked(read_files(names, allow_none=False)).values())


def read_current(file: str, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The current CRDs of these names, all in one file. Raises BadInput."""
    found = _checked(read_files([file], allow_none=False))
    for name in names:
        if name not in found:
            raise BadInput(f"{file}: no CustomResourceDefinition {name}")
    return found


def _checked(side: Side) -> dict[str, dict[str, Any]]:
    warn_of_old_manifests(side.definitions.values())
    for failed in side.failed:
        raise BadInput(f"{failed.file}:{failed.position.line}: {failed.message}")
    for name, each in side.definitions.items():
        metadata = each.value.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name") != name_of(each):
            raise BadInput(f"{each.file}:{each.find(()).line}: metadata.name: must be set")
        try:
            schemas_of(each.value)
        except UnreadableDefinition as error:
            raise BadInput(f"{each.file}:{each.find(()).line}: {name}: {error}") from None
    return {name: each.value for name, each in side.definitions.items()}


def read_folder(names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """All objects in files and directories, those in lists one by one. Raises BadInput."""
    for name in names:
        for each in read_objects(_files(name)):
            yield each.value


def _files(name: str) -> list[str]:
    path = Path(name)
    if not is_folder(path):
        return [name]
    found, failed = files_below(path)
    for each in failed:
        raise BadInput(f"{each.file}: {each.message}")
    return sorted(map(str, found))


@dataclass(frozen=True, slots=True)
class WebhookRules:
    """The rules by which a webhook converts a CRD."""

    spec: VersionConversionSpec | None = None
    """None if there are none."""
    place: str = ""
    """Where they are from: a file, or the cluster."""
    address: WebhookAddress | None = None
    """Where they are served. None if they are taken for those of the CRD's webhook, whatever that is."""

    def are_of(self, name: str) -> bool:
        """Whether they are for the CRD of that name."""
        return self.spec is not None and str(self.spec.resource) == name

    def compiled(self, name: str, document: Mapping[str, Any]) -> Conversion | None:
        """The conversion of this CRD; None if these rules do not convert it. Raises BadInput."""
        if self.spec is None or not self.are_of(name):
            return None
        if self.address is not None and holder(document, self.address) is not ConversionOwner.OURS:
            return None
        made = compile_conversion(self.spec, schemas_of(document))
        if isinstance(made, Conversion):
            return made
        raise BadInput(*(f"{self.place}: {each}" for each in made))


@dataclass(frozen=True, slots=True)
class RulePair:
    """The given rules, for the new CRD and for the current one."""

    new: WebhookRules
    old: WebhookRules

    @classmethod
    def read(cls, new: str | None, old: str | None, definitions: Sequence[Mapping[str, Any]]) -> Self:
        """Read both. Raises BadInput, also if they belong to none of the CRDs."""
        names = {each["metadata"]["name"] for each in definitions}
        return cls(_given(new, names), _given(old, names))

    def completed(self, name: str, serving: WebhookRules) -> Self:
        """These rules, and for a CRD without rules in files those that are served in the cluster."""
        return type(self)(*(each if each.are_of(name) else serving for each in (self.new, self.old)))


def _given(file: str | None, names: Collection[str]) -> WebhookRules:
    if file is None:
        return WebhookRules()
    spec = read_rules(file).spec
    if str(spec.resource) not in names:
        raise BadInput(f"{file}: spec.resource: {spec.resource} is none of {', '.join(sorted(names))}")
    return WebhookRules(spec, file)
