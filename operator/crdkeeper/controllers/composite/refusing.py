"""What to say when the API server refuses a request about a composite's objects."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from crdkeeper.api.meta import GROUP
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import ApiError, NoCredentials, Unreachable
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.accounts import ServiceAccount
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


class NoToken(NoCredentials):
    """There is no token of a ServiceAccount; `verdict` says why."""

    def __init__(self, verdict: Verdict, *, gone: bool = False, ending: bool = False) -> None:
        """`gone`: there is no such account. `ending`: its namespace is being deleted."""
        super().__init__(verdict.message)
        self.verdict = verdict
        self.gone = gone or ending
        self.ending = ending


async def refusal(
    rights: KnownRights,
    kind: ServedKind,
    what: str,
    error: Trouble,
    *,
    namespace: str = "",
    only_read: bool = False,
    secret: bool = False,
) -> Verdict:
    """What to say of a request for objects of a kind, in one namespace or in all; `what` names the object.

    `rights` are those of the account that has sent it. `only_read`: by their names. `secret` is whether the
    object may have values of Secrets, which webhooks may quote.
    """
    if isinstance(error, NoToken):
        return error.verdict
    if isinstance(error, Unreachable):
        return Verdict(reasons.FAILED, f"{what}: {error}")
    said = f"{what}: {_words(kind, error, secret)}"
    conflicts = conflicts_of(error)
    if conflicts:
        fields = "; ".join(f"{field} belongs to {manager}" for field, manager in conflicts[:5])
        more = f"; and {len(conflicts) - 5:,} more" if len(conflicts) > 5 else ""
        return Verdict(reasons.CONFLICT, f"{what}: {fields}{more}. {reasons.CONFLICT.remedy}")
    if is_namespace_ending(error):
        # The composite goes, too. Nobody has to do anything.
        return Verdict(reasons.FAILED, said)
    if error.code == 403:
        verbs = _needed(rights.account, only_read=only_read)
        wanted = [Right(each, kind.group, kind.plural, namespace=namespace) for each in verbs]
        if await rights.missing(wanted):
            return _right_missing(rights.account, kind, said, verbs, namespace)
    if error.code in _AGAIN or error.code >= 500:
        return Verdict(reasons.FAILED, said)
    return Verdict(reasons.REFUSED, said)


async def unwatched(rights: KnownRights, kind: ServedKind, trouble: str) -> Verdict | None:
    """What to say of a kind that cannot be watched; None if no right is known to be missing."""
    wanted = [Right(each, kind.group, kind.plural) for each in ("list", "watch")]
    if not await rights.missing(wanted):
        return None
    said = f"Changes of {kind.kind} of {kind.api_version} are seen late: {trouble}"
    return _right_missing(None, kind, said, _needed(None, only_read=False), "")


def is_namespace_ending(error: ApiError) -> bool:
    """Whether an object is refused because its namespace is being deleted."""
    return any(each.get("reason") == _ENDING for each in _causes(error))


def opt_in(group: str, resource: str, verbs: Sequence[str], name: str = "") -> str:
    """How to give the composer a right, on all objects or on those with one name."""
    rule = _rule(group, resource, verbs, name)
    return f"Create a ClusterRole that has the label {_LABEL} and this rule: {rule}"


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


def _needed(account: ServiceAccount | None, *, only_read: bool) -> Sequence[str]:
    if only_read:
        return ("get",)
    # Watches are the composer's.
    return tuple(each for each in _VERBS if account is None or each != "watch")


def _right_missing(
    account: ServiceAccount | None, kind: ServedKind, said: str, verbs: Sequence[str], namespace: str
) -> Verdict:
    if account is None:
        remedy = opt_in(kind.group, kind.plural, verbs)
    else:
        of = "Cluster" if not namespace else ""
        where = f" in the namespace {namespace}" if namespace else ""
        subject = f"{{kind: ServiceAccount, name: {account.name}, namespace: {account.namespace}}}"
        remedy = (
            f"Create a {of}Role{where} with this rule: {_rule(kind.group, kind.plural, verbs)}, and a "
            f"{of}RoleBinding{where} that binds it to this subject: {subject}"
        )
    return Verdict(reasons.RIGHT_MISSING, f"{said.rstrip('.')}. {remedy}")


def _rule(group: str, resource: str, verbs: Sequence[str], name: str = "") -> str:
    quoted = group or '""'
    only = f", resourceNames: [{name}]" if name else ""
    return f"{{apiGroups: [{quoted}], resources: [{resource}]{only}, verbs: [{', '.join(verbs)}]}}"


def _manager(message: str) -> str:
    """That of `conflict with "kubectl" using v1`."""
    return message.removeprefix("conflict with ").replace('"', "")


def _words(kind: ServedKind, error: ApiError, secret: bool) -> str:
    hidden = secret or (kind.group, kind.kind) == ("", "Secret")
    return of_a_secret(error.message) if hidden else error.message
