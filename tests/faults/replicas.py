"""The operator's replicas and their Lease, and how tests wait for one to lead or to end."""

from tests.cluster.harness import NAMESPACE, Operator, eventually

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/crdkeeper-operator"
HASTY = {"lease-duration": "20", "renew-deadline": "15", "retry-period": "0.5"}
"""Flags for failover soon, with which nobody loses the Lease only because a busy machine lets it or the API
server stand still for ten seconds."""
PATIENT = {"lease-duration": "120", "renew-deadline": "100"}
"""Flags with which a replica keeps its Lease through an outage or a pause, however long that takes."""


async def until_leading(operator: Operator) -> None:
    """Returns once it leads and works."""

    async def leads() -> bool:
        return operator.leading()

    await eventually(
        leads, otherwise=lambda: f"{operator.identity} does not lead: {operator.probe('/readyz')}"
    )


async def until_ended(operator: Operator) -> int | None:
    """The exit status of a replica that ends by itself."""

    async def over() -> bool:
        return not operator.running

    await eventually(over, otherwise=lambda: f"{operator.identity} goes on: {operator.probe('/readyz')}")
    return operator.exit_status
