"""Fixtures of tests on a real control plane: crdkeeper installed, its operator running, an admin."""

import re
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness import Admin, Operator, install, preloaded
from tests.cluster.harness.admin import QUICK
from tests.cluster.harness.guarded import guarded
from tests.controlplane.cluster import Cluster

_NUMBERS = count()

# For a test: its operators, each with the position in its log where the test began.
OPERATORS = pytest.StashKey[list[tuple[Operator, int]]]()
_SHOWN = 20_000

# With one API server and no other writer, there is nothing to settle.
UNSETTLED = {**QUICK, "settleSeconds": 0}

# On a busy machine an API server may answer nothing for as long as a renewal has by default, and a test may
# take longer than that while the operator is paused. No kubelet would start one that has lost its Lease.
PATIENT = {"lease-duration": "60", "renew-deadline": "50"}

# Kopf logs each attempt at which the API server returns 429, as it does while it sets up a kind's storage.
# Of the last one, it says something else.
ERROR = re.compile(r"\[(ERROR|CRITICAL) *\](?! Request attempt #\d+/\d+ failed; will retry: )|^Traceback ")


@pytest.fixture(scope="session", autouse=True)
def preloading() -> Iterator[None]:
    """Processes of crdkeeper are forks of one that has imported it."""
    with preloaded.preloading():
        yield


@pytest.fixture(scope="session")
def installed(plane: Cluster) -> Cluster:
    """The session's cluster with crdkeeper installed by the one line of the documentation."""
    install(plane)
    return plane


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """An API group that no other test uses."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    return f"{name[:40].strip('-')}-{next(_NUMBERS)}.example.com"


@pytest.fixture
async def admin(installed: Cluster) -> AsyncIterator[Admin]:
    """The admin of the session's cluster. Checks every trim of a CRD that it applies."""
    async with guarded(installed, template=UNSETTLED) as admin:
        yield admin


@pytest.fixture(scope="module")
def module_operator(installed: Cluster) -> Iterator[Operator]:
    """The operator of a module's tests; not running in modules that do not request it."""
    operator = Operator(installed, flags=PATIENT)
    yield operator
    operator.close()


@pytest.fixture
def operator(request: pytest.FixtureRequest, module_operator: Operator) -> Iterator[Operator]:
    """The one operator of the session's cluster, running and ready.

    It must not log errors: conditions and warnings report what users cause.
    """
    begin = module_operator.log_size()
    _show_on_failure(request, module_operator, begin)
    if not module_operator.running:
        module_operator.start()
    yield module_operator
    errors = [each for each in module_operator.log_since(begin).splitlines() if ERROR.search(each)]
    assert not errors


@pytest.fixture
def start_operator(request: pytest.FixtureRequest) -> Iterator[Callable[..., Operator]]:
    """Starts operators for one test: `start_operator(cluster, …)` takes the arguments of Operator.

    They compete for the cluster's single Lease, also with the operator of the fixture `operator`.
    """
    with ExitStack() as stack:

        def start(cluster: Cluster, *, wait: bool = True, **arguments: Any) -> Operator:
            operator = Operator(cluster, **arguments)
            stack.callback(operator.close)
            _show_on_failure(request, operator, 0)
            operator.start(wait=wait)
            return operator

        yield start


def _show_on_failure(request: pytest.FixtureRequest, operator: Operator, begin: int) -> None:
    request.node.stash.setdefault(OPERATORS, []).append((operator, begin))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report of a failed test what its operators logged meanwhile."""
    report = yield
    if report.failed:
        for operator, begin in item.stash.get(OPERATORS, []):
            report.sections.append((f"log of {operator.log.stem}", operator.log_since(begin)[-_SHOWN:]))
    return report


@pytest.fixture
def shells(tmp_path: Path) -> Iterator[Callable[[Path], CommandLine]]:
    """Creates a command line for a kubeconfig; ends what is still running at the end."""
    opened: list[CommandLine] = []

    def open_(kubeconfig: Path) -> CommandLine:
        opened.append(CommandLine(kubeconfig, tmp_path / f"shell-{len(opened)}"))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


@pytest.fixture
def shell(plane: Cluster, shells: Callable[[Path], CommandLine]) -> CommandLine:
    """The admin's command line."""
    return shells(plane.kubeconfig)
