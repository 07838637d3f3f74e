"""What a new process says of changes until it has looked: what the one before has found out."""

import asyncio
from typing import Literal

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import find_condition, set_condition
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.policy.changes import CHANGES_JUDGED, changes_judged
from tests.unit.builders import NOW, policy
from tests.unit.controllers.definitionpolicy.test_controller import EVENTS, STATUS, play
from tests.unit.controllers.fakeapi import FakeApi


def judged(trouble: str = "", *, of: int = 2) -> DefinitionPolicy:
    """A policy whose changes were judged at that generation, unless there was trouble."""
    made = policy(changes="Deny")
    made.metadata.generation = 2
    said = changes_judged(made, trouble)
    assert said is not None
    set_condition(made.status.conditions, CHANGES_JUDGED, *said, generation=of, now=NOW)
    return made


@pytest.mark.parametrize(
    ("before", "status"),
    [(judged(), "True"), (judged(of=1), "False"), (judged("nobody answers"), "False")],
    ids=["judged", "another generation", "not judged"],
)
def test_what_was_judged_counts_as_judged(before: DefinitionPolicy, status: Literal["True", "False"]) -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        state.saw(DefinitionPolicy, "p", before)
        await asyncio.sleep(60.0)
        written = DefinitionPolicy.model_validate({**before.to_object(), **api.written[STATUS]}).status
        for type_ in (CHANGES_JUDGED, "Ready"):
            found = find_condition(written.conditions, type_)
            assert found is not None and found.status == status
        stalled = find_condition(written.conditions, "Stalled")
        assert (stalled is not None and stalled.status == "True") == (status == "False")
        warnings = [
            each
            for path, each in api.objects.items()
            if path.startswith(EVENTS) and each["type"] == "Warning"
        ]
        assert bool(warnings) == (status == "False")

    play(people, stored=("v2",))
