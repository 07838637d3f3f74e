"""The Secrets of the webhook's certificates on the real API server, under the operator's own account."""

import asyncio
import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from crdkeeper.cluster.certificates.issuing import certificates_in, fingerprint
from crdkeeper.cluster.certificates.secrets import CA_SECRET, LABEL, OURS, TLS_SECRET
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.controllers.versionconversion.servingcertificate import ServingCertificate
from crdkeeper.core.certificates.times import Times
from tests.certificates import Authority
from tests.cluster.harness import Admin, eventually
from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.controlplane.cluster import Cluster

NAMES = ("crdkeeper-webhook.crdkeeper-system.svc", "10.0.0.1", "fd00::1")
TIMES = Times(settle=timedelta(seconds=0.5), spread=timedelta(seconds=1), look=timedelta(seconds=0.2))
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
CA, TLS = f"{SECRETS}/{CA_SECRET}", f"{SECRETS}/{TLS_SECRET}"
Start = Callable[..., Awaitable[ServingCertificate]]


@pytest.fixture
async def start(installed: Cluster, admin: Admin) -> AsyncIterator[Start]:
    """Starts the certificate controllers of operators; all end with the test, and the Secrets are deleted."""
    await _forget(admin)
    account = Client(Connection(installed.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)))
    tasks = []
    async with account:

        async def start(
            *, namespace: str = NAMESPACE, bundles: list[str | None] | None = None
        ) -> ServingCertificate:
            noted: list[str | None] = [] if bundles is None else bundles
            made = ServingCertificate(
                account,
                namespace=namespace,
                names=[*NAMES[:2], "fd00:0:0::0001"],
                on_bundle=lambda: noted.append(made.bundle),
                trusted=lambda _: True,
                times=TIMES,
            )
            tasks.append(asyncio.create_task(made.run()))
            return made

        yield start
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await _forget(admin)


async def _forget(admin: Admin) -> None:
    for path in (CA, TLS):
        await admin.delete(path)


async def _until(holds: Callable[[], bool], certificate: ServingCertificate) -> None:
    async def look() -> bool:
        return holds()

    await eventually(look, otherwise=lambda: f"bundle {certificate.bundle}, problem {certificate.problem!r}")


def _data(secret: dict[str, Any], key: str) -> bytes:
    return base64.b64decode(secret["data"][key])


def _encoded(**data: bytes) -> dict[str, str]:
    return {key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()}


async def test_both_secrets_are_made_and_what_is_served_is_good(admin: Admin, start: Start) -> None:
    certificate = await start()
    await _until(lambda: certificate.bundle is not None, certificate)
    ca, tls = await admin.get(CA), await admin.get(TLS)
    assert (ca["type"], set(ca["data"])) == ("Opaque", {"ca.crt", "ca.key"})
    assert (tls["type"], set(tls["data"])) == ("kubernetes.io/tls", {"ca.crt", "tls.crt", "tls.key"})
    assert ca["metadata"]["labels"] == tls["metadata"]["labels"] == {LABEL: OURS}
    assert certificate.bundle is not None
    assert _data(tls, "ca.crt") == certificate.bundle.encode()
    for name in NAMES:
        await _serve_and_connect(tls, certificate.bundle, name)
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        await _serve_and_connect(tls, certificate.bundle, "other.svc")
    assert certificate.problem == ""


