"""Events (events.k8s.io/v1) about our own objects and about CRDs, sent only on changes."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Literal

from crdkeeper.api.meta import API_VERSION, OPERATOR, Kind
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable, may_pass
from crdkeeper.cluster.transport.deadlines import WRITE_SECONDS, within

_log = logging.getLogger(__name__)


async def send_event(
    client: Client,
    about: Kind,
    type_: Literal["Normal", "Warning"],
    reason: str,
    note: str,
    *,
    instance: str,
    controller: str = OPERATOR,
) -> None:
    """Send an Event about a change. A failure is logged: it must not stop the work."""
    regarding = {
        "apiVersion": API_VERSION,
        "kind": about.kind,
        "name": about.metadata.name,
        "uid": about.metadata.uid,
    }
    await _send(client, regarding, type_, reason, note, instance, controller)


async def send_definition_event(
    client: Client,
    crd: Mapping[str, Any],
    type_: Literal["Normal", "Warning"],
    reason: str,
    note: str,
    *,
    instance: str,
    controller: str = OPERATOR,
) -> None:
    """Like `send_event`, about a CRD."""
    regarding = definition_reference(crd["metadata"]["name"], crd["metadata"]["uid"])
    await _send(client, regarding, type_, reason, note, instance, controller)


def definition_reference(name: str, uid: str) -> dict[str, Any]:
    """Refers to a CRD."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "name": name,
        "uid": uid,
    }


async def send_object_event(
    client: Client,
    regarding: Mapping[str, Any],
    type_: Literal["Normal", "Warning"],
    reason: str,
    note: str,
    *,
    instance: str,
    controller: str,
    otherwise: tuple[Mapping[str, Any], str] | None = None,
) -> None:
    """Like `send_event`, about the object that `regarding` refers to, in its namespace.

    `otherwise` is what the Event is about, and its note, if the API server refuses it there: no Event can be
    created in a namespace in deletion.
    """
    await _send(client, regarding, type_, reason, note, instance, controller, otherwise)


async def _send(
    client: Client,
    regarding: Mapping[str, Any],
    type_: str,
    reason: str,
    note: str,
    instance: str,
    controller: str,
    otherwise: tuple[Mapping[str, Any], str] | None = None,
) -> None:
    now = datetime.now(UTC)
    # The API server wants the Event of an object in a namespace there, and of others in this one.
    namespace = regarding.get("namespace") or "default"
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{regarding['name'][:200]}.{token_hex(8)}", "namespace": namespace},
        "eventTime": now.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "reportingController": controller,
        "reportingInstance": instance[:128],
        "action": reason,
        "reason": reason[:128],
        "type": type_,
        "note": bounded(note, LINE_BYTES),
        "regarding": regarding,
    }
    try:
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        sent = client.request("POST", path, body, lean=True)
        await within(WRITE_SECONDS, sent)
    except (ApiError, Unreachable) as error:
        if otherwise is not None and not may_pass(error):
            await _send(client, otherwise[0], type_, reason, otherwise[1], instance, controller)
            return
        _log.warning("An Event on %s was lost: %s", regarding["name"], error)
