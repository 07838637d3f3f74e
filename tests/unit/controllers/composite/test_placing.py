"""Where objects of composites are known to be, without a list for each of them."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.controllers.composite.placing import Place, Placed, Version, Whereabouts
from crdkeeper.controllers.composite.room import ObjectMemory
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.accounts import ServiceAccount
from crdkeeper.core.composites.inventory import KindKey
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL, OUTLIVES, Composite
from crdkeeper.core.templates.namespaces import Identity
from tests import virtualtime

CORE = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["patch"]}]}
MAPS = "/api/v1/namespaces/shop/configmaps"
KIND = ("v1", "ConfigMap")
MAP = ServedKind("v1", "ConfigMap", "configmaps", True)
OF: Any = {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "uid": "u1", "namespace": "shop"}}


def config_map(name: str, label: str = "u1", controller: str = "u1", space: str = "shop") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": space,
            "uid": name,
            "resourceVersion": "1",
            "labels": {COMPOSITE_LABEL: label},
            "ownerReferences": [{"uid": controller, "controller": True}],
        },
    }


class Watches:
    """What watches have shown: ConfigMaps, or nothing."""

    def __init__(self, *objects: Mapping[str, Any], known: bool = True) -> None:
        self._placed = Placed() if known else None
        for each in objects:
            self.wrote("", "ConfigMap", each)

    def placed(self, group: str, kind: str) -> Placed | None:
        return self._placed if (group, kind) == ("", "ConfigMap") else None

    def plain(self, group: str, kind: str, uid: str, place: Place) -> Version | None:
        return self._placed.plain(uid, place) if self._placed is not None else None

    def kinds_of(self, uid: str, namespace: str) -> Collection[KindKey]:
        return [KIND] if self._placed is not None and self._placed.has(uid, namespace) else []

    def wrote(self, group: str, kind: str, live: Mapping[str, Any]) -> None:
        if self._placed is not None:
            self._placed.take(live)


class Server:
    """Has ConfigMaps, which it reads by name, or lists slowly; answers with `error` if there is one."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.objects = {f"{MAPS}/{each['metadata']['name']}": each for each in objects}
        self.error: ApiError | None = None
        self.asked: list[str] = []

    async def request(self, _: str, path: str, **__: Any) -> Any:
        if path == "/api/v1":
            return CORE
        parts = urlsplit(path)
        self.asked.append(parts.path)
        if parts.query:
            await asyncio.sleep(1.0)
        if self.error is not None:
            raise self.error
        if parts.query:
            (selector,) = parse_qs(parts.query)["labelSelector"]
            wanted = selector.partition("=")[2]
            items = [
                each
                for each in self.objects.values()
                if wanted in ("", each["metadata"]["labels"][COMPOSITE_LABEL])
            ]
            return {"metadata": {"resourceVersion": "1"}, "items": items}
        if parts.path not in self.objects:
            raise ApiError(404, {"reason": "NotFound"})
        return self.objects[parts.path]


def gathering(server: Server, where: Whereabouts | None) -> Gathering:
    client = cast(Client, server)
    share, rights = ObjectMemory().share("tenant"), KnownRights(client)
    return Gathering(client, KindPaths(client, tuple), Composite.of(OF), {}, share, rights, where)


def names(of: Gathering) -> list[str]:
    return sorted(each.name for each in of.found.objects)


async def test_objects_that_the_watches_show_are_read_without_a_list() -> None:
    server = Server(config_map("mine"), config_map("lost", controller="u2"))
    # One has gone since, one is another's by now, and one is where the composite is not.
    shown = [config_map(each) for each in ("mine", "lost", "gone")]
    found = gathering(server, Whereabouts(Watches(*shown, config_map("mine", space="other"))))
    await found.read([KIND])
    assert names(found) == ["mine"]
    assert not found.found.strangers
    assert sorted(server.asked) == [f"{MAPS}/gone", f"{MAPS}/lost", f"{MAPS}/mine"]


async def test_what_only_has_the_label_is_not_even_read() -> None:
    server = Server()
    forged = [config_map(f"forged-{each}", controller="somebody") for each in range(1_000)]
    found = gathering(server, Whereabouts(Watches(*forged)))
    await found.read([KIND])
    assert server.asked == []
    assert not found.found.unreadable


