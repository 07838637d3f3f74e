"""The examples in a cluster: their definitions are established, and their Compositions get a revision."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.composition.authoring import author_of, condition
from tests.cluster.composition.composerscene import PATH, ready
from tests.cluster.composition.designing import COMPOSITIONS, REVISIONS
from tests.cluster.harness import Operator, eventually
from tests.controlplane.cluster import Cluster
from tests.kstatus import status_of

Json = Any
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/"))


def _read(path: Path) -> Json:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)
async def test_an_example_is_taken(composer: Operator, plane: Cluster, example: Path) -> None:
    definition, composition = (_read(example / f"{each}.yaml") for each in ("definition", "composition"))
    name = composition["metadata"]["name"]
    last: list[Json] = []
    async with author_of(plane, definition["spec"]["group"]) as author:

        async def current() -> bool:
            last[:] = [await author.get(f"{COMPOSITIONS}/{name}")]
            return condition(last[0], "Ready")[:2] == ("True", "Current") and status_of(last[0]) == "Current"

        # As kubectl apply takes them from a folder: the Composition comes first.
        await author.put(f"{COMPOSITIONS}/{name}", composition)
        await author.put(f"{PATH}/{definition['metadata']['name']}", definition)
        try:
            await eventually(current, otherwise=lambda: f"{last[0]['status']}")
            assert await author.get(f"{REVISIONS}/{name}-1") is not None
            await ready(author.client, "True", "WatchingCompositeResource", definition["metadata"]["name"])
        finally:
            for each in (f"{COMPOSITIONS}/{name}", f"{REVISIONS}/{name}-1"):
                await author.delete(each)
