"""Releases a finalizer of one object that is due, and says so in an Event on the object."""

from collections.abc import Mapping
from typing import Any

from crdkeeper.api.meta import format_time
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.resources.events import send_object_event
from crdkeeper.cluster.resources.finalizers import Freed, Freeing, release_finalizer
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.finalizers.holding import Held

PER_SECOND = 20.0
"""Slow enough for a person to stop it, and no burden for the API server."""
MOST_FAILED = 3
"""Releases that fail in a row before the API server is to blame, and not the objects."""


async def release(
    client: Client,
    definition: DefinitionFacts,
    object_: Held,
    name: str,
    *,
    on_behalf: str,
    otherwise: Mapping[str, Any],
    by: str,
    instance: str,
) -> Freed:
    """Release it. `on_behalf` says in the Event who named the finalizer, and `by` is the Event's controller.

    `otherwise` refers to what the Event is about if the object cannot have one. A kill between the two loses
    the Event. Raises ApiError and Unreachable.
    """
    assert definition.endpoint_version is not None
    endpoint = Endpoint(definition.group, definition.endpoint_version, definition.plural)
    freed = await release_finalizer(client, endpoint, object_, name)
    if freed.freeing is Freeing.RELEASED:
        written = (
            f"last written {format_time(object_.written)} by {object_.writer or 'an unknown manager'}"
            if object_.written is not None
            else "never written by a known manager"
        )
        regarding = {
            "apiVersion": f"{definition.group}/{definition.endpoint_version}",
            "kind": definition.kind,
            "namespace": object_.namespace,
            "name": object_.name,
            "uid": object_.uid,
        }
        why = f"on behalf of {on_behalf}: in deletion since {format_time(object_.since)}, {written}."
        await send_object_event(
            client,
            regarding,
            "Normal",
            "FinalizerReleased",
            f"Released the finalizer {name} {why}",
            instance=instance,
            controller=by,
            otherwise=(otherwise, f"Released the finalizer {name} of {definition.name} {object_} {why}"),
        )
    return freed
