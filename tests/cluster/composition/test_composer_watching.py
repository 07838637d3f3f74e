"""What the composer notices by itself: composites that come and go, rights, and what was before a restart."""

from typing import Any

from crdkeeper.cluster.transport.client import Client
from tests.cluster.composition.composerscene import (
    CRDS,
    NAME,
    OBJECTS,
    PATH,
    ROLES,
    apply,
    conditions,
    database,
    delete,
    get,
    gone,
    grant,
    has,
    may_not,
    ready,
    until,
)
from tests.cluster.harness import Operator, eventually
from tests.kstatus import status_of
from tests.unit.core.composition.documents import document

Json = Any


async def versions(client: Client) -> tuple[str, str]:
    """The resourceVersions of the definition and of its CRD."""
    found, crd = await get(client, f"{PATH}/{NAME}"), await get(client, f"{CRDS}/{NAME}")
    return found["metadata"]["resourceVersion"], crd["metadata"]["resourceVersion"]


async def test_composites_are_counted_as_they_come_and_go(client: Client, rights: None) -> None:
    await apply(client, document())
    await ready(client, "True", "WatchingCompositeResource")
    for number in range(7):
        await client.request("POST", OBJECTS, database(f"a-{number}"))
    await until(client, lambda found: found["status"]["composites"] == 7)
    await client.request("DELETE", f"{OBJECTS}/a-6")
    await until(client, lambda found: found["status"]["composites"] == 6)

    await client.request("DELETE", f"{PATH}/{NAME}")
    some = "6 composites (default/a-0, default/a-1, default/a-2, default/a-3, default/a-4 and 1 more)"
    await until(client, lambda found: some in conditions(found)["Established"]["message"])
    found = await ready(client, "False", "TerminatingCompositeResource")
    assert status_of(found) == "Terminating"
    for number in range(6):
        await client.request("DELETE", f"{OBJECTS}/a-{number}")
    await gone(client, f"{PATH}/{NAME}")
    await gone(client, f"{CRDS}/{NAME}")


async def test_rights_that_come_and_go(client: Client) -> None:
    # Those of the tests before go some time after their roles.
    await may_not(client, "list", "watch")
    await apply(client, document())
    found = await ready(client, "False", "RightMissing")
    said = conditions(found)["Established"]["message"]
    assert "{apiGroups: [platform.example.com], resources: [databases], verbs: [list, watch]}" in said
    await grant(client, "composer-lists", ["list"])

    def can_only_list(found: Json) -> bool:
        return "lacks rights on the composites (watch databases" in conditions(found)["Ready"]["message"]

    await until(client, can_only_list)
    await grant(client, "composer-watches", ["watch"])
    await ready(client, "True", "WatchingCompositeResource")
    for name in ("composer-lists", "composer-watches"):
        await client.request("DELETE", f"{ROLES}/{name}")
    # Else the composer could count the composites for a moment, and there are none.
    await may_not(client, "list", "watch")
    await client.request("DELETE", f"{PATH}/{NAME}")
    await has(client, "Established", "False", "TerminatingCompositeResource")
    await grant(client, "composer-lists", ["list", "watch"])
    await gone(client, f"{PATH}/{NAME}")
    await client.request("DELETE", f"{ROLES}/composer-lists")


async def test_a_restart_writes_nothing(client: Client, rights: None, composer: Operator) -> None:
    await apply(client, document())
    await ready(client, "True", "WatchingCompositeResource")
    await client.request("POST", OBJECTS, database("a"))
    await until(client, lambda found: found["status"]["composites"] == 1)
    composer.stop()
    before = await versions(client)
    composer.start()

    async def counted() -> bool:
        conditions = "crdkeeper_composite_definition_conditions"
        ready = composer.metric(conditions, condition="Ready", status="True")
        return (composer.metric("crdkeeper_composites", definition=NAME), ready) == (1, 1)

    await eventually(counted)
    assert composer.metric("crdkeeper_composer_writes_total") == 0
    assert await versions(client) == before
    await client.request("DELETE", f"{OBJECTS}/a")
    await delete(client, f"{PATH}/{NAME}")
