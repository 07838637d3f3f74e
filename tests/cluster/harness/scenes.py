"""Situations that many tests need."""

from collections.abc import Awaitable, Callable
from itertools import count as numbers

from tests.cluster.harness.admin import Admin
from tests.cluster.harness.customkind import CustomKind
from tests.cluster.harness.waiting import eventually

_NUMBERS = numbers()


async def outdated(
    admin: Admin,
    kind: CustomKind,
    count: int,
    *,
    flipped: CustomKind | None = None,
    opt_in: bool = True,
    make: Callable[[Admin, CustomKind, int], Awaitable[object]] = Admin.create_objects,
) -> CustomKind:
    """A kind whose objects were all written before its storage version changed from v1 to v2.

    `make` makes them; `flipped` is what is applied then; that kind is returned.
    """
    await admin.apply_definition(kind)
    await make(admin, kind, count)
    if opt_in:
        await admin.opt_in(kind.group)
    flipped = flipped or kind.storing("v2")
    await admin.apply_definition(flipped)
    assert admin.stored(kind) == ({"v1": count} if count else {})
    return flipped


async def until_storing(admin: Admin, kind: CustomKind) -> None:
    """Returns when the API server stores new objects at the kind's storage version.

    It does so some time after the CRD says it; until then it goes on with the former one.
    """
    probe = kind.instance("storing")
    namespace = probe["metadata"].get("namespace", "")

    async def stored() -> bool:
        await admin.create_instances(kind, [probe])
        found = admin.etcd.get(kind.etcd_key("storing", namespace=namespace))
        await admin.delete(kind.path("storing", namespace=namespace))
        return found is not None and found["apiVersion"] == kind.api_version(kind.storage_version)

    await eventually(stored, otherwise=lambda: f"{kind.name} is not stored at {kind.storage_version}")


async def time_passes(admin: Admin) -> None:
    """Returns when the operator has completed another migration, which takes it more than a second.

    What has not happened by then, although its cause existed before, does not happen.
    """
    group = f"time-passes-{next(_NUMBERS)}.example.com"
    await admin.migrate(group, await outdated(admin, CustomKind(group), 1), settleSeconds=1)
