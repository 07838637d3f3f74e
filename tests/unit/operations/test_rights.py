"""Which rights are said to be missing."""

import asyncio
from typing import Any, cast

import pytest

from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.operations.rights import (
    DEFINITIONS,
    NotPermitted,
    check_rights,
    explain,
    explained,
    rights_to_read,
)

TRIM = Right("patch", *DEFINITIONS, "status", "dbs.example.com")
RULE = [
    '- apiGroups: ["apiextensions.k8s.io"]',
    '  resources: ["customresourcedefinitions/status"]',
    '  resourceNames: ["dbs.example.com"]',
    '  verbs: ["patch"]',
]


class Reviewer:
    """An API server that allows nothing, or refuses to say what it allows."""

    def __init__(self, refusal: ApiError | None = None) -> None:
        self._refusal = refusal

    async def request(self, *_: Any) -> dict[str, Any]:
        if self._refusal is not None:
            raise self._refusal
        return {"status": {"allowed": False}}


def told(reviewer: Reviewer, *needed: Right) -> NotPermitted:
    with pytest.raises(NotPermitted) as caught:
        asyncio.run(check_rights(cast(Client, reviewer), needed))
    return caught.value


def test_verbs_on_the_same_are_one_rule() -> None:
    found = told(Reviewer(), Right("get", "", "pods"), TRIM, Right("list", "", "pods"))
    rule = ['- apiGroups: [""]', '  resources: ["pods"]', '  verbs: ["get", "list"]']
    assert found.rules == [*rule, *RULE]


def test_the_right_to_ask_is_a_right() -> None:
    words = (
        'selfsubjectaccessreviews is forbidden: User "me" cannot create resource "selfsubjectaccessreviews"'
    )
    found = told(Reviewer(ApiError(403, {"message": words})), TRIM)
    assert found.missing == "not permitted: create selfsubjectaccessreviews.authorization.k8s.io"


def test_only_the_answer_of_rbac_is_explained_by_rights() -> None:
    denied = ApiError(403, {"message": 'admission webhook "a.example.com" denied the request: no'})
    asyncio.run(explain(cast(Client, Reviewer()), denied, [TRIM]))
    refused = ApiError(403, {"message": 'dbs is forbidden: User "me" cannot patch resource "dbs/status"'})
    with pytest.raises(NotPermitted):
        asyncio.run(explain(cast(Client, Reviewer()), refused, [TRIM]))


@pytest.mark.parametrize("refused", [True, False])
async def test_what_a_block_may_not_do_is_explained_by_its_rights(refused: bool) -> None:
    words = 'crds is forbidden: User "me" cannot list resource "crds"' if refused else "not found"
    wanted = [Right("list", *DEFINITIONS)]
    with pytest.raises(NotPermitted if refused else ApiError):
        async with explained(cast(Client, Reviewer()), wanted):
            raise ApiError(403 if refused else 404, {"message": words})


def test_who_names_crds_need_not_list_them() -> None:
    names = ["dbs.example.com", "tables.example.com"]
    assert rights_to_read(names) == [Right("get", *DEFINITIONS, name=each) for each in names]
    assert rights_to_read([]) == [Right("list", *DEFINITIONS)]
