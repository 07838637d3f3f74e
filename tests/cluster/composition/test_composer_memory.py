"""What tenants put into composites does not end the composer, which would be started and ended again."""

import os

from tests.benchmark.meter import peak_memory, reset_peak_memory
from tests.cluster.composition.authoring import Author, Definition
from tests.cluster.harness import Operator

COMPOSITES = int(os.environ.get("CRDKEEPER_LARGE_COMPOSITES", "200"))
ANNOTATION = "x" * 200_000
"""The API server stores 256 KiB of annotations."""
GROWTH = 64 << 20
"""Bytes. Read as one list, these composites take twice as much."""


async def test_large_annotations(author: Author, composer: Operator, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, deletion="Cascade")
    await author.ready(thing)
    names = [f"a{each:03}" for each in range(COMPOSITES)]
    await author.make_composites(thing, names, annotations={"note": ANNOTATION})
    reset_peak_memory(composer.pid)
    before = peak_memory(composer.pid)
    await author.delete(thing.path)
    await author.gone(thing.path, seconds=120)
    await author.gone(thing.crd)
    grown = peak_memory(composer.pid) - before
    print(f"{before >> 20} MiB, and {grown >> 20} MiB more")
    assert grown < GROWTH