async def test_many_objects_are_listed_rather_than_read_one_by_one() -> None:
    many = [config_map(f"a-{each}") for each in range(101)]
    server = Server(*many)
    found = gathering(server, Whereabouts(Watches(*many)))
    await found.read([KIND])
    assert len(names(found)) == 101
    assert server.asked == [MAPS]


async def test_objects_forged_in_another_namespace_change_nothing() -> None:
    forged = [config_map(f"forged-{each}", space="evil") for each in range(101)]
    server = Server(config_map("mine"))
    found = gathering(server, Whereabouts(Watches(config_map("mine"), *forged)))
    await found.read([KIND])
    assert names(found) == ["mine"]
    assert server.asked == [f"{MAPS}/mine"]
    server = Server()
    found = gathering(server, Whereabouts(Watches(*forged)))
    await found.read([], any_version=True)
    assert found._kinds == {}
    assert server.asked == []


async def test_a_kind_that_no_revision_has_is_searched_where_it_is_known() -> None:
    server = Server(config_map("mine"))
    found = gathering(server, Whereabouts(Watches(config_map("mine"))))
    await found.read([], any_version=True, named=True)
    assert names(found) == ["mine"]
    server = Server(config_map("mine"))
    found = gathering(server, Whereabouts(Watches(known=False)))
    await found.read([KIND], any_version=True, named=True)
    assert server.asked == []
    await found.look([Identity("", "ConfigMap", "shop", "mine")])
    assert names(found) == ["mine"]


@pytest.mark.parametrize("code", [404, 429, 500])
async def test_a_kind_whose_objects_cannot_be_read_is_not_taken_for_gone(code: int) -> None:
    server = Server()
    # The API server has no reason for a path that it does not serve any more.
    server.error = ApiError(code, {"message": "404 page not found"})
    identity = Identity("", "ConfigMap", "shop", "mine")
    for shown in ([config_map("mine")], []):
        found = gathering(server, Whereabouts(Watches(*shown)))
        await found.read([KIND])
        await found.look([identity])
        assert identity not in found.found.absent
        verdict = found.unseen([KIND])
        assert verdict is not None
        assert verdict.reason is reasons.FAILED


def test_one_list_is_for_all_who_need_it() -> None:
    async def main() -> None:
        server, where = Server(config_map("mine")), Whereabouts(Watches(known=False))

        async def find(uid: str, account: ServiceAccount | None = None) -> Collection[Place] | None:
            return await where.find(cast(Client, server), account, MAP, "shop", uid)

        found = await asyncio.gather(*(find(f"u{each}") for each in range(1_000)))
        assert [*map(bool, found)] == [each == 1 for each in range(1_000)]
        assert server.asked == [MAPS]
        # What the composer creates meanwhile is known, also if the next list misses it.
        where.wrote(None, MAP, config_map("new"))
        assert await find("u1") == [("shop", "mine"), ("shop", "new")] or await find("u1") == [
            ("shop", "new"),
            ("shop", "mine"),
        ]
        assert len(server.asked) == 1
        # What one account may see says nothing about another one.
        assert await find("u1", ServiceAccount("shop", "composer")) == [("shop", "mine")]
        assert len(server.asked) == 2
        await asyncio.sleep(16.0)
        listing = asyncio.create_task(find("u1"))
        await asyncio.sleep(0.5)
        where.wrote(None, MAP, config_map("late"))
        places = await listing
        assert places is not None
        assert sorted(places) == [("shop", "late"), ("shop", "mine")]
        assert len(server.asked) == 3

    virtualtime.run(main())


def test_a_list_that_fails_does_so_for_all_who_wait_and_is_tried_again() -> None:
    async def main() -> None:
        server, where = Server(config_map("mine")), Whereabouts(Watches(known=False))
        server.error = ApiError(403, {"message": "no"})
        wanted = (cast(Client, server), None, MAP, "shop", "u1")
        results = await asyncio.gather(*(where.find(*wanted) for _ in range(100)), return_exceptions=True)
        assert all(isinstance(each, ApiError) for each in results)
        assert len(server.asked) == 1
        server.error = None
        await asyncio.sleep(0.1)
        assert await where.find(*wanted) == [("shop", "mine")]

    virtualtime.run(main())


