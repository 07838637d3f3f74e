"""A kind for each test of `crdkeeper migrate`."""

from collections.abc import AsyncIterator

import pytest

from tests.cluster.cli.migrations import migrations
from tests.cluster.harness import Admin, CustomKind


@pytest.fixture
async def kind(admin: Admin, group: str) -> AsyncIterator[CustomKind]:
    """A kind for this test only; the migrations that commands created for it are deleted at the end."""
    yield CustomKind(group)
    for each in await migrations(admin, group):
        await admin.delete_migration(each.metadata.name)
