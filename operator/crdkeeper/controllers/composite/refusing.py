"""What to say when the API server refuses a request about a composite's objects."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.api.meta import GROUP
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.deadlines import within
from crdkeeper.core.composites import reasons
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.servermessages import of_a_secret

_log = logging.getLogger(__name__)
Trouble = ApiError | Unreachable
_LABEL: Final = f'rbac.{GROUP}/aggregate-to-composer: "true"'
_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete")
_REVIEW_SECONDS: Final = 5.0
_AGAIN: Final = frozenset((404, 409, 410, 429))
_CONFLICT: Final = "FieldManagerConflict"


async def refusal(client: Client, kind: ServedKind, what: str, error: Trouble) -> Verdict:
    """What to say of a request for objects of a kind; `what` names the object."""
    if isinstance(error, Unreachable):
        return Verdict(reasons.FAILED, f"{what}: {error}")
    said = f"{what}: {_words(kind, error)}"
    conflicts = conflicts_of(error)
    if conflicts:
        fields = "; ".join(f"{field} belongs to {manager}" for field, manager in conflicts[:5])
        more = f"; and {len(conflicts) - 5:,} more" if len(conflicts) > 5 else ""
        return Verdict(reasons.CONFLICT, f"{what}: {fields}{more}. {reasons.CONFLICT.remedy}")
    if error.code == 403:
        missing = await _missing(client, kind)
        if missing:
            rule = f"{{apiGroups: [{kind.group}], resources: [{kind.plural}], verbs: [{', '.join(_VERBS)}]}}"
            return Verdict(
                reasons.RIGHT_MISSING,
                f"{said.rstrip('.')}. Create a ClusterRole that has the label {_LABEL} and this rule: {rule}",
            )
    if error.code in _AGAIN or error.code >= 500:
        return Verdict(reasons.FAILED, said)
    return Verdict(reasons.REFUSED, said)


def conflicts_of(error: Trouble) -> list[tuple[str, str]]:
    """The fields that others own, with their managers, if that is why an apply was refused."""
    if isinstance(error, Unreachable) or error.code != 409:
        return []
    details = error.body.get("details")
    causes: Any = details.get("causes") if isinstance(details, Mapping) else None
    return [
        (str(each.get("field")), _manager(str(each.get("message"))))
        for each in causes or ()
        if isinstance(each, Mapping) and each.get("reason") == _CONFLICT
    ]


def is_immutable(error: Trouble) -> bool:
    """Whether a field was to change that cannot."""
    if isinstance(error, Unreachable) or error.code != 422:
        return False
    text = error.message.lower()
    return "immutable" in text or "forbidden: updates to" in text or "may not be changed" in text


def _manager(message: str) -> str:
    """That of `conflict with "kubectl" using v1`."""
    return message.removeprefix("conflict with ").replace('"', "")


def _words(kind: ServedKind, error: ApiError) -> str:
    return of_a_secret(error.message) if (kind.group, kind.kind) == ("", "Secret") else error.message


async def _missing(client: Client, kind: ServedKind) -> list[str]:
    """The rights that the composer is known to lack."""
    wanted = [Right(each, kind.group, kind.plural) for each in _VERBS]
    try:
        return await within(_REVIEW_SECONDS, missing_rights(client, wanted))
    except (ApiError, Unreachable) as error:
        _log.warning("The composer's own rights are not known: %s", error)
        return []
