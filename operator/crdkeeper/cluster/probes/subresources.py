"""Reads /scale of an object, which reveals a wrong path or a missing default."""

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.probes.looking import first_object, just_changed, look
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources, ScaleProbe, ScaleRead


async def probe_scale(
    client: Client, definition: DefinitionFacts, declared: DeclaredSubresources
) -> ScaleProbe:
    """Read /scale of one object at each version of `declared.read`. Never raises for what it finds."""
    early = just_changed(client, definition)
    # API servers count each list, and a retirement takes one at a deprecated version for a client's.
    found = await first_object(client, definition, declared.deprecated)
    if found is None:
        return ScaleProbe(early=early)
    if isinstance(found, Failure):
        return ScaleProbe(failure=found, early=early)
    reads = []
    for version in declared.read:
        path = Endpoint(definition.group, version, definition.plural).path(found.namespace, found.name)
        answer = await look(client, f"{path}/scale")
        failure = answer if isinstance(answer, Failure) else None
        # An object that was deleted meanwhile proves nothing.
        if failure is None or failure.trouble is not ProbeTrouble.NOT_FOUND:
            reads.append(ScaleRead(version, str(found), failure))
    return ScaleProbe(tuple(reads), early=early)
