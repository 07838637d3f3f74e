"""What the conditions of a definition say when a request of the composer is refused, or fails."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.meta import GROUP
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.controllers.rights import KnownRights, rights_to_compose
from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.fence import NOT_KNOWN as FENCE_NOT_KNOWN
from crdkeeper.core.composer.offering import is_composed
from crdkeeper.core.composer.plan import ComposerStep, Gathered
from crdkeeper.core.composer.wording import own_rules, rule_on_composites
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.operations.rights import DEFINITIONS

Trouble = ApiError | Unreachable

_COMPOSITE_DEFINITIONS: Final = GROUP, CompositeResourceDefinition.plural
_READ: Final = (
    Right("get", *DEFINITIONS),
    Right("get", GROUP, VersionConversion.plural),
    Right("get", *_COMPOSITE_DEFINITIONS),
)
_NEEDED: Final[Mapping[ComposerStep, Sequence[Right]]] = {
    ComposerStep.ADD_FINALIZER: (Right("patch", *_COMPOSITE_DEFINITIONS),),
    ComposerStep.APPLY: (Right("create", *DEFINITIONS), Right("patch", *DEFINITIONS)),
    ComposerStep.CLAIM_CRD: (Right("patch", *DEFINITIONS),),
    ComposerStep.FENCE: (Right("patch", *DEFINITIONS),),
    ComposerStep.UNFENCE: (Right("patch", *DEFINITIONS),),
    ComposerStep.TRY_DELETION: (Right("delete", *DEFINITIONS),),
    ComposerStep.DELETE_CRD: (Right("delete", *DEFINITIONS),),
    ComposerStep.RELEASE_CRD: (Right("patch", *DEFINITIONS),),
    ComposerStep.REMOVE_FINALIZER: (Right("patch", *_COMPOSITE_DEFINITIONS),),
}
"""What each step needs, besides rights on composites."""
_FAILURES: Final = frozenset((404, 409, 410, 429))
"""Besides those of the server: nobody objects, but something is in the way."""
_TOO_LARGE: Final = ("etcdserver: request is too large", "trying to send message larger than max")
"""What the API server passes on from etcd and its client, with the code 500.

Source: isTooLargeError in k8s.io/apiserver/pkg/endpoints/handlers/rest.go. Its own limit has the code 413.
"""


async def refusal_of_reading(rights: KnownRights, error: Trouble) -> Verdict:
    """What to say when the API server does not return what the next step depends on."""
    said = f"cannot read what the definition depends on: {_described(error)}"
    return await _own_right_missing(rights, error, _READ, said) or Verdict(reasons.NOT_READ, said)


async def refusal_of(rights: KnownRights, gathered: Gathered, step: ComposerStep, error: Trouble) -> Verdict:
    """What to say when a step does not succeed."""
    said = f"cannot {step.value}: {_described(error)}"
    missing = await _own_right_missing(rights, error, _NEEDED.get(step, ()), said)
    if missing is not None:
        return missing
    if step in _NEEDED and _is_too_large(error):
        return _too_large(gathered, step, said)
    if isinstance(error, Unreachable) or error.code >= 500 or error.code in _FAILURES:
        return Verdict(reasons.FAILED, said)
    if step is ComposerStep.FENCE and any(each.endswith(".rule") for each in _invalid_fields(error)):
        return Verdict(reasons.REFUSED, f"{said.rstrip('.')}. {FENCE_NOT_KNOWN}")
    if error.code == 403 and step is ComposerStep.DELETE_COMPOSITES:
        # Or else an admission webhook or policy denies it.
        spec = gathered.definition.spec
        if await rights.missing([Right("delete", spec.group, spec.names.plural)]):
            composed = is_composed(gathered.definition, gathered.compositions)
            return await right_missing(rights, gathered.definition, said, composed=composed)
    return Verdict(reasons.INVALID if _invalid_fields(error) else reasons.REFUSED, said)


async def right_missing(
    rights: KnownRights, definition: CompositeResourceDefinition, said: str, *, composed: bool
) -> Verdict:
    """What to say when the composer may not do what it has to do with composites.

    If they are composed, all that this needs: whoever adds the rule is not asked for another one then.
    """
    spec = definition.spec
    verbs = ("list", "watch", "delete") if spec.deletion == "Cascade" else ("list", "watch")
    wanted = [Right(each, spec.group, spec.names.plural) for each in verbs]
    if composed:
        wanted += rights_to_compose(spec.group, spec.names.plural)
    missing = ", ".join(map(str, await rights.missing(wanted)))
    return Verdict(
        reasons.RIGHT_MISSING,
        f"the composer lacks rights on the composites ({missing or said}). "
        f"{rule_on_composites(definition, composed=composed)}",
    )


async def _own_right_missing(
    rights: KnownRights, error: Trouble, needed: Sequence[Right], said: str
) -> Verdict | None:
    """If the composer lacks a right that its manifests give it: what to say."""
    if not needed or isinstance(error, Unreachable) or error.code != 403:
        return None
    missing = await rights.missing(needed)
    if not missing:
        return None
    return Verdict(reasons.RIGHT_MISSING_TO_APPLY, f"{said}. {own_rules(_rules(missing))}")


def _rules(rights: Sequence[Right]) -> str:
    """The rules that a ClusterRole needs for these rights, as YAML."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for each in rights:
        verbs.setdefault((each.group, each.resource), []).append(each.verb)
    return " and ".join(
        f"{{apiGroups: [{group}], resources: [{resource}], verbs: [{', '.join(of)}]}}"
        for (group, resource), of in verbs.items()
    )


def _too_large(gathered: Gathered, step: ComposerStep, said: str) -> Verdict:
    made, what = gathered.judged.crd, "The definition is too large to be changed."
    if step is not ComposerStep.ADD_FINALIZER and made is not None:
        size = len(orjson.dumps(made)) / 1024
        what = (
            f"The CRD has {size:,.0f} KiB as JSON, to which the API server adds metadata.managedFields with "
            "the path of each field. etcd takes 1,536 KiB for both by default."
        )
    remedy = "Shorten the schemas of the definition, such as by shorter descriptions, or remove versions."
    return Verdict(reasons.TOO_LARGE, f"{said}. {what} {remedy}")


def _is_too_large(error: Trouble) -> bool:
    """Whether what was sent, or what would be stored, is larger than the API server or etcd takes."""
    if isinstance(error, Unreachable):
        return False
    return error.code == 413 or (error.code >= 500 and any(each in error.message for each in _TOO_LARGE))


def _invalid_fields(error: ApiError) -> list[str]:
    """The fields that validation refuses. Policies, too, answer with its code, by default, but name none."""
    details = error.body.get("details")
    causes: Any = details.get("causes") if isinstance(details, dict) else None
    found = [each.get("field") for each in causes or () if isinstance(each, dict)]
    return [str(each) for each in found if each] if error.code == 422 else []


def _described(error: Trouble) -> str:
    return error.message if isinstance(error, ApiError) else str(error)
