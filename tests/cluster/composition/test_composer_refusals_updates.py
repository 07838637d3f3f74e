"""Changes that the composer does not apply, and composites that it cannot see: the text, and how it ends."""

import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import (
    ROLES,
    Author,
    Definition,
    Json,
    spec_with,
    until_denied,
)
from tests.cluster.harness.admission import closed_port
from tests.unit.core.composition.documents import SPEC, schema, version

ALLOW = "set spec.breakingChanges to Allow"


@pytest.fixture
async def thing(author: Author, group: str) -> Definition:
    """A definition whose API is served."""
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    return thing


async def works(observer: Observer, thing: Definition) -> None:
    """Waits until the definition is as it should be."""
    await observer.sees(thing, "Ready", "True", "WatchingCompositeResource", judged="Current")


def of(spec: Json) -> list[Json]:
    """One version with this schema of spec."""
    return [version(of=schema(spec))]


def two(*, moved: bool = False, of: Json = None) -> list[Json]:
    """Two versions that are alike; composites are stored in the second one if they have `moved`."""
    return [version("v1", of, referenceable=not moved), version("v2", of, referenceable=moved)]


def with_default() -> Json:
    """A schema of spec that changes what is read of composites which exist."""
    spec = spec_with("size")
    spec["properties"]["size"]["default"] = "small"
    return spec


async def test_a_change_that_hurts_composites(author: Author, observer: Observer, thing: Definition) -> None:
    await author.make_composites(thing, ["a", "b"])
    before = await author.get(thing.crd)
    fewer = {**SPEC, "properties": {**SPEC["properties"], "engine": {"type": "string", "enum": ["Postgres"]}}}
    await author.apply(thing, versions=of(fewer))
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "BreakingChanges",
        "Tried on 2 composites: 2 (default/a, default/b): spec.engine: ",
        "v1 spec.engine: ",
        "(for writers, stored objects). ",
        ALLOW,
        judged="Failed",
    )
    await observer.sees(thing, "Established", "True", "WatchingCompositeResource", judged="Failed")
    assert await author.get(thing.crd) == before

    # It ends when those composites are gone.
    for name in ("a", "b"):
        await author.delete(f"{thing.objects}/{name}")
    await works(observer, thing)


async def test_a_change_that_is_too_large_to_judge(
    author: Author, observer: Observer, thing: Definition
) -> None:
    await author.make_composites(thing, ["a"])
    before = await author.get(thing.crd)
    rules = [{"rule": f"self.engine != '{'x' * 95_000}{number}'"} for number in range(13)]
    await author.apply(thing, versions=of({**SPEC, "x-kubernetes-validations": rules}))
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "NotComparable",
        "the CRD is too large to compare, so what the change does to clients and to 1 composite is not known",
        "Check it, then set spec.breakingChanges to Allow.",
        judged="Failed",
    )
    assert await author.get(thing.crd) == before
    await author.apply(thing)
    await works(observer, thing)


async def test_a_change_whose_effect_is_not_known(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, versions=of({**SPEC, "x-kubernetes-preserve-unknown-fields": True}))
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    contact = {"spec": {"contact": "Jane <jane@example.com>"}}
    await author.client.request("PATCH", f"{thing.objects}/a", contact, content_type=MERGE_PATCH)
    before = await author.get(thing.crd)
    mail = {"contact": {"type": "string", "format": "email"}}
    described = {
        **SPEC,
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {**SPEC["properties"], **mail},
    }
    await author.apply(thing, versions=of(described))
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "NotPredicted",
        "Tried on 1 composite: 1 (default/a): not predicted, or not wholly: whether this is a mail",
        ALLOW,
        judged="Failed",
    )
    assert (await author.get(thing.crd))["spec"] == before["spec"]
    await author.client.request(
        "PATCH", f"{thing.objects}/a", {"spec": {"contact": "jane@example.com"}}, content_type=MERGE_PATCH
    )
    await works(observer, thing)


