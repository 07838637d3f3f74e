"""How often CRDs and policies are compared when there are many of both: counted, not timed."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.definitionpolicy.controller import DefinitionPolicies
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.policy import selection
from crdkeeper.core.policy.globs import matches_any
from tests import virtualtime
from tests.unit.builders import migration, policy
from tests.unit.controllers.fakeapi import FakeApi
from tests.unit.core.diagnosis.builders import seen

NUMBER = 50
"""Of CRDs, and of policies."""
FINALIZERS = [{"name": "example.com/gone", "releaseAfter": "60s"}]


class Comparisons:
    """Counts comparisons of CRDs with policies."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        self._compare = matches_any
        monkeypatch.setattr(selection, "matches_any", self._counted)

    def _counted(self, globs: Sequence[str], group: str) -> bool:
        self.number += 1
        return self._compare(globs, group)

    async def of_what_follows(self) -> int:
        """How many there were since the last call, once there is nothing more to do."""
        await asyncio.sleep(10.0)
        found, self.number = self.number, 0
        return found


@pytest.mark.parametrize("first", ["CRDs", "policies"])
def test_a_change_is_not_compared_with_all_pairs(monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    comparisons = Comparisons(monkeypatch)

    async def main() -> None:
        state = ClusterState()
        controller = DefinitionPolicies(
            cast(Client, FakeApi()),
            state,
            OperatorMetrics(),
            identity="me",
            namespace="crdkeeper-system",
            webhook=WebhookAddress(),
        )
        queues = [asyncio.create_task(each.run()) for each in (controller.definitions, controller.policies)]

        def see_definitions() -> None:
            for number in range(NUMBER):
                one = seen(stored=("v2",), group=f"team-{number}.example.com")
                state.saw_definition(one.definition.name, one)

        def see_policies(number: int = NUMBER, **fields: Any) -> None:
            for each in range(number):
                groups = [f"team-{each}.*"] if each else ["*"]
                made = policy(f"p{each}", created=each, groups=groups, finalizers=FINALIZERS, **fields)
                state.saw(DefinitionPolicy, f"p{each}", made)

        order: list[Callable[[], None]] = [see_definitions, see_policies]
        for see in order if first == "CRDs" else reversed(order):
            see()
        pairs = NUMBER * NUMBER
        assert pairs <= await comparisons.of_what_follows() < 2 * pairs

        # A status that was written.
        see_policies()
        assert await comparisons.of_what_follows() == 0
        # The policy that governs all CRDs.
        see_policies(1, changes="Warn")
        assert NUMBER <= await comparisons.of_what_follows() <= 4 * NUMBER
        # A CRD that changes, and its migration.
        name = "widgets.team-7.example.com"
        state.saw_definition(name, state.seen[name])
        assert NUMBER <= await comparisons.of_what_follows() <= 4 * NUMBER
        state.saw_migration("one", migration("one"))
        assert await comparisons.of_what_follows() <= 4
        for each in queues:
            each.cancel()

    virtualtime.run(main())
