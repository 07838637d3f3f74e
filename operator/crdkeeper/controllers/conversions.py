"""Starts what VersionConversions need with the first of them: 10 MiB that many clusters can do without."""

import asyncio

from crdkeeper.cluster.client import Client
from crdkeeper.controllers.metrics import Metrics
from crdkeeper.controllers.state import State
from crdkeeper.core.conversion.target import WebhookAddress


async def run_conversions(
    client: Client, state: State, metrics: Metrics, *, identity: str, namespace: str, address: WebhookAddress
) -> None:
    """Look after VersionConversions and the certificate of the webhook at `address`, until cancelled."""
    wanted = asyncio.Event()
    state.listen(lambda kind, _: wanted.set() if kind == "conversions" else None)
    while not state.conversions:
        wanted.clear()
        await wanted.wait()
    from crdkeeper.controllers.servingcertificate import ServingCertificate
    from crdkeeper.controllers.versionconversions import VersionConversions

    conversions = VersionConversions(
        client,
        state,
        metrics,
        identity=identity,
        namespace=namespace,
        address=address,
        certificate=lambda: (certificate.bundle, certificate.problem),
    )
    certificate = ServingCertificate(
        client,
        namespace=namespace,
        names=address.names,
        on_bundle=conversions.renew,
        trusted=conversions.trusted,
    )
    conversions.on_trust = certificate.wake
    conversions.renew()
    async with asyncio.TaskGroup() as group:
        group.create_task(conversions.queue.run())
        group.create_task(certificate.run())
