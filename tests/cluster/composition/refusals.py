"""What the API server says of an object: nothing, or why it refuses it."""

import copy
from typing import Any

import orjson

from crdkeeper.cluster.transport.client import Client

Json = Any


async def said(client: Client, path: str, value: Json, old: Json = None) -> list[str]:
    """Why the API server refuses a new object, or an update of another; nothing if it does not.

    `path` is that of the collection.
    """
    if old is None:
        answer = await client.send("POST", f"{path}?dryRun=All", content=orjson.dumps(value))
    else:
        stored = await client.request("POST", path, old)
        changed = copy.deepcopy(value)
        changed["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
        one = f"{path}/{old['metadata']['name']}"
        answer = await client.send("PUT", f"{one}?dryRun=All", content=orjson.dumps(changed))
        await client.request("DELETE", one)
    assert answer.code in (200, 201, 422), answer.content
    causes = answer.json()["details"]["causes"] if answer.code == 422 else ()
    return [each["message"] for each in causes]
