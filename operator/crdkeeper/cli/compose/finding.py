"""Finds the composite that a person names as for kubectl, and traces it."""

from crdkeeper.cli.output.printing import Trouble
from crdkeeper.cluster.resources.composed import get_object
from crdkeeper.cluster.resources.composites import get_composite_definition
from crdkeeper.cluster.resources.discovery import discover, list_resources
from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.controllers.composite.inspecting import Inspection, rule
from crdkeeper.core.composites.tree import TracedComposite, is_composite
from crdkeeper.core.resourcenames import ServedResource, parse_resource, suggest


async def find_and_trace(
    connection: Connection, kind: str, namespace: str | None, name: str
) -> TracedComposite:
    """The tree of a composite. Raises ApiError, Unreachable, and Trouble if there is none."""
    async with Client(connection) as client:
        at = await _kind(client, kind)
        where = (namespace or connection.namespace) if at.namespaced else ""
        shown = f"{at.kind} {where}/{name}" if where else f"{at.kind} {name}"
        try:
            value = await get_object(client, at, where, name)
        except ApiError as error:
            raise Trouble(str(error), *_rule(error, at)) from error
        if value is None:
            raise Trouble(f"there is no {shown}")
        if not is_composite(value) and not await _is_defined(client, at):
            raise Trouble(f"{shown} is no composite: no CompositeResourceDefinition defines {at.kind}")
        return await Inspection(client).trace(at, value)


def _rule(error: ApiError, kind: ServedKind) -> list[str]:
    return [f"You need the rule {rule(kind.group, kind.plural, 'get')}."] if error.code == 403 else []


async def _is_defined(client: Client, kind: ServedKind) -> bool:
    try:
        return await get_composite_definition(client, f"{kind.plural}.{kind.group}") is not None
    except ApiError as error:
        if error.code != 403:
            raise
        # Nothing says that it is not.
        return True


async def _kind(client: Client, text: str) -> ServedKind:
    served = await list_resources(client)
    found = {str(each): each for each in served if _is_called(each, text.lower())}
    if len(found) > 1 and text.lower() in found:
        found = {text.lower(): found[text.lower()]}
    if len(found) > 1:
        raise Trouble(f"several resources are called {text}: write one of {', '.join(sorted(found))}")
    if not found:
        meant = suggest(text, served)
        raise Trouble(
            f"the API server has no resource {text}" + (f"; did you mean {meant}?" if meant else "")
        )
    (name,) = found
    target = await discover(client, parse_resource(name))
    if target is None:
        raise Trouble(f"the API server does not serve {name}")
    _, _, group = name.partition(".")
    version = target.endpoint_version
    return ServedKind(
        f"{group}/{version}" if group else version, target.kind, found[name].plural, target.namespaced
    )


def _is_called(resource: ServedResource, text: str) -> bool:
    name, _, group = text.partition(".")
    return name in resource.names and (not group or resource.group == group)
