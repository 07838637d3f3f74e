"""The leading pod is deleted, or its process killed: a standby gives a new CRD its report."""

import time
from collections.abc import Callable

import pytest
from pykube.http import HTTPClient

from crdkeeper.scripting import report_of
from tests.cluster.harness import CustomKind
from tests.cluster.harness.admin import Admin
from tests.node.deployment import Deployment, Pod

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
    leader = deployment.leading()
    end(deployment, leader)
    ended = time.monotonic()
    kind = CustomKind(group)
    await admin.apply_definition(kind)

    report_of(kind.name, api=scripts, timeout=SECONDS)

    print(f"reported {time.monotonic() - ended:.1f} s after the end of the leader")
    # Until its node ends it, the former leader may write the report, and it may be replaced before its Lease
    # has expired.
    deployment.leading()
    deployment.replace(leader.name)
