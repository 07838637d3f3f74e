"""The API server's own description of its kinds: OpenAPI v3, a document for each group and version."""

from typing import Any, Final

from crdkeeper.cluster.transport.client import Client, find
from crdkeeper.cluster.transport.deadlines import within

_INDEX: Final = "/openapi/v3"
_SECONDS: Final = 10.0
"""An API server passes requests on to aggregated servers, which may hang."""
_MOST_BYTES: Final = 16 << 20
"""That of a large group has one megabyte."""


async def openapi_documents(client: Client) -> dict[str, str]:
    """The path of the document of each group and version, such as v1 or apps/v1.

    It has a hash that changes with the document. Raises ApiError and Unreachable.
    """
    body = await within(_SECONDS, client.request("GET", _INDEX, most=_MOST_BYTES))
    return {
        name.partition("/")[2]: str(each["serverRelativeURL"])
        for name, each in (body.get("paths") or {}).items()
        if name.startswith(("api/", "apis/"))
    }


async def openapi_document(client: Client, path: str) -> dict[str, Any]:
    """One of the documents. Raises ApiError and Unreachable."""
    return await within(_SECONDS, client.request("GET", path, most=_MOST_BYTES))


async def find_plural(client: Client, api_version: str, kind: str) -> str | None:
    """The resource of a kind in a named group, by discovery; None if it is not served.

    Raises ApiError and Unreachable.
    """
    body = await within(_SECONDS, find(client, f"/apis/{api_version}"))
    for each in (body or {}).get("resources") or ():
        if each["kind"] == kind and "/" not in each["name"]:
            return str(each["name"])
    return None
