"""A retirement whose requests fail or hang, and whose operator loses its Lease in mid-step."""

import os
import threading
from collections.abc import Callable, Iterator

import pytest

from crdkeeper.api.versionretirement import NOT_SERVED
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, Operator, eventually
from tests.cluster.harness.admin import CRDS
from tests.cluster.harness.faultproxy import Fault, FaultProxy
from tests.cluster.retirement.scene import (
    assert_retired,
    moved,
    permit,
    retire,
    standing,
    until,
    until_ready,
)
from tests.controlplane.cluster import Cluster
from tests.faults.replicas import LEASE, PATIENT, until_ended, until_leading

StartOperator = Callable[..., Operator]


@pytest.fixture
def proxy(installed: Cluster) -> Iterator[FaultProxy]:
    """The way of one operator to the API server; what it holds is let go at the end."""
    with FaultProxy(installed) as proxy:
        yield proxy
        for each in proxy.faults:
            if each.held is not None:
                each.held.set()


def flags(proxy: FaultProxy) -> dict[str, str]:
    """Of an operator behind the proxy, which keeps its Lease although this process may stand still."""
    kubeconfig = proxy.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    return {"kubeconfig": str(proxy.kubeconfig(kubeconfig)), **PATIENT}


async def test_requests_that_fail_before_and_after_they_are_served(
    admin: Admin, installed: Cluster, proxy: FaultProxy, start_operator: StartOperator, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    crd = f"^{CRDS}/{kind.name}"
    status = f"versionretirements/old.{group}/status"
    proxy.faults += [
        Fault("PATCH", crd + "[?]", 503, times=1),
        # The step is taken, and nobody hears of it.
        Fault("PATCH", crd + "[?]", 0, after=True, times=1),
        Fault("PATCH", crd + "[?]", 504, after=True, times=1),
        Fault("PATCH", status, 500, times=1),
        Fault("PATCH", status, 0, after=True, times=2),
        Fault("GET", "/compositions", 500, times=1),
        Fault("GET", f"/{kind.plural}[?]", 429, retry_after=1, times=2),
        Fault("POST", "/storagemigrations", 0, after=True, times=1),
    ]
    start_operator(installed, flags=flags(proxy))
    name = await retire(admin, kind, mode="Execute")
    await until_ready(admin, name, "True", "Removed", seconds=150)
    await assert_retired(admin, kind, 3)
    assert [each.met for each in proxy.faults] == [1, 1, 1, 1, 2, 1, 2, 1]


@pytest.mark.skipif(not os.environ.get("CRDKEEPER_RETIREMENT_FAULTS"), reason="waits for two Leases")
async def test_a_lost_lease_in_mid_step(
    admin: Admin, installed: Cluster, proxy: FaultProxy, start_operator: StartOperator, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    held = Fault("PATCH", f"^{CRDS}/{kind.name}[?]", times=1, held=threading.Event())
    assert held.held is not None
    proxy.faults.append(held)
    former = start_operator(installed, identity="former", flags=flags(proxy))
    name = await retire(admin, kind, mode="Execute")

    async def on_its_way() -> bool:
        return held.met == 1

    await eventually(on_its_way, otherwise=lambda: "no step is taken")
    await admin.merge(LEASE, {"spec": {"holderIdentity": "intruder", "leaseDurationSeconds": 1}})
    assert await until_ended(former) == 1

    successor = start_operator(installed, identity="successor", wait=False)
    await until_leading(successor)
    await until(admin, name, lambda each: standing(each, NOT_SERVED).status == "True", "not served any more")
    # The former leader's change arrives after its successor's.
    before = len(proxy.requests)
    held.held.set()

    async def late() -> int | None:
        asked = [each for each in proxy.requests[before:] if each.method == "PATCH"]
        return next((each.code for each in asked if each.path.startswith(f"{CRDS}/{kind.name}?")), None)

    assert await eventually(late) in (404, 409, 422)
    await until_ready(admin, name, "True", "Removed")
    await assert_retired(admin, kind, 3)
