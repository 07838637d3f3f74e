"""Deletions of which Kopf has not told, in virtual time."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import kopf
import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.controllers.misseddeletions import find_missed_deletions
from crdkeeper.controllers.registry import CONTROLLERS
from crdkeeper.controllers.state import ClusterState
from crdkeeper.handlers import register
from tests import virtualtime
from tests.unit.builders import NAME, crd, policy
from tests.unit.cluster.transport.localserver import kubeconfig

POLICIES = "definitionpolicies"
CRDS = "customresourcedefinitions"


class Lists:
    """An API server that lists names, a page at a time."""

    def __init__(self) -> None:
        self.names: dict[str, list[str]] = {CRDS: [NAME], POLICIES: ["p", "q"]}
        self.meanwhile: Callable[[], None] = lambda: None
        """Called before a page of policies is answered."""
        self.trouble: Exception | None = None
        """The answer to lists of CRDs."""

    async def request(self, method: str, path: str, *, accept: str) -> dict[str, Any]:
        assert method == "GET"
        assert "PartialObjectMetadataList" in accept
        collection, _, query = path.partition("?")
        plural = collection.rpartition("/")[2]
        if plural == POLICIES:
            self.meanwhile()
        elif self.trouble is not None:
            raise self.trouble
        left = self.names[plural]
        token = query.partition("continue=")[2]
        shown, more = left[int(token or 0) :][:1], int(token or 0) + 1
        metadata = {"continue": str(more)} if more < len(left) else {}
        return {"metadata": metadata, "items": [{"metadata": {"name": each}} for each in shown] or None}


class Operator:
    """What Kopf's events have made known, and the comparisons."""

    def __init__(self, path: Path) -> None:
        async def end() -> None:
            pass

        self.registry = kopf.OperatorRegistry()
        self.state, self.api = ClusterState(), Lists()
        connection = Connection(kubeconfig(path, "https://127.0.0.1:1"))
        self.shown = register(self.registry, connection, self.state, CONTROLLERS, on_exit=end)

    async def event(self, plural: str, type_: str | None, made: dict[str, Any]) -> None:
        """Kopf tells of an object."""
        handlers = self.registry._watching.get_all_handlers()
        (found,) = [each for each in handlers if each.selector and each.selector.any_name == plural]
        await cast(Any, found.fn)(event={"type": type_, "object": made}, name=made["metadata"]["name"])

    async def definition(self) -> None:
        made = crd()
        made["metadata"]["resourceVersion"] = "3"
        await self.event(CRDS, None, made)

    async def policy(self, type_: str | None, name: str, uid: str = "u1", version: int = 5) -> None:
        made = policy(name).to_object()
        made["metadata"] |= {"uid": uid, "resourceVersion": str(version)}
        await self.event(POLICIES, type_, made)

    @property
    def policies(self) -> list[str]:
        return sorted(self.state.of(DefinitionPolicy))

    async def compare(self) -> None:
        """One comparison."""
        comparing = asyncio.create_task(find_missed_deletions(cast(Client, self.api), self.shown))
        await asyncio.sleep(301.0)
        comparing.cancel()
        await asyncio.gather(comparing, return_exceptions=True)


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def test_what_went_while_nobody_watched_is_gone(operator: Operator) -> None:
    async def main() -> None:
        heard: list[tuple[str, str]] = []
        operator.state.listen(lambda kind, name: heard.append((kind, name)))
        await operator.definition()
        await operator.policy(None, "p")
        await operator.policy(None, "q")
        heard.clear()
        await operator.compare()
        assert heard == []
        operator.api.names = {CRDS: [], POLICIES: ["q"]}
        await operator.compare()
        assert sorted(heard) == [("definitionpolicies", "p"), ("definitions", NAME)]
        assert (operator.policies, operator.state.seen, operator.state.definitions) == (["q"], {}, {})
        # It is known again once it exists again, also if the revisions of etcd began anew.
        await operator.policy("ADDED", "p", uid="u2", version=2)
        assert operator.policies == ["p", "q"]
        await operator.compare()
        assert operator.policies == ["q"]

    virtualtime.run(main())


@pytest.mark.parametrize("change", ["created", "created anew", "changed"])
def test_what_changes_while_the_list_is_read_is_left_to_the_watch(operator: Operator, change: str) -> None:
    async def main() -> None:
        name = "new" if change == "created" else "p"
        await operator.policy(None, "p")
        await operator.policy(None, "q")
        uid = "u1" if change == "changed" else "u2"
        operator.api.names[POLICIES] = ["q"] if name == "p" else ["p", "q"]
        tasks = []
        operator.api.meanwhile = lambda: tasks.append(
            asyncio.ensure_future(operator.policy("ADDED", name, uid=uid, version=9))
        )
        await operator.compare()
        assert tasks
        assert operator.policies == sorted({"p", "q", name})

    virtualtime.run(main())


def test_late_news_of_what_was_found_to_be_gone_change_nothing(operator: Operator) -> None:
    async def main() -> None:
        await operator.policy(None, "p")
        operator.api.names[POLICIES] = []
        await operator.compare()
        assert operator.policies == []
        await operator.policy("DELETED", "p", version=8)
        assert operator.policies == []

    virtualtime.run(main())


@pytest.mark.parametrize("trouble", [Unreachable("reset"), ApiError(410, {}), ApiError(503, {})], ids=repr)
def test_a_list_that_fails_proves_nothing_and_does_not_stop_the_others(
    operator: Operator, trouble: Exception
) -> None:
    async def main() -> None:
        await operator.definition()
        await operator.policy(None, "p")
        operator.api.trouble, operator.api.names = trouble, {CRDS: [], POLICIES: []}
        await operator.compare()
        assert (operator.policies, list(operator.state.seen)) == ([], [NAME])
        operator.api.trouble = None
        await operator.compare()
        assert operator.state.seen == {}

    virtualtime.run(main())
