"""How many composites there are, or why that cannot be said; and what an error of the API server means."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.resources.composites import composites_path, first_composites, is_served
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.compositeresourcedefinition.watching import CompositeWatches
from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.plan import (
    LABEL,
    ComposerStep,
    Gathered,
    Refusal,
    is_controlled,
    needed_verbs,
    rule,
)
from crdkeeper.core.composer.wording import SHOWN

_CRDS: Final = "apiextensions.k8s.io", "customresourcedefinitions"
_VERBS: Final[Mapping[ComposerStep, tuple[str, ...]]] = {
    ComposerStep.APPLY: ("create", "patch"),
    ComposerStep.DELETE_CRD: ("delete",),
    ComposerStep.RELEASE_CRD: ("patch",),
}
"""What each step needs on CRDs."""


@dataclass(frozen=True, slots=True)
class CompositeCount:
    """The composites of a definition."""

    number: int | None
    first: tuple[str, ...] = ()
    hidden: Refusal | None = None
    """Why they cannot be counted, or not be watched."""


async def count_composites(
    client: Client,
    watches: CompositeWatches,
    definition: CompositeResourceDefinition,
    live: Mapping[str, Any] | None,
) -> CompositeCount:
    """Count the composites of a CRD, and watch them from now on if it is the definition's.

    Raises ApiError or Unreachable.
    """
    name = definition.metadata.name
    if live is None or not is_served(live):
        watches.stop(name)
        return CompositeCount(0)
    path, uid = composites_path(live), live["metadata"]["uid"]
    if path is None:
        watches.stop(name)
        return CompositeCount(
            None, hidden=Refusal(reasons.NOT_LISTED.name, "no version of the CRD is served")
        )
    ours = is_controlled(live, definition.metadata.uid)
    if not ours:
        watches.stop(name)
    try:
        found = await first_composites(client, path, SHOWN)
    except ApiError as error:
        if ours:
            watches.keep(name, uid, path, "")
        if error.code == 403:
            return CompositeCount(None, hidden=await _right_missing(client, definition, error.message))
        if error.code == 404 or error.code >= 500:
            # Not found: an API server that does not serve them yet says nothing about their number.
            said = f"the API server cannot list the composites: {error.message}"
            return CompositeCount(None, hidden=Refusal(reasons.NOT_LISTED.name, said))
        raise
    if ours:
        watches.keep(name, uid, path, found.resource_version)
    refused = watches.refused(name)
    hidden = await _right_missing(client, definition, refused) if refused else None
    return CompositeCount(found.number, found.names, hidden)


async def refusal_of(client: Client, gathered: Gathered, step: ComposerStep, error: ApiError) -> Refusal:
    """What to say when the API server refuses a step."""
    definition = gathered.definition
    said = f"cannot {step.value}: {error.message}"
    if error.code == 403 and step is ComposerStep.DELETE_COMPOSITES:
        return await _right_missing(client, definition, said)
    if error.code == 403:
        group, resource = _CRDS
        missing = await missing_rights(
            client, [Right(verb, group, resource) for verb in _VERBS.get(step, ())]
        )
        if missing:
            verbs = ", ".join(each.split()[0] for each in missing)
            needed = f"{{apiGroups: [{group}], resources: [{resource}], verbs: [{verbs}]}}"
            return Refusal(
                reasons.RIGHT_MISSING_TO_APPLY.name,
                f"{said}. Apply manifests/composer, whose ClusterRole has the missing rule: {needed}",
            )
    if error.code == 422:
        return Refusal(reasons.INVALID.name, said)
    if error.code >= 500 or error.code == 429:
        return Refusal(reasons.FAILED.name, said)
    return Refusal(reasons.REFUSED.name, said)


async def _right_missing(client: Client, definition: CompositeResourceDefinition, said: str) -> Refusal:
    spec = definition.spec
    wanted = [Right(verb, spec.group, spec.names.plural) for verb in needed_verbs(definition)]
    missing = await missing_rights(client, wanted)
    return Refusal(
        reasons.RIGHT_MISSING.name,
        f"the composer lacks rights on the composites ({', '.join(missing) or said}). Create a ClusterRole "
        f"that has the label {LABEL} and this rule: {rule(definition)}",
    )
