"""The leading pod is deleted, or its process killed: a standby gives a new CRD its report."""

import time
from collections.abc import Callable

import pytest
from pykube.http import HTTPClient

from crdkeeper.scripting import report_of
from tests.cluster.harness import CustomKind
from tests.cluster.harness.admin import Admin
from tests.node.deployment import OPERATOR, REPLICAS, Deployment, Pod, until

SECONDS = 120.0
"""A Lease that is not released lasts for 15 seconds; what comes then takes a busy machine a while."""


def deleted(deployment: Deployment, leader: Pod) -> None:
    deployment.kubectl("delete", "pod", leader.name, "--wait=false")


def deleted_at_once(deployment: Deployment, leader: Pod) -> None:
    """Like an admin who does not wait: SIGKILL, and the Lease is not released."""
    deployment.kubectl("delete", "pod", leader.name, "--wait=false", "--grace-period=0", "--force")


def killed(deployment: Deployment, leader: Pod) -> None:
    deployment.kill(leader)


@pytest.mark.parametrize("end", [deleted, deleted_at_once, killed])
async def test_a_standby_goes_on(
    deployment: Deployment,
    admin: Admin,
    scripts: HTTPClient,
    group: str,
    end: Callable[[Deployment, Pod], None],
) -> None:
    leader = next(each for each in deployment.ready(OPERATOR) if each.name == deployment.leader())
    end(deployment, leader)
    ended = time.monotonic()
    kind = CustomKind(group)
    await admin.apply_definition(kind)

    report_of(kind.name, api=scripts, timeout=SECONDS)

    print(f"reported {time.monotonic() - ended:.1f} s after the end of the leader")
    until(lambda: len(deployment.ready(OPERATOR)) == REPLICAS, 180)
    assert deployment.leader() in {each.name for each in deployment.ready(OPERATOR)}
    deployment.replace(leader.name)
