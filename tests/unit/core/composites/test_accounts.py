"""Whose rights count for the objects of a composite."""

from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.core.composites.accounts import ServiceAccount, account_of, account_to_delete_by
from crdkeeper.core.revisions.content import SeenRevision


def revision(name: str, account: str = "", composition: str = "main") -> SeenRevision:
    """A revision, whose number is the end of its name."""
    number = int(name.rpartition("-")[2])
    made = SeenRevision(name, name, "1", composition, "example.com/v1", "Database", number, "", {}, False)
    return replace(made, account=account, account_namespace="platform" if account else "")


def test_the_account_is_in_the_namespace_of_the_composite_if_that_has_one() -> None:
    assert account_of(revision("main-1"), "shop") is None
    assert account_of(revision("main-1", "builder"), "shop") == ServiceAccount("shop", "builder")
    assert account_of(revision("main-1", "builder"), "") == ServiceAccount("platform", "builder")


OPEN, OLD, NEW = revision("main-1"), revision("main-2", "old"), revision("main-3", "new")
OTHER = revision("other-1", "other", "other")


@pytest.mark.parametrize(
    ("chosen", "known", "used", "enforced", "account"),
    [
        (NEW, [OPEN, OLD, NEW], "main-1", "", "new"),
        (OPEN, [OPEN, OLD], "main-2", "", None),
        (None, [OPEN, OLD, NEW], "main-2", "", "old"),
        # Forged: of a Composition that is not the enforced one, or of none.
        (None, [OLD, NEW, revision("free-9", "", "free")], "free-9", "main", "new"),
        (None, [OLD, NEW, OTHER], "nothing", "", "new"),
        (None, [OLD, NEW], "", "", "new"),
        # It could have chosen a revision without an account.
        (None, [OPEN, OLD, NEW], "nothing", "", None),
        (None, [], "main-1", "", None),
        (None, [OTHER], "other-1", "main", None),
    ],
)
def test_who_deletes(
    chosen: SeenRevision | None, known: Any, used: str, enforced: str, account: str | None
) -> None:
    found = account_to_delete_by(chosen, known, used, enforced, "shop")
    assert found == (None if account is None else ServiceAccount("shop", account))
