"""An admin with a check of each trim of a CRD that it applies."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.cluster.harness.admin import QUICK, Admin
from tests.cluster.harness.trimguard import TrimGuard
from tests.controlplane.cluster import Cluster


@asynccontextmanager
async def guarded(cluster: Cluster, template: Mapping[str, Any] = QUICK) -> AsyncIterator[Admin]:
    """After success it fails for a wrong trim, and cleans up in any case.

    A failed test leaves its objects for its reader.
    """
    with TrimGuard(cluster.etcd) as guard:
        async with Admin(cluster, template=template, on_definition=guard.add) as admin:
            yield admin
            try:
                guard.check()
            finally:
                await admin.clean_up()
