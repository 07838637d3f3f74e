"""Whether composites find a Composition, as the composer says while Compositions come and go."""

from collections.abc import AsyncIterator
from itertools import count

import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH
from crdkeeper.core.conversion.nesting import dumps
from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import Author, Definition, spec_with
from tests.cluster.composition.composing import Composing, all_of, composing_of, config_map, rights_on
from tests.cluster.harness import eventually
from tests.unit.core.composition.documents import schema, version

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


async def test_composites_whose_status_is_refused_are_spoken_for(
    author: Author, observer: Observer, group: str
) -> None:
    async with (
        rights_on(author, f"more-{group}", all_of(group), all_of("", "configmaps")),
        composing_of(author, group) as composing,
    ):
        thing = composing.definition
        status = {"type": "object", "properties": {"must": {"type": "string"}}}
        strict = schema(spec_with("zone"), {**status, "required": ["must"]})
        await author.apply(thing, versions=[version(of=strict)])
        await author.ready(thing)
        await composing.compose(config_map("settings"))
        await composing.create("orders")
        said = ("Composites such as default/orders cannot be composed: ", "status.must")
        await observer.sees(thing, "Offered", "False", "CompositesNotComposed", *said, judged="Current")
        await author.apply(thing, versions=[version(of=schema(spec_with("zone"), status))])
        await composing.ready("orders")
        await observer.sees(thing, "Offered", "True", "OnlyOne", judged="Current")
        # What concerns one composite only does not make the API look broken for all.
        told = "!has(self.status) || !has(self.status.conditions)"
        rule = {"rule": f"{told} || !has(self.spec.zone) || self.spec.zone != 'bad'", "message": "a bad zone"}
        of = schema(spec_with("zone"), status, **{"x-kubernetes-validations": [rule]})
        await author.apply(thing, versions=[version(of=of)], breakingChanges="Allow")
        await author.ready(thing)

        async def in_force() -> bool:
            path, bad = f"{composing.path('orders')}?dryRun=All", dumps({"spec": {"zone": "bad"}})
            answer = await author.client.send("PATCH", path, content=bad, content_type=MERGE_PATCH)
            return answer.code == 422

        # Else the status of the next one could still be taken.
        await eventually(in_force)
        await composing.create("users", zone="bad")
        some = (
            "New composites use the Composition",
            "such as default/users, cannot be composed",
            "a bad zone",
        )
        await observer.sees(thing, "Offered", "True", "SomeNotComposed", *some, judged="Current")
        await composing.create("users", zone="good")
        await composing.ready("users")
        await observer.sees(thing, "Offered", "True", "OnlyOne", judged="Current")


async def test_a_right_that_goes_after_the_composition_is_said(
    author: Author, observer: Observer, group: str
) -> None:
    composing = Composing(author, group)
    thing = composing.definition
    async with rights_on(author, f"objects-{group}", all_of("", "configmaps")):
        async with rights_on(author, f"more-{group}", all_of(group)):
            await composing.define()
            await composing.compose(config_map("settings"))
            await composing.create("orders")
            await composing.ready("orders")
            await composing.designer.delete("main")
            await observer.sees(thing, "Offered", "False", "NoComposition", judged="Current")
        # Its revision stays, because the composite runs by it.
        numbers = count()

        async def denied() -> bool:
            labels = {"number": str(next(numbers))}
            await composing.patch(composing.path("orders"), {"metadata": {"labels": labels}})
            said = (await author.get(thing.path))["status"]["conditions"]
            return any(each["reason"] == "RightMissing" for each in said)

        await eventually(denied)
        rule = "resources: [things, things/status], verbs: [get, list, watch, patch]"
        await observer.sees(thing, "Offered", "False", "RightMissing", rule, judged="Current")
        async with rights_on(author, f"more-{group}", all_of(group)):
            await observer.sees(thing, "Offered", "False", "NoComposition", judged="Current")
            await composing.clean_up()