@pytest.mark.parametrize("before", ["nothing", "a list", "an error"])
def test_a_list_that_was_given_up_shows_nothing(before: str) -> None:
    async def main() -> None:
        server, where = Server(), Whereabouts(Watches(known=False))
        wanted = (cast(Client, server), None, MAP, "shop", "u1")
        if before != "nothing":
            server.error = ApiError(500, {"message": "no"}) if before == "an error" else None
            await asyncio.gather(where.find(*wanted), return_exceptions=True)
            await asyncio.sleep(0.1 if before == "an error" else 16.0)
        server.error = None
        server.objects[f"{MAPS}/mine"] = config_map("mine")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await where.find(*wanted)
        assert await where.find(*wanted) == [("shop", "mine")]

    virtualtime.run(main())


def test_lists_that_were_given_up_do_not_keep_others() -> None:
    async def main() -> None:
        server, where = Server(), Whereabouts(Watches(known=False))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await where.find(cast(Client, server), None, MAP, "given-up", "u1")
        await asyncio.gather(
            *(where.find(cast(Client, server), None, MAP, f"shop-{each}", "u1") for each in range(100))
        )
        await asyncio.sleep(16.0)
        await where.find(cast(Client, server), None, MAP, "shop", "u1")
        assert len(where._lists) == 1

    virtualtime.run(main())


def test_lists_that_nobody_needs_are_forgotten() -> None:
    async def main() -> None:
        server, where = Server(), Whereabouts(Watches(known=False))
        for each in range(3):
            await where.find(cast(Client, server), None, MAP, f"shop-{each}", "u1")
        assert len(where._lists) == 3
        for _ in range(3):
            await asyncio.sleep(16.0)
            await where.find(cast(Client, server), None, MAP, "shop", "u1")
        assert len(where._lists) == 1

    virtualtime.run(main())


def test_a_label_that_changes_all_the_time_takes_no_memory() -> None:
    placed = Placed()
    for each in range(10_000):
        placed.take(config_map("a", f"u{each}", f"u{each}"))
    assert placed.composites() == {"u9999"}
    assert not placed.has("u1", "shop")
    placed.take(config_map("a", "u1", "u2"))
    assert not placed.has("u9999", "shop")
    assert not placed.has("u1", "shop")
    placed.drop(config_map("a"))
    assert not placed.composites()


@pytest.mark.parametrize(
    "odd", [{"labels": "a"}, {"ownerReferences": "a"}, {"ownerReferences": ["a"]}, {"annotations": "a"}]
)
def test_metadata_of_another_form_ends_nothing(odd: dict[str, Any]) -> None:
    placed = Placed()
    made = config_map("a")
    placed.take({"metadata": {**made["metadata"], **odd}})
    placed.take(made)
    assert placed.of("u1", "shop") == [("shop", "a")]


def test_only_the_state_of_what_is_the_composites_alone_is_enough_to_delete_it() -> None:
    placed = Placed()
    placed.take(config_map("a"))
    assert placed.plain("u1", ("shop", "a")) == ("a", "1")
    assert placed.plain("u2", ("shop", "a")) is None
    placed.take(config_map("a", controller="u2"))
    assert placed.plain("u1", ("shop", "a")) is None
    placed.take(config_map("a"))
    placed.drop(config_map("a"))
    assert placed.plain("u1", ("shop", "a")) is None


@pytest.mark.parametrize(
    "odd",
    [
        {"deletionTimestamp": "2026-01-02T03:04:05Z"},
        {"annotations": {OUTLIVES: "u1"}},
        {"annotations": {OUTLIVES: "u1"}, "ownerReferences": []},
        {"uid": ""},
        {"uid": "a" * 1_000_000},
        {"resourceVersion": None},
    ],
    ids=lambda each: ", ".join(each),
)
def test_of_all_else_the_state_is_not_known(odd: dict[str, Any]) -> None:
    placed = Placed()
    placed.take({"metadata": {**config_map("a")["metadata"], **odd}})
    assert placed.has("u1", "shop")
    assert placed.plain("u1", ("shop", "a")) is None


async def test_an_account_is_not_told_what_it_may_not_read() -> None:
    identity, where = Identity("", "ConfigMap", "shop", "mine"), Whereabouts(Watches(config_map("mine")))
    server = Server(config_map("mine"))
    found = gathering(server, where)
    await found.read_to_delete([KIND], {identity})
    assert found.glimpsed == {identity}
    assert not server.asked

    found = gathering(server, where)
    found.account = ServiceAccount("shop", "a")
    await found.read_to_delete([KIND], {identity})
    assert not found.glimpsed
    assert server.asked == [f"{MAPS}/mine"]
