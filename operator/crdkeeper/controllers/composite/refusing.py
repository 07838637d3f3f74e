"""What to say when the API server refuses a request about a composite's objects."""

from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.api.meta import GROUP
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.servermessages import of_a_secret, without_values

Trouble = ApiError | Unreachable
_LABEL: Final = f'rbac.{GROUP}/aggregate-to-composer: "true"'
_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete")
_AGAIN: Final = frozenset((404, 409, 410, 429))
_CONFLICT: Final = "FieldManagerConflict"
_ENDING: Final = "NamespaceTerminating"
_UPDATE: Final = frozenset(("FieldValueForbidden", "FieldValueInvalid"))
_CANNOT_CHANGE: Final = ("immutable", "updates to", "may not change", "may not be changed")
"""What the API server says of a field that cannot change, without its value."""


async def refusal(rights: KnownRights, kind: ServedKind, what: str, error: Trouble) -> Verdict:
    """What to say of a request for objects of a kind; `what` names the object."""
    if isinstance(error, Unreachable):
        return Verdict(reasons.FAILED, f"{what}: {error}")
    said = f"{what}: {_words(kind, error)}"
    conflicts = conflicts_of(error)
    if conflicts:
        fields = "; ".join(f"{field} belongs to {manager}" for field, manager in conflicts[:5])
        more = f"; and {len(conflicts) - 5:,} more" if len(conflicts) > 5 else ""
        return Verdict(reasons.CONFLICT, f"{what}: {fields}{more}. {reasons.CONFLICT.remedy}")
    if any(each.get("reason") == _ENDING for each in _causes(error)):
        # The composite goes, too. Nobody has to do anything.
        return Verdict(reasons.FAILED, said)
    if error.code == 403:
        missing = await _missing(rights, kind)
        if missing:
            return _right_missing(kind, said)
    if error.code in _AGAIN or error.code >= 500:
        return Verdict(reasons.FAILED, said)
    return Verdict(reasons.REFUSED, said)


async def unwatched(rights: KnownRights, kind: ServedKind, trouble: str) -> Verdict | None:
    """What to say of a kind that cannot be watched; None if no right is known to be missing."""
    missing = [each for each in await _missing(rights, kind) if each.verb in ("list", "watch")]
    if not missing:
        return None
    said = f"Changes of {kind.kind} of {kind.api_version} are seen late: {trouble}"
    return _right_missing(kind, said)


def conflicts_of(error: Trouble) -> list[tuple[str, str]]:
    """The fields that others own, with their managers, if that is why an apply was refused."""
    if isinstance(error, Unreachable) or error.code != 409:
        return []
    return [
        (str(each.get("field")), _manager(str(each.get("message"))))
        for each in _causes(error)
        if each.get("reason") == _CONFLICT
    ]


def is_immutable(error: Trouble) -> bool:
    """Whether a field was to change that cannot, also if there is more that is wrong.

    Names of objects and fields, values, and the words of webhooks and policies decide nothing.
    """
    if isinstance(error, Unreachable) or error.code != 422:
        return False
    said = [
        without_values(str(each.get("message"))).lower()
        for each in _causes(error)
        if each.get("reason") in _UPDATE
    ]
    return any(words in each for each in said for words in _CANNOT_CHANGE)


def exists_already(error: Trouble) -> bool:
    """Whether an object could be created, were it not there."""
    return not isinstance(error, Unreachable) and error.code == 409 and error.reason == "AlreadyExists"


def _causes(error: ApiError) -> list[Mapping[str, Any]]:
    details = error.body.get("details")
    causes = details.get("causes") if isinstance(details, Mapping) else None
    return [each for each in causes if isinstance(each, Mapping)] if isinstance(causes, list) else []


def _right_missing(kind: ServedKind, said: str) -> Verdict:
    group = kind.group or '""'
    rule = f"{{apiGroups: [{group}], resources: [{kind.plural}], verbs: [{', '.join(_VERBS)}]}}"
    return Verdict(
        reasons.RIGHT_MISSING,
        f"{said.rstrip('.')}. Create a ClusterRole that has the label {_LABEL} and this rule: {rule}",
    )


def _manager(message: str) -> str:
    """That of `conflict with "kubectl" using v1`."""
    return message.removeprefix("conflict with ").replace('"', "")


def _words(kind: ServedKind, error: ApiError) -> str:
    return of_a_secret(error.message) if (kind.group, kind.kind) == ("", "Secret") else error.message


async def _missing(rights: KnownRights, kind: ServedKind) -> list[Right]:
    """The rights that the composer is known to lack."""
    return await rights.missing([Right(each, kind.group, kind.plural) for each in _VERBS])
