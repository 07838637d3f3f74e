"""What the conditions of a definition say when a request of the composer is refused, or fails."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.meta import GROUP
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.deadlines import within
from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.plan import ComposerStep, Gathered
from crdkeeper.core.diagnosis.verdict import Verdict

_log = logging.getLogger(__name__)
Trouble = ApiError | Unreachable

LABEL: Final = f'rbac.{GROUP}/aggregate-to-composer: "true"'
_CRDS: Final = "apiextensions.k8s.io", "customresourcedefinitions"
_DEFINITIONS: Final = GROUP, CompositeResourceDefinition.plural
_REVIEW_SECONDS: Final = 5.0
_READ: Final = (Right("get", *_CRDS),)
_NEEDED: Final[Mapping[ComposerStep, Sequence[Right]]] = {
    ComposerStep.ADD_FINALIZER: (Right("patch", *_DEFINITIONS),),
    ComposerStep.APPLY: (Right("create", *_CRDS), Right("patch", *_CRDS)),
    ComposerStep.CLAIM_CRD: (Right("patch", *_CRDS),),
    ComposerStep.FENCE: (Right("patch", *_CRDS),),
    ComposerStep.UNFENCE: (Right("patch", *_CRDS),),
    ComposerStep.DELETE_CRD: (Right("delete", *_CRDS),),
    ComposerStep.RELEASE_CRD: (Right("patch", *_CRDS),),
    ComposerStep.REMOVE_FINALIZER: (Right("patch", *_DEFINITIONS),),
}
"""What each step needs, besides rights on composites."""
_FAILURES: Final = frozenset((404, 409, 410, 429))
"""Besides those of the server: nobody objects, but something is in the way."""


async def refusal_of_reading(client: Client, error: Trouble) -> Verdict:
    """What to say when the API server does not return what the next step depends on."""
    said = f"cannot read what the definition depends on: {_described(error)}"
    return await _own_right_missing(client, error, _READ, said) or Verdict(reasons.NOT_READ, said)


async def refusal_of(client: Client, gathered: Gathered, step: ComposerStep, error: Trouble) -> Verdict:
    """What to say when a step does not succeed."""
    said = f"cannot {step.value}: {_described(error)}"
    missing = await _own_right_missing(client, error, _NEEDED.get(step, ()), said)
    if missing is not None:
        return missing
    if isinstance(error, Unreachable) or error.code >= 500 or error.code in _FAILURES:
        return Verdict(reasons.FAILED, said)
    if error.code == 403 and step is ComposerStep.DELETE_COMPOSITES:
        # Or else an admission webhook or policy denies it.
        spec = gathered.definition.spec
        if await _missing(client, [Right("delete", spec.group, spec.names.plural)]):
            return await right_missing(client, gathered.definition, said)
    return Verdict(reasons.INVALID if _is_invalid(error) else reasons.REFUSED, said)


async def right_missing(client: Client, definition: CompositeResourceDefinition, said: str) -> Verdict:
    """What to say when the composer may not do what it has to do with composites."""
    spec = definition.spec
    verbs = ("list", "watch", "delete") if spec.deletion == "Cascade" else ("list", "watch")
    wanted = [Right(each, spec.group, spec.names.plural) for each in verbs]
    missing = await _missing(client, wanted)
    return Verdict(
        reasons.RIGHT_MISSING,
        f"the composer lacks rights on the composites ({', '.join(missing) or said}). Create a ClusterRole "
        f"that has the label {LABEL} and this rule: {_rule(wanted[0], verbs)}",
    )


async def _own_right_missing(
    client: Client, error: Trouble, needed: Sequence[Right], said: str
) -> Verdict | None:
    """If the composer lacks a right that its manifests give it: what to say."""
    if not needed or isinstance(error, Unreachable) or error.code != 403:
        return None
    missing = await _missing(client, needed)
    if not missing:
        return None
    rule = _rule(needed[0], [each.split()[0] for each in missing])
    return Verdict(
        reasons.RIGHT_MISSING_TO_APPLY,
        f"{said}. Apply manifests/composer, whose ClusterRole has the missing rule: {rule}",
    )


async def _missing(client: Client, rights: Sequence[Right]) -> list[str]:
    """Those that the composer is known to lack: a review that fails must not hide what is to be said."""
    try:
        return await within(_REVIEW_SECONDS, missing_rights(client, rights))
    except (ApiError, Unreachable) as error:
        _log.warning("The composer's own rights are not known: %s", error)
        return []


def _rule(right: Right, verbs: Sequence[str]) -> str:
    """The rule that a ClusterRole needs for these verbs on the resource of a right, as YAML."""
    return f"{{apiGroups: [{right.group}], resources: [{right.resource}], verbs: [{', '.join(verbs)}]}}"


def _is_invalid(error: ApiError) -> bool:
    """Whether validation refuses a field. Policies, too, answer with its code, by default."""
    details = error.body.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    fields = [each.get("field") for each in causes or () if isinstance(each, dict)]
    return error.code == 422 and any(fields)


def _described(error: Trouble) -> str:
    return error.message if isinstance(error, ApiError) else str(error)
