"""`crdkeeper convert test` with live objects, and with those generated from the schemas."""

from pathlib import Path

from crdkeeper.api.versionconversion import ConversionVerification
from crdkeeper.cli.convert.rules import BadInput, CompiledRules, permitted
from crdkeeper.cli.output.printing import line
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.definitions import get_definition
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.conversion.verification import generated
from crdkeeper.core.text import count
from crdkeeper.operations.rights import explain, rights_to_read
from crdkeeper.operations.verification import GENERATED, Unlistable, judge_generated, judge_live

_SHOWN = 10


def report_generated(rules: CompiledRules) -> int:
    """Try objects generated from the schemas; returns the number of problems.

    A value that a schema allows and that cannot be converted is reported, but is not a failure: no object may
    have it.
    """
    found = ConversionVerification()
    objects = list(generated(rules.spec, rules.schemas, GENERATED))
    lost = judge_generated(rules.trial, objects, found)
    for each in lost[:_SHOWN]:
        line(f"generated from the schemas: {each}", err=True)
    for each in found.unconvertible[:_SHOWN]:
        line(f"note: the schemas allow values that cannot be converted: {each}", err=True)
    line(f"{count(found.generated, 'object')} generated from the schemas, {count(len(lost), 'failure')}.")
    return len(lost)


async def report_live(rules: CompiledRules, kubeconfig: Path | None, context: str | None) -> int:
    """Try all live objects; returns how many fail."""
    name = str(rules.spec.resource)
    found = ConversionVerification()
    async with Client(Connection(kubeconfig, context)) as client:
        async with permitted(client, rights_to_read([name])):
            definition = await get_definition(client, name)
        if definition is None:
            raise BadInput(
                f"there is no CustomResourceDefinition {name} in the cluster: pass objects with -f"
            )
        objects = [Right("list", definition.group, definition.plural)]
        async with permitted(client, objects):
            try:
                unseen = await judge_live(client, definition, rules.trial, found, lambda: True)
            except Unlistable as error:
                await explain(client, error.error, objects)
                raise BadInput(f"the objects of {name} cannot be listed: {error}") from None
    if unseen:
        line(f"note: {unseen}", err=True)
    for each in found.failures[:_SHOWN]:
        where = "/".join(filter(None, (each.namespace, each.name)))
        line(f"{where}: {each.from_version} to {each.to_version}: {each.message}", err=True)
    for each in found.unmatched_objects[:_SHOWN]:
        where = "/".join(filter(None, (each.namespace, each.name)))
        line(f"note: {where}: {each.from_version} to {each.to_version}: {each.message}", err=True)
    line(f"{count(found.objects, 'live object')}, {found.failed} failed.")
    if found.kept_aside:
        line(f"{count(found.kept_aside, 'object')} needed something kept aside at another version.")
    if found.lossy:
        line(f"{count(found.lossy, 'object')} lost values that the rules drop.")
    return found.failed