async def test_composites_that_the_composer_may_not_list(
    author: Author, observer: Observer, thing: Definition, group: str
) -> None:
    await author.make_composites(thing, ["a"])
    role = await author.get(f"{ROLES}/composer-{group}")
    await author.delete(f"{ROLES}/composer-{group}")
    # Else the composer could still list the composites when it looks at the change.
    await until_denied(author, group, thing.plural, "list", "watch")
    rule = f"{{apiGroups: [{group}], resources: [{thing.plural}], verbs: [list, watch]}}"
    missing = "Create a ClusterRole that has the label rbac.crdkeeper.dev/aggregate-to-composer"
    await author.apply(thing, "size")
    await observer.sees(thing, "Established", "False", "RightMissing", missing, rule, judged="Failed")
    before = await author.get(thing.crd)
    await author.apply(thing, versions=of(with_default()))
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "CompositesUnknown",
        "The change may hurt composites: v1 spec.size: ",
        missing,
        rule,
        ALLOW,
        judged="Failed",
    )
    assert await author.get(thing.crd) == before
    await author.put(
        f"{ROLES}/composer-{group}",
        {
            **{key: role[key] for key in ("apiVersion", "kind", "rules")},
            "metadata": {"name": f"composer-{group}", "labels": role["metadata"]["labels"]},
        },
    )
    await works(observer, thing)
    assert (await author.get(thing.crd))["spec"] != before["spec"]


async def test_composites_that_cannot_be_converted(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    sized = schema(spec_with("size"))
    await author.apply(thing, versions=two(of=sized))
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    with closed_port() as port:
        hook = {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": f"https://127.0.0.1:{port}/convert"},
        }
        webhook = {"strategy": "Webhook", "webhook": hook}
        await convert(author, thing, webhook)
        # The composer lists at the new version, in which no composite is stored yet.
        await author.apply(thing, versions=two(moved=True, of=sized), breakingChanges="Allow")
        await observer.sees(
            thing,
            "Established",
            "False",
            "NotListed",
            "the API server cannot list the composites: ",
            f"conversion webhook for {group}/v1, Kind=Thing failed",
            judged="InProgress",
        )
        before = await author.get(thing.crd)
        await author.apply(thing, versions=two(moved=True, of=schema(with_default())))
        await observer.sees(
            thing,
            "Accepted",
            "False",
            "CompositesNotListed",
            "The change may hurt composites: v1 spec.size: ",
            f"conversion webhook for {group}/v1, Kind=Thing failed",
            ALLOW,
            judged="InProgress",
        )
        assert (await author.get(thing.crd))["spec"] == before["spec"]
    await convert(author, thing, {"strategy": "None", "webhook": None})
    await works(observer, thing)
    assert (await author.get(thing.crd))["spec"] != before["spec"]


async def convert(author: Author, thing: Definition, conversion: Json) -> None:
    await author.client.request(
        "PATCH", thing.crd, {"spec": {"conversion": conversion}}, content_type=MERGE_PATCH
    )


async def test_versions_that_go(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, versions=two())
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    before = await author.get(thing.crd)
    await author.apply(thing, versions=[version("v2")])
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "VersionStored",
        "The CRD's status.storedVersions still has v1",
        "Put v1 back into spec.versions, with served: false",
        judged="Failed",
    )
    await author.apply(thing, versions=[version("v1")])
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "VersionInUse",
        "1 composite: v2 is served: set deprecated: true, then served: false, before you remove it",
        ALLOW,
        judged="Failed",
    )
    assert await author.get(thing.crd) == before
    await author.apply(thing, versions=two())
    await works(observer, thing)


async def test_a_version_that_managed_fields_name(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, versions=two())
    await author.ready(thing)
    # Who applies a composite at v1 is remembered with that version.
    await author.make_composites(thing, ["a"])
    going = version("v1", referenceable=False, deprecated=True)
    await author.apply(thing, versions=[going, version("v2")])
    await author.ready(thing)
    # All of them are written again, which does not change who has applied them.
    stored = f"/apis/{group}/v2/namespaces/default/{thing.plural}/a"
    labels = {"metadata": {"labels": {"written": "again"}}}
    await author.client.request("PATCH", stored, labels, content_type=MERGE_PATCH)
    trimmed = {"status": {"storedVersions": ["v2"]}}
    await author.client.request("PATCH", f"{thing.crd}/status", trimmed, content_type=MERGE_PATCH)
    await author.apply(thing, versions=[{**going, "served": False}, version("v2")])
    await author.ready(thing)
    before = await author.get(thing.crd)
    await author.apply(thing, versions=[version("v2")])
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "BreakingChanges",
        "Tried on 1 composite: 1 (default/a): ",
        f"run `crdkeeper migrate {thing.name} --managed-fields retarget --verify full`",
        "or create a StorageMigration with managedFields: Retarget and verify: Full.",
        ALLOW,
        judged="Failed",
    )
    assert await author.get(thing.crd) == before
    await author.delete(stored)
    await works(observer, thing)