async def _serve_and_connect(tls: dict[str, Any], bundle: str, name: str) -> None:
    """A handshake with OpenSSL's strict checks. Raises ssl.SSLCertVerificationError."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(_data(tls, "tls.crt") + _data(tls, "tls.key"))
        file.flush()
        server.load_cert_chain(file.name)
    client = ssl.create_default_context(cadata=bundle)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for each in ends * 3:
        with suppress(ssl.SSLWantReadError):
            each.do_handshake()


async def test_two_operators_do_not_fight(admin: Admin, start: Start) -> None:
    first, second = [await start() for _ in range(2)]
    await _until(lambda: first.bundle is not None and first.bundle == second.bundle, first)
    versions = [(await admin.get(each))["metadata"]["resourceVersion"] for each in (CA, TLS)]
    assert len(certificates_in(_data(await admin.get(CA), "ca.crt"))) == 1
    await asyncio.sleep(5 * TIMES.look.total_seconds())
    assert [(await admin.get(each))["metadata"]["resourceVersion"] for each in (CA, TLS)] == versions
    assert (first.problem, second.problem) == ("", "")


async def test_a_lost_authority_is_replaced_while_the_old_one_is_still_trusted(
    admin: Admin, start: Start
) -> None:
    bundles: list[str | None] = []
    certificate = await start(bundles=bundles)
    await _until(lambda: len(bundles) == 1, certificate)
    await admin.merge(TLS, {"metadata": {"annotations": {"mine": "stays"}}})
    await admin.delete(CA)
    await _until(lambda: len(bundles) == 3, certificate)
    old, both, new = (str(each) for each in bundles)
    assert both == new + old
    tls = await admin.get(TLS)
    assert tls["metadata"]["annotations"]["mine"] == "stays"
    (authority,) = certificates_in(new.encode())
    certificates_in(_data(tls, "tls.crt"))[0].verify_directly_issued_by(authority)


async def test_a_new_leader_finishes_what_another_one_began(admin: Admin, start: Start) -> None:
    first = await start()
    await _until(lambda: first.bundle is not None, first)
    old = str(first.bundle)
    await admin.delete(CA)
    await _until(lambda: first.bundle != old, first)
    second = await start()
    await _until(lambda: second.bundle is not None and old not in second.bundle, second)
    assert len(certificates_in(str(second.bundle).encode())) == 1


async def test_a_secret_of_others_is_read_and_never_written(admin: Admin, start: Start) -> None:
    authority = Authority()
    issued = authority.issue(NAMES)
    data = _encoded(tls_crt=issued.certificate, tls_key=issued.key)
    await admin.create(
        SECRETS,
        {
            "metadata": {
                "name": TLS_SECRET,
                # As cert-manager marks its own; the label may remain from before it took over.
                "annotations": {"cert-manager.io/certificate-name": "webhook"},
                "labels": {LABEL: OURS},
            },
            "type": "kubernetes.io/tls",
            "data": data,
        },
    )
    certificate = await start()
    await _until(lambda: "has no certificate in ca.crt" in certificate.problem, certificate)
    assert certificate.bundle is None

    await admin.merge(TLS, {"data": _encoded(ca_crt=authority.pem)})
    await _until(lambda: not certificate.problem, certificate)
    (expected,) = certificates_in(authority.pem)
    (found,) = certificates_in(str(certificate.bundle).encode())
    assert fingerprint(found) == fingerprint(expected)

    other = authority.issue(["other.svc"])
    await admin.merge(TLS, {"data": _encoded(tls_crt=other.certificate, tls_key=other.key)})
    await _until(lambda: f"is not valid for {', '.join(sorted(NAMES))}" in certificate.problem, certificate)
    await admin.merge(TLS, {"data": _encoded(tls_key=issued.key)})
    await _until(lambda: "no tls.crt with a matching tls.key" in certificate.problem, certificate)
    last = await admin.merge(TLS, {"data": _encoded(ca_crt=Authority().pem, tls_key=other.key)})
    await _until(lambda: "not signed by its ca.crt" in certificate.problem, certificate)
    assert (await admin.get(TLS))["metadata"]["resourceVersion"] == last["metadata"]["resourceVersion"]
    assert await admin.find(CA) is None


async def test_a_secret_of_others_is_taken_over_with_the_label(admin: Admin, start: Start) -> None:
    """Its CA remains trusted until no replica can serve with it any more."""
    authority = Authority()
    issued = authority.issue(NAMES)
    data = _encoded(tls_crt=issued.certificate, tls_key=issued.key, ca_crt=authority.pem)
    await admin.create(SECRETS, {"metadata": {"name": TLS_SECRET}, "type": "kubernetes.io/tls", "data": data})
    bundles: list[str | None] = []
    certificate = await start(bundles=bundles)
    await _until(lambda: len(bundles) == 1, certificate)
    await admin.merge(TLS, {"metadata": {"labels": {LABEL: OURS}}})
    await _until(lambda: len(bundles) == 3, certificate)
    theirs, both, ours = (str(each) for each in bundles)
    assert both == ours + theirs


async def test_missing_rights_are_a_problem_until_they_are_there(
    admin: Admin, start: Start, group: str
) -> None:
    namespace = f"certificates-{group.partition('.')[0][-20:].strip('-')}"
    await admin.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    certificate = await start(namespace=namespace)
    await _until(lambda: "403 Forbidden: " in certificate.problem, certificate)
    assert namespace in certificate.problem
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "update"]}]
    await admin.create(f"{rbac}/roles", {"metadata": {"name": "secrets"}, "rules": rules})
    await admin.create(
        f"{rbac}/rolebindings",
        {
            "metadata": {"name": "secrets"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "secrets"},
            "subjects": [{"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}],
        },
    )
    await _until(lambda: certificate.bundle is not None and not certificate.problem, certificate)


async def test_a_secret_that_cannot_be_changed_is_a_problem(admin: Admin, start: Start) -> None:
    certificate = await start()
    await _until(lambda: certificate.bundle is not None, certificate)
    await admin.merge(TLS, {"immutable": True})
    await admin.delete(CA)
    await _until(lambda: "immutable" in certificate.problem, certificate)
    await admin.delete(TLS)
    await _until(lambda: not certificate.problem, certificate)


async def test_the_authoritys_secret_of_others_is_left_alone(admin: Admin, start: Start) -> None:
    body = {"metadata": {"name": CA_SECRET}, "data": _encoded(ca_crt=b"theirs")}
    created = await admin.create(SECRETS, body)
    certificate = await start()
    await _until(lambda: "it is not ours to write" in certificate.problem, certificate)
    assert (await admin.get(CA))["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
