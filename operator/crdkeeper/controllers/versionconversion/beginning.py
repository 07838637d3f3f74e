"""Starts what VersionConversions need once one exists or existed, which saves other clusters 10 MiB.

The webhook's certificate is also for changes and deletions of CRDs, so that a DefinitionPolicy may be the
first to need it.
"""

import asyncio
import logging

from crdkeeper.cluster.resources.versionconversions import bundle_names
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.context import Context

_log = logging.getLogger(__name__)


async def run_conversions(context: Context) -> None:
    """Manage VersionConversions and the webhook's certificate until cancelled."""
    client, state, namespace, address = context.client, context.state, context.namespace, context.webhook
    wanted = asyncio.Event()

    def saw(kind: str, name: str) -> None:
        if (
            kind == "conversions"
            or (kind == "definitions" and state.is_converted(name, address))
            or state.trust.wanted
        ):
            wanted.set()

    state.listen(saw)
    saw("trust", "")
    left = await _bundles(client, namespace)
    if not left:
        await wanted.wait()
    from crdkeeper.controllers.versionconversion.controller import VersionConversions
    from crdkeeper.controllers.versionconversion.servingcertificate import ServingCertificate

    def renewed() -> None:
        state.trust.bundle = certificate.bundle
        state.trust_changed()
        conversions.renew()

    def tried(problem: str) -> None:
        # Not announced: who waits for a certificate looks again soon, and each problem would wake its source.
        state.trust.problem = problem

    def trust_changed(kind: str, _: str) -> None:
        if kind == "trust":
            certificate.wake()

    conversions = VersionConversions(
        client,
        state,
        context.metrics,
        identity=context.identity,
        namespace=namespace,
        address=address,
        certificate=lambda: (certificate.bundle, certificate.problem),
    )
    certificate = ServingCertificate(
        client,
        namespace=namespace,
        names=address.names,
        on_bundle=renewed,
        on_problem=tried,
        trusted=conversions.trusted,
    )
    conversions.on_trust = certificate.wake
    state.listen(trust_changed)
    conversions.renew()
    for name in left:
        conversions.queue.add(name)
    async with asyncio.TaskGroup() as group:
        group.create_task(conversions.queue.run())
        group.create_task(certificate.run())


async def _bundles(client: Client, namespace: str) -> list[str]:
    """The CRDs that have a bundle of rules, even if their VersionConversion has been deleted meanwhile."""
    try:
        return await bundle_names(client, namespace)
    except (ApiError, Unreachable) as error:
        _log.info("The rules of conversions cannot be listed: %s", error)
        return []
