"""Starts what VersionConversions need with the first of them: 10 MiB that many clusters can do without."""

import asyncio

from crdkeeper.cluster.client import Client
from crdkeeper.controllers.metrics import Metrics
from crdkeeper.controllers.state import State
from crdkeeper.core.conversion.target import WebhookAddress


class Conversions:
    """The controller of VersionConversions, and the certificate of the webhook that it has serve them."""

    def __init__(
        self,
        client: Client,
        state: State,
        metrics: Metrics,
        *,
        identity: str,
        namespace: str,
        address: WebhookAddress,
    ) -> None:
        self._client = client
        self._state = state
        self._metrics = metrics
        self._identity = identity
        self._namespace = namespace
        self._address = address
        self._wanted = asyncio.Event()
        state.listen(self._saw)

    def _saw(self, kind: str, name: str) -> None:
        if kind == "conversions" and name in self._state.conversions:
            self._wanted.set()

    async def run(self) -> None:
        """Work until cancelled."""
        await self._wanted.wait()
        from crdkeeper.controllers.servingcertificate import ServingCertificate
        from crdkeeper.controllers.versionconversions import VersionConversions

        conversions = VersionConversions(
            self._client,
            self._state,
            self._metrics,
            identity=self._identity,
            namespace=self._namespace,
            address=self._address,
            certificate=lambda: (certificate.bundle, certificate.problem),
        )
        certificate = ServingCertificate(
            self._client,
            namespace=self._namespace,
            names=self._address.names,
            on_bundle=conversions.renew,
            trusted=conversions.trusted,
        )
        conversions.on_trust = certificate.wake
        conversions.renew()
        async with asyncio.TaskGroup() as group:
            group.create_task(conversions.queue.run())
            group.create_task(certificate.run())
