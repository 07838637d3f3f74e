"""Situations that many tests need."""

from itertools import count as numbers

from tests.cluster.harness.admin import Admin
from tests.cluster.harness.customkind import CustomKind

_NUMBERS = numbers()


async def outdated(
    admin: Admin, kind: CustomKind, count: int, *, flipped: CustomKind | None = None, opt_in: bool = True
) -> CustomKind:
    """A kind whose objects were all written before its storage version changed from v1 to v2.

    `flipped` is what is applied then; that kind is returned.
    """
    await admin.apply_definition(kind)
    await admin.create_objects(kind, count)
    if opt_in:
        await admin.opt_in(kind.group)
    flipped = flipped or kind.storing("v2")
    await admin.apply_definition(flipped)
    assert admin.stored(kind) == ({"v1": count} if count else {})
    return flipped


async def time_passes(admin: Admin) -> None:
    """Returns when the operator has completed another migration, which takes it more than a second.

    What has not happened by then, although its cause existed before, does not happen.
    """
    group = f"time-passes-{next(_NUMBERS)}.example.com"
    await admin.migrate(group, await outdated(admin, CustomKind(group), 1), settleSeconds=1)
