"""What the BuiltinPolicy controller does with the answers of API servers, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, cast

import pytest

from crdkeeper.api.builtinpolicy import BuiltinPolicy
from crdkeeper.api.meta import set_condition
from crdkeeper.api.storagemigration import MigrationTarget, StorageMigration
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.builtinpolicy.controller import BuiltinPolicies
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.builtins.view import View
from tests import virtualtime
from tests.unit.builders import NOW
from tests.unit.controllers.fakeapi import OURS, FakeApi
from tests.unit.core.builtins.builders import builtin_policy, view

MIGRATIONS = f"{OURS}/storagemigrations"
POLICY = f"{OURS}/builtinpolicies/p"
STATUS = f"{POLICY}/status"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
THREE = View(
    {name: view("a", resource=name).stored[name] for name in ("configmaps", "pods", "secrets")},
    frozenset(),
    ("c",),
    (),
    1,
)


class Api(FakeApi):
    """Allows the operator everything, and stores statuses."""

    allowed = True
    reviews = 0
    lists = 0
    """Requests for all StorageMigrations."""
    looks = 0
    state: ClusterState

    async def request(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        if path == REVIEWS:
            self.reviews += 1
            return {"status": {"allowed": self.allowed}}
        if (method, path.partition("?")[0]) == ("GET", MIGRATIONS):
            self.lists += 1
        answer = await super().request(method, path, body, **options)
        if path.partition("?")[0] == STATUS:
            self.objects[POLICY]["status"] = body["status"]
        return answer


def play(people: Callable[[Api], Awaitable[None]], looks: Sequence[View | Exception], **spec: Any) -> None:
    """One policy without a wait, what people do, and what each look sees; the last one for ever."""
    left = list(looks)

    async def look(_: Collection[str]) -> View:
        api.looks += 1
        seen = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(seen, Exception):
            raise seen
        return seen

    api, state = Api(), ClusterState()

    async def main() -> None:
        api.state = state
        policy = builtin_policy(template={"settleSeconds": 0}, **spec)
        api.objects[POLICY] = policy.to_object()
        controller = BuiltinPolicies(cast(Client, api), state, look, identity="me")
        queue = asyncio.create_task(controller.run())
        state.saw(BuiltinPolicy, "p", policy)
        await people(api)
        queue.cancel()
        await asyncio.gather(queue, return_exceptions=True)

    virtualtime.run(main())


def ready(api: Api) -> tuple[str, str]:
    conditions = api.objects[POLICY]["status"]["conditions"]
    return next((each["status"], each["reason"]) for each in conditions if each["type"] == "Ready")


def test_the_record_is_written_before_the_migration() -> None:
    async def people(api: Api) -> None:
        await asyncio.sleep(5.0)
        writes = [each for each in api.requests if each[1] in (STATUS, MIGRATIONS)]
        assert writes[:2] == [("PATCH", STATUS), ("POST", MIGRATIONS)]

    play(people, [view("a")])


def test_without_the_record_there_is_no_migration() -> None:
    async def people(api: Api) -> None:
        api.failures = [("PATCH", STATUS, ApiError(409, {"message": "somebody else wrote it"}))] * 2
        await asyncio.sleep(1.0)
        assert api.writes("POST", MIGRATIONS) == 0
        await asyncio.sleep(10.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, [view("a")])


def test_a_migration_of_another_release_keeps_no_other_from_being_made() -> None:
    async def people(api: Api) -> None:
        api.objects[f"{MIGRATIONS}/newer"] = {
            "metadata": {"name": "newer"},
            "spec": {"resource": {"group": "other.example.com", "resource": "others"}, "mode": "Sometimes"},
        }
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, [view("a")])


def test_its_own_migration_of_another_release_stops_no_other_resource() -> None:
    async def people(api: Api) -> None:
        await asyncio.sleep(5.0)
        (first,) = stored(api)
        # The newer release has run it; then there was a downgrade.
        first["status"] = {"sweep": {"type": "NewerType"}}
        for number in (2, 3):
            await asyncio.sleep(100.0)
            assert api.writes("POST", MIGRATIONS) == number
            succeed(stored(api)[-1])
        await asyncio.sleep(100.0)
        assert api.writes("POST", MIGRATIONS) == 3
        assert ready(api) == ("False", "NameTaken")
        reasons = [each["reason"] for each in api.objects[POLICY]["status"]["resources"]]
        assert reasons == ["NameTaken", "Migrated", "Migrated"]

    play(people, [THREE], resources=["*."])


def stored(api: Api) -> list[dict[str, Any]]:
    return [each for path, each in api.objects.items() if path.startswith(f"{MIGRATIONS}/")]


def succeed(migration: dict[str, Any]) -> None:
    done = StorageMigration.model_validate(migration)
    done.status.target = MigrationTarget(
        endpoint_version="v1", storage_version_hash="a", kind="Any", namespaced=True
    )
    set_condition(done.status.conditions, "Succeeded", "True", "Done", "", generation=1, now=NOW)
    done.status.completion_time = NOW
    migration["status"] = done.to_object()["status"]


def test_an_unfinished_migration_is_the_only_one() -> None:
    async def people(api: Api) -> None:
        await asyncio.sleep(600.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, [view("a")])


def test_a_failed_look_changes_nothing_and_is_repeated() -> None:
    async def people(api: Api) -> None:
        await asyncio.sleep(0.9)
        assert api.requests == []
        await asyncio.sleep(10.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, [Unreachable("no answer"), ApiError(503, {"message": "overloaded"}), view("a")])


def test_a_change_right_at_the_end_of_a_look_is_noticed_soon() -> None:
    async def people(api: Api) -> None:
        api.failures = [("GET", MIGRATIONS, ApiError(404, {"message": "not found"}))]
        announced = api.request

        async def request(method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
            if path.partition("?")[0] == MIGRATIONS and api.failures:
                # Somebody writes the policy just then.
                policy = BuiltinPolicy.model_validate(api.objects[POLICY])
                api.state.saw(BuiltinPolicy, "p", policy)
            return await announced(method, path, body, **options)

        api.request = request  # type: ignore[method-assign]
        await asyncio.sleep(2.0)
        assert api.failures == []
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, [view("a")])


def test_while_migrations_are_unknown_it_looks_again() -> None:
    async def people(api: Api) -> None:
        api.failures = [("GET", MIGRATIONS, ApiError(404, {"message": "not found"}))]
        await asyncio.sleep(29.0)
        assert api.failures == []
        assert api.requests == []
        await asyncio.sleep(3.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, [view("a")])


def test_what_may_not_be_found_out_is_told() -> None:
    async def people(api: Api) -> None:
        await asyncio.sleep(5.0)
        assert ready(api) == ("False", "Forbidden")

    play(people, [ApiError(403, {"message": "apiservices is forbidden"})])


def test_rights_that_are_granted_are_noticed() -> None:
    async def people(api: Api) -> None:
        api.allowed = False
        await asyncio.sleep(5.0)
        assert ready(api) == ("False", "Forbidden")
        assert api.writes("POST", MIGRATIONS) == 0
        api.allowed = True
        await asyncio.sleep(10.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, [view("a")])


def test_while_servers_differ_nothing_begins() -> None:
    async def people(api: Api) -> None:
        await asyncio.sleep(3.0)
        assert ready(api) == ("Unknown", "ServersDisagree")
        assert api.writes("POST", MIGRATIONS) == 0
        await asyncio.sleep(120.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, [view("a", "b")] * 5 + [view("b")])


@pytest.mark.parametrize(("seen", "reason"), [(view("a"), "Forbidden"), (view("a", "b"), "ServersDisagree")])
def test_what_waits_for_others_costs_few_requests(seen: View, reason: str) -> None:
    async def people(api: Api) -> None:
        api.allowed = False
        await asyncio.sleep(60.0)
        assert ready(api)[1] == reason
        assert 1 < api.lists <= 8

    play(people, [seen])


def test_a_pattern_that_names_nothing_is_told() -> None:
    async def people(api: Api) -> None:
        await asyncio.sleep(5.0)
        assert ready(api) == ("False", "NoSuchResource")

    play(people, [view("a")], resources=["secrets", "secret"])


def test_checkpoints_of_a_migration_lead_to_no_looks_and_reviews() -> None:
    async def people(api: Api) -> None:
        await asyncio.sleep(1.0)
        api.looks = api.reviews = 0
        other = StorageMigration.model_validate(
            {"metadata": {"name": "other"}, "spec": {"resource": {"group": "", "resource": "secrets"}}}
        )
        for _ in range(30):
            await asyncio.sleep(2.0)
            api.state.saw_migration("other", other)
            api.state.saw(BuiltinPolicy, "p", BuiltinPolicy.model_validate(api.objects[POLICY]))
        assert api.looks <= 6
        assert api.reviews <= 6 * 3 * 2

    play(people, [THREE], resources=["*."])
