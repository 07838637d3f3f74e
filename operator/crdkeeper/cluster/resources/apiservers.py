"""The API servers of the control plane, by the identity Leases that each renews every ten seconds."""

from datetime import timedelta

from crdkeeper.apiserver.golang.times import moment
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.migration.observation import ApiServerLease

_PATH = (
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    "?labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver"
)


async def list_leases(client: Client) -> list[ApiServerLease] | None:
    """List the Leases; None if our account may not read them."""
    try:
        body = await client.request("GET", _PATH)
    except ApiError as error:
        if error.code == 403:
            return None
        raise
    found = []
    for item in body["items"]:
        spec = item["spec"]
        renewed = moment(spec["renewTime"])
        found.append(
            ApiServerLease(
                name=item["metadata"]["name"],
                resource_version=item["metadata"]["resourceVersion"],
                expires_at=renewed + timedelta(seconds=spec.get("leaseDurationSeconds", 3600)),
            )
        )
    return found
