"""The API server returns a request's Audit-ID with every answer, which distinguishes answers."""

import pytest
from yarl import URL

from crdkeeper.cluster.transport.requestids import AUDIT_ID
from tests.cluster.harness import Admin

ID = "0d2f2f0c-9d5e-4b0a-8a77-000000000001"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.mark.parametrize(
    "path",
    [
        f"{CRDS}?limit=1",
        f"{CRDS}?watch=true&timeoutSeconds=1",
        f"{CRDS}/no.example.com",
        "/apis/no.example.com/v1/things",
        "/nowhere",
    ],
)
async def test_the_general_client(admin: Admin, path: str) -> None:
    connection = admin.client.connection
    async with (
        connection.session() as session,
        session.get(URL(connection.host + path, encoded=True), headers={AUDIT_ID: ID}) as response,
    ):
        assert response.headers.getall(AUDIT_ID) == [ID]


async def test_the_lean_client(admin: Admin) -> None:
    pool = admin.client.connection.http1_pool()
    assert pool is not None
    answers = [
        await pool.send("PATCH", f"{CRDS}/no.example.com", "Content-Type: application/json\r\n", b"{}")
        for _ in range(2)
    ]
    pool.close()
    assert [each.audit_id[-4:] for each in answers] == ["0001", "0002"]
    assert answers[0].audit_id[:-4] == answers[1].audit_id[:-4]
