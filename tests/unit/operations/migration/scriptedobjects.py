"""Objects whose writes have scripted answers, without a server, and a pass over them."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from crdkeeper.api.storagemigration import MigrationLimits
from crdkeeper.cluster.resources.objects import Endpoint, Page
from crdkeeper.cluster.transport.boundedpages import PageSize
from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.migration.evidence import ObjectRef
from crdkeeper.operations.migration.sweep import Sweep


def error(code: int, body: Mapping[str, Any], retry_after: float | None = None) -> Answer:
    return Answer(code, orjson.dumps({"code": code, **body}), retry_after)


Script = Callable[[str, int], Answer | None]
"""The result of an attempt to write an object; None lets it through."""


class Objects:
    """Objects in pages."""

    def __init__(self, *pages: str, answer: Script = lambda name, attempt: None) -> None:
        self.pages = [each.split() for each in pages]
        self.answer = answer
        self.seconds = 0.01
        """For a write."""
        self.attempts: Counter[str] = Counter()
        self.versions: defaultdict[str, str] = defaultdict(lambda: "1")

    def page(self, token: str | None) -> Page:
        index = int(token or 0)
        items = [{"metadata": self.metadata(each)} for each in self.pages[index]]
        more = str(index + 1) if index + 1 < len(self.pages) else ""
        return Page(items, more, sum(map(len, self.pages[index + 1 :])), "500")

    def metadata(self, name: str) -> dict[str, str]:
        return {"name": name, "resourceVersion": self.versions[name]}

    def write(self, name: str) -> Answer:
        self.attempts[name] += 1
        answer = self.answer(name, self.attempts[name])
        if answer is None:
            self.versions[name] = "600"
            return Answer(200, orjson.dumps({"metadata": self.metadata(name)}))
        return answer


@dataclass(frozen=True)
class ScriptedEndpoint(Endpoint):
    """Takes some time for each request, half of it for the answer to a write."""

    objects: Objects

    async def page(self, client: Client, token: str | None, size: PageSize, namespace: str = "") -> Page:
        await asyncio.sleep(0.01)
        return self.objects.page(token)

    async def rewrite(self, client: Client, ref: ObjectRef, *, dry_run: bool = False) -> Answer:
        await asyncio.sleep(self.objects.seconds / 2)
        answer = self.objects.write(ref.name)
        await asyncio.sleep(self.objects.seconds / 2)
        return answer

    async def metadata(self, client: Client, namespace: str, name: str) -> Mapping[str, Any] | None:
        await asyncio.sleep(0.01)
        return self.objects.metadata(name)


def sweep_of(objects: Objects, type_: Any = "Rewrite", **limits: Any) -> Sweep:
    return Sweep(
        Client(Connection()),
        ScriptedEndpoint("example.com", "v2", "widgets", objects),
        type_,
        MigrationLimits.model_validate(limits),
        separator=500,
        retarget_to=None,
        observer=lambda outcome, code, seconds: None,
    )
