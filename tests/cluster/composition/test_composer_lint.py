"""What `crdkeeper lint` says about a definition, as its condition shows it."""

from typing import Any

from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import Author, Definition, spec_with
from tests.unit.core.composition.documents import schema, version

Json = Any
POINTLESS = {"type": "string", "minimum": 1}
SAID = "v1:.spec.a: minimum has no effect on type string [keyword-type]. "


def pointless(*names: str) -> list[Json]:
    """A version with such fields besides."""
    spec = spec_with()
    fields = {**spec["properties"], **dict.fromkeys(names, POINTLESS)}
    return [version(of=schema({**spec, "properties": fields}))]


async def test_a_warning_that_is_ignored_or_mended(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, versions=pointless("a"))
    await observer.sees(thing, "Accepted", "True", "AcceptedWithWarnings", SAID, judged="Current")
    await observer.sees(thing, "Ready", "True", "WatchingCompositeResource", judged="Current")
    live = await author.get(thing.crd)
    fields = live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert fields["a"] == POINTLESS

    ignored = {"annotations": {"lint.crdkeeper.dev/ignore": "keyword-type .spec.*: for our forms"}}
    document = thing.document(versions=pointless("a"))
    document["spec"]["metadata"] = ignored
    await author.put(thing.path, document)
    said = "The CRD is as the definition says."
    await observer.sees(thing, "Accepted", "True", "Accepted", said, judged="Current")
    assert (await author.get(thing.crd))["metadata"]["annotations"].items() >= ignored["annotations"].items()

    await author.apply(thing, versions=pointless("a", "b", "c"))
    more = "And 2 more warnings: `crdkeeper lint` lists them."
    await observer.sees(thing, "Accepted", "True", "AcceptedWithWarnings", SAID, more, judged="Current")
    # Fields without a description are only info.
    await author.apply(thing, "a")
    await observer.sees(thing, "Accepted", "True", "Accepted", said, judged="Current")


async def test_two_thousand_fields_with_warnings(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, versions=pointless(*(f"field{number}" for number in range(2_000))))
    message = await observer.sees(
        thing,
        "Accepted",
        "True",
        "AcceptedWithWarnings",
        "And 1,999 more warnings",
        judged="Current",
        seconds=120,
    )
    assert len(message) < 1_000
