"""An API server whose objects have as much metadata as a tenant gave them, and a client of it."""

import asyncio
from itertools import accumulate
from typing import Any
from urllib.parse import parse_qs

import orjson

from crdkeeper.cluster.resources.objects import Page
from crdkeeper.cluster.transport.client import Answer, Client, TooLarge
from crdkeeper.cluster.transport.connection import Connection

KIB, MIB = 1 << 10, 1 << 20
_OWN_BYTES = 300
"""Of an object's metadata, beside its annotation."""


class LargeObjects(Client):
    """Objects w0, w1, … that have an annotation of these `sizes`; lists have no order but that.

    With `managed`, the version v1 of Widgets, and that size, are in managedFields instead.
    """

    def __init__(self, *sizes: int, managed: bool = False) -> None:
        super().__init__(Connection())
        self._sizes = sizes
        self._managed = managed
        self._ends = [0, *accumulate(each + _OWN_BYTES for each in sizes)]
        self.limits: list[int] = []
        """Of each list that was requested."""
        self.answers: list[tuple[int, int]] = []
        """Of each that was read to its end: how many objects, and how many bytes."""
        self.written: list[str] = []
        self.most_ahead = 0
        """The most bytes of objects that were listed, but not written yet, when a list was requested."""

    @property
    def largest(self) -> int:
        """The bytes of the largest answer with more than one object."""
        return max(size for number, size in self.answers if number > 1)

    async def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        most: int | None = None,
    ) -> Answer:
        address, _, query = path.partition("?")
        if method == "PATCH":
            await asyncio.sleep(0)
            self.written.append(name := address.rpartition("/")[2])
            return _json(_metadata(name, "600"))
        options = parse_qs(query)
        limit, start = int(options["limit"][0]), int(options.get("continue", ["0"])[0])
        self.limits.append(limit)
        written = sum(self._sizes[int(name[1:])] for name in self.written)
        self.most_ahead = max(self.most_ahead, sum(self._sizes[:start]) - written)
        end = min(start + limit, len(self._sizes))
        if self._ends[end] - self._ends[start] > (most or 256 * MIB):
            raise TooLarge("the response is too large")
        items = [
            _metadata(f"w{number}", "1", **self._filling(self._sizes[number])) for number in range(start, end)
        ]
        more = {"continue": str(end)} if end < len(self._sizes) else {}
        answer = _json({"metadata": {"resourceVersion": "500", **more}, "items": items})
        self.answers.append((len(items), len(answer.content)))
        return answer

    def _filling(self, size: int) -> dict[str, Any]:
        if not self._managed:
            return {"annotations": {"a": "x" * size}}
        return {"managedFields": [{"apiVersion": "example.com/v1", "fieldsV1": {"f:" + "x" * size: {}}}]}

    async def listed(self, list_page: Any) -> list[str]:
        """The names of all objects, by pages that `list_page` gets for each token."""
        names: list[str] = []
        token: str | None = None
        while True:
            page: Page = await list_page(token)
            names += [each["metadata"]["name"] for each in page.items]
            token = page.continue_token or None
            if token is None:
                return names


def _metadata(name: str, version: str, **more: Any) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "metadata": {"name": name, "resourceVersion": version, **more}}


def _json(body: Any) -> Answer:
    return Answer(200, orjson.dumps(body))
