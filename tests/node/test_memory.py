"""The pods use less memory than they request, by their cgroups: at rest, and with thousands of CRDs."""

import re
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.benchmark.manydefinitions import put_definitions, remove_definitions
from tests.node.cluster import NodeCluster
from tests.node.deployment import DEPLOYMENTS, OPERATOR, Deployment, until

DEFINITIONS: Final = 2000
_SECONDS: Final = 600.0
_SETTLED_SECONDS: Final = 5.0


def excess(deployment: Deployment) -> dict[str, str]:
    """The pods that use more than they request, with how much that is."""
    found = {}
    for each in (each for name in DEPLOYMENTS for each in deployment.pods(name)):
        requested = re.fullmatch(r"(\d+)Mi", each.request)
        assert requested is not None
        used = deployment.memory(each)
        print(f"{each.name}: {used / (1 << 20):.0f} MiB of {each.request}")
        if used > int(requested[1]) << 20:
            found[each.name] = f"{used:,} bytes"
    return found


def test_at_rest(deployment: Deployment) -> None:
    time.sleep(_SETTLED_SECONDS)
    assert not excess(deployment)


@pytest.fixture
def definitions(nodes: NodeCluster, deployment: Deployment) -> Iterator[None]:
    """After the deployment: while an API server loads these, it establishes no other CRD for minutes."""
    put_definitions(nodes.plane, DEFINITIONS)
    yield
    remove_definitions(nodes.plane, DEFINITIONS)


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("definitions")
def test_with_thousands_of_crds(deployment: Deployment) -> None:
    def reported() -> bool:
        found = deployment.kubectl(
            "get", "defrep", "-o=jsonpath={.items[*].status.storageVersion}", check=False
        )
        return found.count("v1") >= DEFINITIONS

    until(reported, _SECONDS)
    time.sleep(_SETTLED_SECONDS)
    assert not excess(deployment)
    # No pod was killed for it meanwhile.
    assert not any(each.restarts for each in deployment.pods(OPERATOR))
