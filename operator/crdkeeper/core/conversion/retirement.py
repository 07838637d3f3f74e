"""When a VersionConversion may be deleted: not while anyone could still need it to read what is stored."""

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.conversion.standing import StepResult
from crdkeeper.core.conversion.target import ConversionOwner


def use(definition: DefinitionFacts | None, held: ConversionOwner, objects: bool | None) -> StepResult:
    """The condition InUse, by which an admission policy refuses to delete a VersionConversion.

    `definition` is None without the CRD, `held` says who converts it; `objects` is as in `still_needed`.
    Nobody can undo the deletion of a CRD, whose objects are converted until it is gone, also without the
    VersionConversion: whoever has deleted the CRD need not wait to delete that, too.
    """
    if definition is None:
        return StepResult("False", "NoDefinition", "There is no CRD to convert.")
    if definition.terminating:
        said = "The CRD is being deleted. The rules are served until it is gone."
        return StepResult("False", "DefinitionTerminating", said)
    if held is not ConversionOwner.OURS:
        return StepResult("False", "NotConfigured", "The CRD is not converted by these rules.")
    why = still_needed(definition, objects)
    if why:
        return StepResult("True", "Needed", why)
    return StepResult("False", "NotNeeded", "Nobody needs the conversion at present.")


def still_needed(definition: DefinitionFacts, objects: bool | None) -> str:
    """Why the conversion is still needed, with what to do about it; empty if it is not.

    `objects` says whether there are any; None if that is unknown.
    """
    if objects is False:
        return ""
    name, storage = definition.name, definition.storage_version
    if definition.outdated_versions:
        stored = ", ".join(definition.outdated_versions)
        return (
            f"Objects of {name} may still be stored at {stored}, and could not be read any more. Migrate "
            f"them: crdkeeper migrate {name}, or a StorageMigration."
        )
    others = [each for each in definition.served_versions if each != storage]
    if others:
        return (
            f"{', '.join(others)} of {name} would be served without a conversion from {storage}, the version "
            "that is stored: wrong to whoever reads it, and lossy when written. Set served: false for it, or "
            "give the CRD another conversion webhook."
        )
    return ""
