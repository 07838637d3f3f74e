"""One control plane that encrypts Secrets, for all tests of built-in resources."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.builtins.encrypting import encrypt_with
from tests.cluster.harness import Admin, Operator, install
from tests.controlplane.fixtures import EXTERNAL
from tests.controlplane.plane import ControlPlane


@pytest.fixture(scope="package")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The EncryptionConfiguration of that control plane."""
    path = tmp_path_factory.mktemp("encryption") / "encryption.json"
    encrypt_with(path, "key1")
    return path


@pytest.fixture(scope="package")
def encrypting_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, configuration: Path
) -> Iterator[ControlPlane]:
    """The control plane, with crdkeeper installed."""
    if os.environ.get(EXTERNAL):
        pytest.skip(f"this test configures its API servers: not done with {EXTERNAL}")
    request.getfixturevalue("control_plane_binaries")
    with ControlPlane(
        tmp_path_factory.mktemp("encrypting"),
        controllers=("clusterrole-aggregation-controller", "garbage-collector-controller"),
        extra_apiserver_flags={"encryption-provider-config": str(configuration)},
    ) as plane:
        install(plane)
        yield plane


StartEncrypting = Callable[..., tuple[ControlPlane, Path]]


@pytest.fixture
def start_encrypting(start_plane: Callable[..., ControlPlane], tmp_path: Path) -> StartEncrypting:
    """Starts a control plane of a test's own, with its EncryptionConfiguration."""

    def start(**arguments: Any) -> tuple[ControlPlane, Path]:
        path = tmp_path / "encryption.json"
        encrypt_with(path, "key1")
        flags = {"encryption-provider-config": str(path)}
        return start_plane(extra_apiserver_flags=flags, **arguments), path

    return start


@pytest.fixture
async def encrypting(encrypting_plane: ControlPlane) -> AsyncIterator[Admin]:
    """Its admin, who deletes what a test has created, also if it failed."""
    async with Admin(encrypting_plane) as admin:
        try:
            yield admin
        finally:
            await admin.clean_up()
            await admin.client.request("DELETE", "/api/v1/namespaces/default/secrets")


@pytest.fixture
def builtins_operator(encrypting_plane: ControlPlane) -> Iterator[Operator]:
    """An operator of it, running."""
    operator = Operator(encrypting_plane)
    try:
        operator.start()
        yield operator
    finally:
        operator.close()
