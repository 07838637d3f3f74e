"""Releases one finalizer of one object, exactly as it was seen."""

from dataclasses import dataclass
from enum import Enum

import orjson

from crdkeeper.api.meta import FIELD_MANAGER
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import JSON_PATCH, METADATA_ONLY, ApiError, Client, Unreachable
from crdkeeper.core.finalizers.holding import Held
from crdkeeper.core.migration.evidence import ObjectRef, Outcome, concerns, outcome_of


class Freeing(Enum):
    """What became of an attempt."""

    RELEASED = "released"
    GONE = "gone"
    CHANGED = "changed"
    """Somebody has written the object, or it is another one of the same name: look again."""
    REFUSED = "refused"
    FORBIDDEN = "forbidden"
    """Our account may not patch the resource."""


@dataclass(frozen=True, slots=True)
class Freed:
    """The result of an attempt, and why it was refused."""

    freeing: Freeing
    message: str = ""
    resource_version: str = ""
    """Of the object after a release."""


async def release_finalizer(client: Client, endpoint: Endpoint, object_: Held, name: str) -> Freed:
    """Take the finalizer off the object, if it is as it was. Raises ApiError and Unreachable.

    The tests in the patch make sure of that in the same transaction: any write in between has changed the
    resourceVersion, and another object of the same name has another uid. A finalizer that is listed more than
    once goes as a whole: the API server makes whoever removes one of two the manager of the other.
    """
    places = [f"/metadata/finalizers/{at}" for at, each in enumerate(object_.finalizers) if each == name]
    tests = {
        "/metadata/uid": object_.uid,
        "/metadata/resourceVersion": object_.resource_version,
        **dict.fromkeys(places, name),
    }
    patch = [{"op": "test", "path": path, "value": value} for path, value in tests.items()]
    # The last one first, so that the others are still at their places.
    patch += [{"op": "remove", "path": each} for each in reversed(places)]
    path = endpoint.path(object_.namespace, object_.name)
    answer = await client.send(
        "PATCH",
        f"{path}?fieldManager={FIELD_MANAGER}",
        content=orjson.dumps(patch),
        content_type=JSON_PATCH,
        accept=METADATA_ONLY,
    )
    body = answer.json()
    ref = ObjectRef(object_.namespace, object_.name, object_.resource_version, uid=object_.uid)
    match outcome_of(ref, answer.code, body, retry_after=answer.retry_after):
        # The last finalizer takes the object with it, which leaves the resourceVersion as it was.
        case Outcome.REWRITTEN | Outcome.CURRENT:
            if not concerns(body, object_.namespace, object_.name, object_.uid):
                client.distrust()
                raise Unreachable(f"PATCH {path}: the response is for another object")
            left = body["metadata"].get("finalizers") or []
            if name in left:
                return Freed(Freeing.REFUSED, "admission has put it back")
            return Freed(Freeing.RELEASED, resource_version=body["metadata"]["resourceVersion"])
        case Outcome.GONE:
            return Freed(Freeing.GONE)
        case Outcome.CONFLICT | Outcome.UNSERVED:
            return Freed(Freeing.CHANGED)
        case Outcome.FORBIDDEN:
            return Freed(Freeing.FORBIDDEN, ApiError(answer.code, body).message)
        case Outcome.REFUSED:
            # A test that failed and an object that is refused look the same.
            return await _whether_changed(client, endpoint, object_, ApiError(answer.code, body).message)
        case _ if answer.code < 300:
            raise Unreachable(f"PATCH {path}: the response ({answer.code}) is not the API server's")
        case _:
            raise ApiError(answer.code, body, answer.retry_after)


async def _whether_changed(client: Client, endpoint: Endpoint, object_: Held, message: str) -> Freed:
    now = await endpoint.metadata(client, object_.namespace, object_.name)
    if now is None or now.get("uid") != object_.uid:
        return Freed(Freeing.GONE)
    same = now.get("resourceVersion") == object_.resource_version
    return Freed(Freeing.REFUSED, message) if same else Freed(Freeing.CHANGED)
