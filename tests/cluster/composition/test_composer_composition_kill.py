"""kill -9 of the composer at random instants, while Compositions change: no content is lost or doubled."""

import asyncio
import os
import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.cluster.composition.authoring import ACCOUNT, Definition, author_of
from tests.cluster.composition.designing import Designer, settings
from tests.cluster.harness import Operator, eventually
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed

KILLS = int(os.environ.get("CRDKEEPER_KILLS", "12"))


@pytest.mark.timeout(300 + 10 * KILLS)
async def test_kills_at_random_instants(
    plane: Cluster, composer: Operator, start_operator: Callable[..., Operator], group: str
) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS}")
    dice = random.Random(seed)
    composer.stop()
    async with author_of(plane, group) as author:
        definition = Definition(group, "thing")
        designer = Designer(author, definition)
        operator = start_operator(plane, identity="composer", account=ACCOUNT, command=("compose", "run"))
        await author.apply(definition)
        await author.ready(definition)
        names = ("a", "b", "c")
        last = dict.fromkeys(names, "")
        for _ in range(KILLS):
            for _ in range(dice.randrange(1, 6)):
                name, last_engine = dice.choice(names), f"{dice.randrange(3)}"
                last[name] = last_engine
                await designer.put(name, settings(engine=last_engine))
                await asyncio.sleep(dice.uniform(0.0, 0.3))
            operator.wait_ready()
            await asyncio.sleep(dice.uniform(0.0, 0.5))
            operator.kill()
            operator.start(wait=False)
        operator.wait_ready()
        for name in (each for each in names if last[each]):

            async def current(name: str = name) -> bool:
                found = await designer.revisions(name)
                newest = found[-1]["spec"]["resources"][0]["template"]["data"] if found else {}
                return newest == {"engine": last[name]}

            await eventually(current)
            found = await designer.revisions(name)
            contents = [each["spec"]["resources"] for each in found]
            assert all(before != after for before, after in pairwise(contents))
            await designer.ready(name, found[-1]["spec"]["revision"])
        assert "Traceback" not in operator.log_since()
        await designer.clean_up()
        operator.stop()
    composer.start()
