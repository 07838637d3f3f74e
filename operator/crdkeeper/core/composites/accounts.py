"""The ServiceAccount by whose rights the objects of a composite are read and written, if there is one.

Only revisions name it. What a composite says, in its spec or its status, chooses at most among revisions.
"""

from collections.abc import Collection
from dataclasses import dataclass

from crdkeeper.core.revisions.content import SeenRevision


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A ServiceAccount."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def account_of(revision: SeenRevision, namespace: str) -> ServiceAccount | None:
    """The account of a composite that runs by this revision; `namespace` is empty if it is in none."""
    if not revision.account:
        return None
    # One that no namespace is known for cannot exist, so nothing is done: better than with other rights.
    return ServiceAccount(namespace or revision.account_namespace, revision.account)


def account_to_delete_by(
    chosen: SeenRevision | None,
    known: Collection[SeenRevision],
    used: str,
    enforced: str,
    namespace: str,
) -> ServiceAccount | None:
    """The account by whose rights a composite's objects are deleted; None for the composer's own.

    `chosen` is the revision by which it would be composed, if there is one. Whoever writes the composite can
    prevent that. Then the revision counts that it was `used` by, says its status, which may be forged: so of
    the `known` ones only those of the `enforced` Composition do. If that is not among them, an account is
    left out only if the composite could have chosen a revision without one.
    """
    if chosen is not None:
        return account_of(chosen, namespace)
    possible = [each for each in known if not enforced or each.composition == enforced]
    for each in possible:
        if each.name == used:
            return account_of(each, namespace)
    if not possible or not all(each.account for each in possible):
        return None
    return account_of(max(possible, key=lambda each: (each.number, each.name)), namespace)
