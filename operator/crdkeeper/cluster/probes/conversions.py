"""Whether a conversion webhook works: by reads through the API server, and by its certificates."""

import asyncio
from collections.abc import Sequence

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.probes.looking import FirstObject, first_object, just_changed, look
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import METADATA_ONLY, Client
from crdkeeper.core.diagnosis.conversionfacts import ConversionProbe, Read, VersionRead, WebhookFacts
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble


async def probe_conversion(
    client: Client, definition: DefinitionFacts, webhook: WebhookFacts
) -> ConversionProbe:
    """Read an object at each served version, and check the certificates. Never raises for what it finds."""
    # Loaded with the first conversion webhook: it takes 8 MiB, and most clusters have no webhook.
    from crdkeeper.cluster.probes.certificates import parse_bundle, served_certificate

    early = just_changed(client, definition)
    (example, failure, reads), serving = await asyncio.gather(
        read_at_versions(client, definition, definition.served_versions), served_certificate(webhook)
    )
    bundle, bundle_error = parse_bundle(webhook.ca_bundle)
    return ConversionProbe(
        reads=reads,
        example=example,
        failure=failure,
        bundle=bundle,
        bundle_error=bundle_error,
        serving=serving,
        early=early,
    )


async def read_at_versions(
    client: Client, definition: DefinitionFacts, versions: Sequence[str]
) -> tuple[str, Failure | None, tuple[VersionRead, ...]]:
    """Read one object at each of these versions. Returns its name, and why there is none if that failed."""
    found = await first_object(client, definition)
    if found is None:
        return "", None, ()
    if isinstance(found, Failure):
        return "", found, ()
    # Separately: each read from a webhook that hangs takes the whole time limit.
    reads = await asyncio.gather(*(_read_at(client, definition, version, found) for version in versions))
    kept = tuple(each for each in reads if each is not None)
    return str(found), None, kept


async def _read_at(
    client: Client, definition: DefinitionFacts, version: str, found: FirstObject
) -> VersionRead | None:
    """A GET: the API server answers a LIST from its cache, which hides a dead webhook.

    (CacheDelegator.Get in apiserver: without a resourceVersion it reads etcd, and converts.) None if the
    object has been deleted meanwhile.
    """
    path = Endpoint(definition.group, version, definition.plural).path(found.namespace, found.name)
    answer = await look(client, path, accept=METADATA_ONLY)
    if isinstance(answer, Failure):
        if answer.trouble is ProbeTrouble.NOT_FOUND:
            return None
        return VersionRead(version, Read.FAILED, answer)
    stored = definition.stored_versions
    if version not in stored:
        return VersionRead(version, Read.CONVERTED)
    return VersionRead(version, Read.STORED if len(stored) == 1 else Read.UNCERTAIN)
