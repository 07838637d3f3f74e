"""The pods use less memory than they request, by their cgroups: at rest, and with thousands of CRDs.

A cluster needs minutes to load thousands, and each takes the same: so the test creates some and multiplies
what they take. CRDKEEPER_DEFINITIONS sets how many it creates.
"""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pytest

from tests.benchmark.manydefinitions import put_definitions, remove_definitions
from tests.controlplane.plane import ControlPlane
from tests.node.deployment import DEPLOYMENTS, OPERATOR, Deployment, Pod, until

DEFINITIONS: Final = 2000
CREATED: Final = int(os.environ.get("CRDKEEPER_DEFINITIONS", "800"))
_SECONDS: Final = 600.0
_SETTLED_SECONDS: Final = 5.0


def used(deployment: Deployment) -> dict[str, int]:
    """The bytes that each pod uses once they have settled, by its name."""
    time.sleep(_SETTLED_SECONDS)
    return {each.name: deployment.memory(each) for each in pods(deployment)}


def pods(deployment: Deployment) -> list[Pod]:
    return [each for name in DEPLOYMENTS for each in deployment.pods(name)]


def excess(deployment: Deployment, found: Mapping[str, int]) -> dict[str, str]:
    """The pods that use more than they request, with how much that is."""
    above = {}
    for each in pods(deployment):
        requested = re.fullmatch(r"(\d+)Mi", each.request)
        assert requested is not None
        print(f"{each.name}: {found[each.name] / (1 << 20):.0f} MiB of {each.request}")
        if found[each.name] > int(requested[1]) << 20:
            above[each.name] = f"{found[each.name]:,} bytes"
    return above


@contextmanager
def definitions(plane: ControlPlane) -> Iterator[None]:
    """That many CRDs, put into etcd and removed from it."""
    put_definitions(plane, CREATED)
    try:
        yield
    finally:
        remove_definitions(plane, CREATED)


@pytest.mark.timeout(1200)
def test_at_rest_and_with_thousands_of_crds(deployment: Deployment) -> None:
    def reported() -> bool:
        found = deployment.kubectl(
            "get", "defrep", "-o=jsonpath={.items[*].status.storageVersion}", check=False
        )
        return found.count("v1") >= CREATED

    at_rest = used(deployment)
    assert not excess(deployment, at_rest)
    # After the deployment: while an API server loads these, it establishes no other CRD for minutes.
    with definitions(deployment.plane):
        until(reported, _SECONDS)
        with_some = used(deployment)
    for_each = {name: (size - at_rest[name]) / CREATED for name, size in with_some.items()}
    with_all = {name: at_rest[name] + round(size * DEFINITIONS) for name, size in for_each.items()}
    assert not excess(deployment, with_all)
    # No pod was killed for it meanwhile.
    assert not any(each.restarts for each in deployment.pods(OPERATOR))
