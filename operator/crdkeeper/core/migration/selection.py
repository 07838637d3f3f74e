"""Which CRDs a command migrates that names none: those with some labels, or those that need a migration."""

from collections.abc import Iterable
from dataclasses import dataclass

from crdkeeper.api.storagemigration import GroupResource
from crdkeeper.apiserver.definitions.facts import DefinitionFacts


@dataclass(frozen=True, slots=True)
class ChosenDefinitions:
    """The resources to migrate, by name, and a sentence for each CRD that is left out."""

    resources: list[GroupResource]
    remarks: list[str]
    unserved: bool
    """Whether one was left out whose old versions stay until it is served."""


def select(definitions: Iterable[DefinitionFacts], *, outdated: bool) -> ChosenDefinitions:
    """The resources of those CRDs; with `outdated`, only of those that store more than one version.

    Nothing can be migrated while a CRD is being deleted, or before it is served. The operator waits then, but
    a command would fail.
    """
    resources, remarks, unserved = [], [], False
    for each in sorted(definitions, key=lambda each: each.name):
        if outdated and not each.outdated_versions:
            continue
        if each.terminating:
            remarks.append(f"{each.name}: left out, because the CRD is being deleted.")
        elif not each.established or not each.served_versions:
            remarks.append(f"{each.name}: left out, because no version of it is served.")
            unserved = unserved or bool(each.outdated_versions)
        else:
            resources.append(GroupResource(group=each.group, resource=each.plural))
    return ChosenDefinitions(resources, remarks, unserved)
