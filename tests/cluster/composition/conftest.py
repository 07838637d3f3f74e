"""The composer at work, under the account from its manifests; or only its kinds, installed and left there."""

from collections.abc import AsyncIterator, Iterator, Mapping

import pytest

from crdkeeper.api.compositekinds import COMPOSITE_KINDS
from crdkeeper.api.meta import GROUP
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import ACCOUNT, Author, author_of
from tests.cluster.composition.composerscene import ROLES, clean_up, grant, may_not, operator_beside
from tests.cluster.composition.composing import Composing, all_of, rights_on
from tests.cluster.harness import NAMESPACE, Operator, install
from tests.cluster.harness.faultproxy import FaultProxy
from tests.cluster.harness.installation import MANIFESTS
from tests.controlplane.cluster import Cluster


@pytest.fixture(scope="session")
def composite_kinds(plane: Cluster) -> Cluster:
    """The cluster with the kinds."""
    plane.kubectl("apply", "--server-side", f"--kustomize={MANIFESTS.parent / 'crds' / 'composer'}")
    plane.kubectl.wait_established(*(f"crd/{kind.plural}.{GROUP}" for kind in COMPOSITE_KINDS))
    return plane


@pytest.fixture
async def kinds_client(composite_kinds: Cluster) -> AsyncIterator[Client]:
    """An admin's client of it."""
    async with Client(Connection(composite_kinds.kubeconfig)) as client:
        yield client


@pytest.fixture(scope="module")
def lease() -> Mapping[str, str]:
    """Flags of the composers' Lease; a module whose tests are about it has others."""
    return {}


@pytest.fixture(scope="module")
def composer(plane: Cluster, lease: Mapping[str, str]) -> Iterator[Operator]:
    """The composer, installed by its manifests and running."""
    install(plane)
    install(plane, MANIFESTS / "composer")
    operator = Operator(plane, identity="composer", account=ACCOUNT, command=("compose", "run"), flags=lease)
    try:  # one that is left would keep the Lease from those of other modules
        operator.start()
        yield operator
    finally:
        operator.close()


@pytest.fixture
async def client(composer: Operator, plane: Cluster) -> AsyncIterator[Client]:
    """An admin; a test that failed leaves nothing of the API that several tests have in common."""
    async with Client(Connection(plane.kubeconfig)) as client:
        yield client
        await clean_up(client)


@pytest.fixture
async def rights(client: Client) -> AsyncIterator[None]:
    """The composer may count, watch and delete composites."""
    verbs = "list", "watch", "delete"
    await grant(client, "composer-test", [*verbs])
    yield
    await client.request("DELETE", f"{ROLES}/composer-test")
    # Else the next test could have the rights, too: a watch that has begun outlives them.
    await may_not(client, *verbs)


@pytest.fixture(scope="module")
def proxy(plane: Cluster) -> Iterator[FaultProxy]:
    """The way of one composer to the API server."""
    with FaultProxy(plane) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def proxied(
    plane: Cluster, composer: Operator, proxy: FaultProxy, lease: Mapping[str, str]
) -> Iterator[Operator]:
    """The composer behind the proxy, in place of the other one."""
    composer.stop()
    kubeconfig = proxy.kubeconfig(plane.service_account_kubeconfig(NAMESPACE, ACCOUNT))
    operator = Operator(
        plane,
        identity="proxied",
        account=ACCOUNT,
        command=("compose", "run"),
        flags={"kubeconfig": str(kubeconfig), **lease},
    )
    try:
        operator.start()
        yield operator
    finally:
        operator.close()
        composer.start()


@pytest.fixture
async def proxied_author(
    proxied: Operator, proxy: FaultProxy, plane: Cluster, group: str
) -> AsyncIterator[Author]:
    """A user of the composer behind the proxy; without faults at the end."""
    if not proxied.running:
        proxied.start()
    async with author_of(plane, group) as author:
        yield author
        proxy.faults.clear()


@pytest.fixture
async def author(composer: Operator, plane: Cluster, group: str) -> AsyncIterator[Author]:
    """A user of the composer."""
    async with author_of(plane, group) as author:
        yield author


@pytest.fixture
async def composing(request: pytest.FixtureRequest, author: Author, group: str) -> AsyncIterator[Composing]:
    """A user of a composite API whose objects are ConfigMaps, or what the marker `composes` names."""
    marker = request.node.get_closest_marker("composes")
    kinds = [each.format(group=group).partition(".") for each in (marker.args if marker else ["configmaps"])]
    rules = [all_of(of, plural) for plural, _, of in kinds]
    async with rights_on(author, f"compose-{group}", all_of(group), *rules):
        composing = Composing(author, group)
        if marker is None or marker.kwargs.get("defined", True):
            await composing.define()
        yield composing
        await composing.clean_up()


@pytest.fixture
def observer(author: Author, plane: Cluster) -> Observer:
    """Reads what the composer says to this user."""
    return Observer(author, plane)


@pytest.fixture(scope="module")
def keeper(
    composer: Operator, plane: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """The operator with a conversion webhook, beside the composer."""
    with operator_beside(plane, tmp_path_factory.mktemp("webhook")) as operator:
        yield operator
