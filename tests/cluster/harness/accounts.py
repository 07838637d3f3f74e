"""Accounts with exactly the rights that a test grants, such as those in the documentation."""

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness.admin import CLUSTER_ROLES, Admin
from tests.cluster.harness.waiting import eventually

_RBAC = "rbac.authorization.k8s.io"
_ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
_BINDINGS = f"/apis/{_RBAC}/v1/clusterrolebindings"
_TO_ADD = "Add these rules to a ClusterRole of this account:\n"
_DOCS = Path(__file__).parents[3] / "docs"
_EVERYBODYS = "authorization.k8s.io"
"""To review one's own rights: every account may in the cluster of the tests, but not in each cluster."""


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount, whose rights are those of one ClusterRole."""

    admin: Admin
    name: str
    kubeconfig: Path

    async def grant(self, rights: Sequence[Right], *, but: Sequence[Right] = ()) -> None:
        """Let it have exactly these rights, without some; returns when the API server knows."""
        granted = [each for each in rights if each not in but]
        path = f"{CLUSTER_ROLES}/{self.name}"
        role = {**await self.admin.get(path), "rules": [_rule(each) for each in granted]}
        await self.admin.client.request("PUT", path, role)
        async with Client(Connection(self.kubeconfig)) as client:

            async def known() -> bool:
                return await missing_rights(client, rights) == [each for each in rights if each in but]

            await eventually(known, otherwise=lambda: f"{self.name} has not exactly the rights, but {but}")


@asynccontextmanager
async def limited(admin: Admin, name: str) -> AsyncIterator[Account]:
    """An account that may do nothing yet but what everybody may."""
    meta = {"metadata": {"name": name}}
    await admin.client.request("POST", _ACCOUNTS, meta)
    await admin.client.request("POST", CLUSTER_ROLES, {**meta, "rules": []})
    binding = {
        **meta,
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    await admin.client.request("POST", _BINDINGS, binding)
    try:
        yield Account(admin, name, admin.cluster.service_account_kubeconfig("default", name))
    finally:
        for each in (_BINDINGS, CLUSTER_ROLES, _ACCOUNTS):
            await admin.client.send("DELETE", f"{each}/{name}")


def rights_of(rules: Iterable[Mapping[str, Any]]) -> list[Right]:
    """Each right of some rules that not everybody has."""
    found = []
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                plural, _, subresource = resource.partition("/")
                for name in rule.get("resourceNames") or [""]:
                    found += [Right(each, group, plural, subresource, name) for each in rule["verbs"]]
    return [each for each in found if each.group != _EVERYBODYS]


def documented_rights(page: str, comment: str, names: Mapping[str, str]) -> list[Right]:
    """The rights in the YAML of a documentation page that begins with that comment, with other names."""
    text = (_DOCS / page).read_text(encoding="utf-8")
    (block,) = re.findall(rf"```yaml\n# {re.escape(comment)}\n(.*?)```", text, re.DOTALL)
    # At once: a new name may contain an old one.
    either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return rights_of(yaml.safe_load(re.sub(either, lambda found: names[found[0]], block))["rules"])


def rights_to_add(said: str) -> list[Right]:
    """The rights that a command's message says to grant, without the names of the objects."""
    rules = said.partition(_TO_ADD)[2]
    assert rules, said
    return unnamed(rights_of(yaml.safe_load(rules)))


def unnamed(rights: Iterable[Right]) -> list[Right]:
    """Them for objects of any name, sorted: a command may know names that a test does not."""
    return sorted((replace(each, name="") for each in rights), key=str)


def _rule(right: Right) -> dict[str, Any]:
    resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
    rule: dict[str, Any] = {"apiGroups": [right.group], "resources": [resource], "verbs": [right.verb]}
    return {**rule, "resourceNames": [right.name]} if right.name else rule
