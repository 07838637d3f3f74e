"""Compositions that are made to stop the composer, to fill it, or to deceive whoever reads what it says."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH
from crdkeeper.core.conversion.nesting import dumps
from tests.cluster.composition.authoring import Author, Definition, condition
from tests.cluster.composition.designing import COMPOSITIONS, Designer, settings
from tests.cluster.harness import Operator, eventually


@pytest.fixture
async def designer(author: Author, group: str) -> AsyncIterator[Designer]:
    """A user who writes Compositions, for a definition that is served."""
    definition = Definition(group, "thing")
    await author.apply(definition)
    await author.ready(definition)
    designer = Designer(author, definition)
    yield designer
    await designer.clean_up()


async def test_definitions_do_not_wait_for_compositions(designer: Designer, group: str) -> None:
    # As many expressions as a Composition may have, in three Compositions that change all the time.
    texts = {f"k{number}": "${composite.spec.engine + 'x'}" for number in range(4_900)}

    async def change(which: str) -> None:
        number = 0
        while True:
            number += 1
            await designer.put(which, settings(**texts, number=f"{number}"))
            await asyncio.sleep(0.1)

    async with asyncio.TaskGroup() as tasks:
        changing = [tasks.create_task(change(each)) for each in ("a", "b", "c")]
        await asyncio.sleep(3.0)
        for number in range(3):
            other = Definition(group, f"other{number}")
            await designer.author.apply(other)
            await designer.author.ready(other)
        for each in changing:
            each.cancel()


async def test_a_composition_as_large_as_it_can_be(designer: Designer) -> None:
    size = 1_572_000

    async def stored() -> bool:
        nonlocal size
        size -= 200
        found = await designer.author.client.send(
            "PATCH",
            f"{COMPOSITIONS}/{designer.name('small')}?fieldManager=user&force=true",
            content=dumps(designer.document("small", settings(text="x" * size))),
            content_type=APPLY_PATCH,
        )
        return found.code < 400

    await eventually(stored)
    # There is no room for its status, which is nobody else's trouble.
    await designer.put("other", settings(engine="a"))
    await designer.ready("other")
    await designer.until("small", [1].__eq__)
    await designer.put("small", settings(text="x" * (size - 10_000)))
    await designer.ready("small", 2)


@pytest.mark.parametrize("depth", [100, 3_000])
async def test_templates_of_any_depth(designer: Designer, depth: int) -> None:
    resource = settings()
    resource["template"]["data"] = "DEPTH"
    text = dumps(designer.document("small", resource)).decode()
    deep = text.replace('"DEPTH"', '{"a":' * depth + '"${composite.spec.wrong}"' + "}" * depth)
    path = f"{COMPOSITIONS}/{designer.name('small')}?fieldManager=user"
    answer = await designer.author.client.send("PATCH", path, content=deep.encode(), content_type=APPLY_PATCH)
    assert answer.code < 300, answer.content
    await designer.says("small", "Valid", "False", "Invalid", judged="Failed")
    await designer.put("other", settings(engine="a"))
    await designer.ready("other")


async def test_control_characters_are_shown_not_obeyed(designer: Designer, composer: Operator) -> None:
    since = composer.log_size()
    await designer.put("small", settings(**{"a\x1b[2J\u202e": "${composite.spec['\x1b[2J']}"}))
    found = await designer.says("small", "Valid", "False", "Invalid", "\\x1b[2J", judged="Failed")
    assert condition(found, "Valid")[2].isprintable()
    assert "\x1b" not in composer.log_since(since)
