"""What the worker for changes of CRDs does with too many, and with policies that are too large."""

import asyncio
import json

import pytest

from crdkeeper.webhook.changes.worker import ChangeWorker, Crowded, Unable
from tests.unit.core.changes.builders import definition, deletion, policy
from tests.unit.webhook.changes.workerscene import CHANGE, LONG, POLICIES, run


def largest(number: int) -> bytes:
    """As many policies as that, with selectors as large as the API server accepts them."""
    values = [f"{value:063}" for value in range(64)]
    several = [{"key": f"{key:063}", "operator": "NotIn", "values": values} for key in range(64)]
    made = policy("Allow", protection={"deletion": "Deny"}, selector={"matchExpressions": several})
    return json.dumps([made.to_object()] * number).encode()


def test_policies_that_are_too_large_are_told_of() -> None:
    """They would protect nothing, without a word, and each request would find a worker that has just died."""

    async def play(worker: ChangeWorker) -> None:
        body, many = deletion(definition()), largest(150)
        for _ in range(2):
            with pytest.raises(Unable, match="more memory"):
                await worker.examine(body, many, LONG)
        # What was known before makes room.
        for number in (50, 51, 50):
            said = await worker.examine(body, largest(number), LONG)
            assert not said["response"]["allowed"]

    run(play)


def test_what_is_cancelled_at_once_waits_no_more() -> None:
    async def play(worker: ChangeWorker) -> None:
        for _ in range(20):
            asking = asyncio.create_task(worker.examine(CHANGE, POLICIES, LONG))
            await asyncio.sleep(0)
            assert worker._waiting == 1
            # Its talk has not begun.
            await worker.close()
            with pytest.raises(Crowded):
                await asking
        assert worker._waiting == 0

    run(play)
