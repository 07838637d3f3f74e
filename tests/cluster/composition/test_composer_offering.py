"""Whether composites find a Composition, as the composer says while Compositions come and go."""

from collections.abc import AsyncIterator

import pytest

from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import Author, Definition
from tests.cluster.composition.composing import all_of, rights_on

COMPOSITIONS = "/apis/crdkeeper.dev/v1alpha1/compositions"


@pytest.fixture
async def offers(author: Author, group: str) -> AsyncIterator[None]:
    """Compositions may come, and are gone at the end."""
    async with rights_on(author, f"more-{group}", all_of(group)):
        yield
    for name in ("small", "medium", "large", "forced"):
        await author.delete(f"{COMPOSITIONS}/{name}")


async def offer(author: Author, thing: Definition, name: str, kind: str = "", of: str = "a") -> None:
    """Apply a Composition for the definition's composites, or for those of another kind."""
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": of}}
    value = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {
            "compositeTypeRef": {"apiVersion": f"{thing.group}/v1", "kind": kind or thing.kind},
            "resources": [{"name": "settings", "template": template}],
        },
    }
    await author.put(f"{COMPOSITIONS}/{name}", value)


async def test_a_definition_is_offered_while_a_composition_can_be_used(
    author: Author, observer: Observer, offers: None, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    # In every case the API works: a composite can be created before there is a Composition.
    said = f"create one whose spec.compositeTypeRef is {{apiVersion: {group}/v1, kind: {thing.kind}}}."
    await observer.sees(thing, "Offered", "False", "NoComposition", said, judged="Current")
    await offer(author, thing, "small", of="${composite.wrong}")
    said = f"of the Compositions for {thing.kind} of {group}: small. See their conditions Valid and Ready."
    await observer.sees(thing, "Offered", "False", "CompositionUnusable", said, judged="Current")
    await offer(author, thing, "small")
    said = "New composites use the Composition small, the only one."
    await observer.sees(thing, "Offered", "True", "OnlyOne", said, judged="Current")
    await offer(author, thing, "medium")
    said = "Composites choose among the Compositions medium, small. spec.defaultCompositionRef would name one"
    await observer.sees(thing, "Offered", "True", "SeveralCompositions", said, judged="Current")

    await author.apply(thing, defaultCompositionRef={"name": "large"})
    said = "spec.defaultCompositionRef names the Composition large, which does not exist."
    await observer.sees(thing, "Offered", "False", "CompositionMissing", said, judged="Current")
    await offer(author, thing, "large", "Other")
    said = f"names the Composition large, which is for Other of {group}, not {thing.kind} of {group}."
    await observer.sees(thing, "Offered", "False", "CompositionMismatch", said, judged="Current")
    await author.delete(f"{COMPOSITIONS}/large")
    await offer(author, thing, "large")
    said = "New composites use the Composition large, which spec.defaultCompositionRef names."
    await observer.sees(thing, "Offered", "True", "Default", said, judged="Current")

    forced = Definition(group, "forced")
    await offer(author, forced, "forced")
    await author.apply(forced, enforcedCompositionRef={"name": "forced"})
    await author.ready(forced)
    said = "New composites use the Composition forced, which spec.enforcedCompositionRef names."
    await observer.sees(forced, "Offered", "True", "Enforced", said, judged="Current")
