"""The leading pod is deleted, or its process killed: a new CRD has its report within 20 seconds."""

import time
from collections.abc import Callable

import pytest
from pykube.http import HTTPClient

from crdkeeper.scripting import report_of
from tests.cluster.harness import CustomKind
from tests.cluster.harness.admin import Admin
from tests.node.deployment import OPERATOR, REPLICAS, Deployment, Pod, until

SECONDS = 20.0


def deleted(deployment: Deployment, leader: Pod) -> None:
    deployment.kubectl("delete", "pod", leader.name, "--wait=false")


def deleted_at_once(deployment: Deployment, leader: Pod) -> None:
    """Like an admin who does not wait: SIGKILL, and the Lease is not released."""
    deployment.kubectl("delete", "pod", leader.name, "--wait=false", "--grace-period=0", "--force")


def killed(deployment: Deployment, leader: Pod) -> None:
    deployment.kill(leader)


@pytest.mark.parametrize("end", [deleted, deleted_at_once, killed])
async def test_a_standby_is_at_work_within_20_seconds(
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

    assert time.monotonic() - ended < SECONDS
    until(lambda: len(deployment.ready(OPERATOR)) == REPLICAS, 60)
    assert deployment.leader() in {each.name for each in deployment.ready(OPERATOR)}
    deployment.replace(leader.name)
