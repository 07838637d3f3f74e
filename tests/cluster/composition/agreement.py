"""One state of a definition, and whether all who read it agree: kubectl get, kubectl wait, and kstatus."""

import asyncio
from typing import Any

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from tests.cluster.composition.authoring import Author, Definition, condition
from tests.cluster.harness import eventually
from tests.cluster.harness.waiting import TIMEOUT_SECONDS
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError
from tests.kstatus import Status, status_of

Json = Any
_COLUMNS = ["NAME", "ESTABLISHED", "OFFERED", "READY", "REASON", "COMPOSITES", "AGE"]


class Observer:
    """Waits until a definition says something, and compares how its readers understand it."""

    def __init__(self, author: Author, cluster: Cluster) -> None:
        self._author = author
        self._kubectl = cluster.kubectl

    async def sees(
        self,
        definition: Definition,
        type_: str,
        status: str,
        reason: str,
        *texts: str,
        judged: Status,
        seconds: float = TIMEOUT_SECONDS,
    ) -> str:
        """The message of a condition, once it is so and contains these texts, and all readers agree.

        `judged` is the definition's kstatus. A condition may be so before others are, in earlier statuses.
        """
        last: list[Json] = []

        async def look() -> Json:
            found = await self._author.get(definition.path)
            last[:] = [(found or {}).get("status")]
            if found is None or last[0].get("observedGeneration") != found["metadata"]["generation"]:
                return None
            said = condition(found, type_)
            return found if said[:2] == (status, reason) and all(each in said[2] for each in texts) else None

        async def agreed() -> Json:
            found = await look()
            if found is None:
                return None
            said = await self._read(definition)
            now = await self._author.get(definition.path)
            # What changed meanwhile is read again.
            if now is None or now["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
                return None
            last.append((status_of(found), said))
            return found if last[-1] == (judged, _expected(found)) else None

        found = await eventually(
            agreed,
            seconds=seconds,
            otherwise=lambda: f"{type_} is not {status} {reason} with {texts}, judged {judged}: {last}",
        )
        return condition(found, type_)[2]

    async def is_behind(self, definition: Definition) -> None:
        """Checks that nobody takes what is said of an earlier generation, or nothing, for an answer."""
        found = await self._author.get(definition.path)
        assert found["status"]["observedGeneration"] < found["metadata"]["generation"]
        assert status_of(found) == "InProgress"
        assert (await self._read(definition))[0] == [False, False]

    async def _read(self, definition: Definition) -> tuple[list[bool], list[str]]:
        """Whether kubectl wait for Ready and Established returns, and the row of kubectl get but its age."""
        waited = await asyncio.gather(*(self._waits(definition, each) for each in ("Ready", "Established")))
        header, row = (await asyncio.to_thread(self._kubectl, "get", "cxrd", definition.name)).splitlines()
        assert header.split() == _COLUMNS
        return waited, row.split()[:-1]

    async def _waits(self, definition: Definition, type_: str) -> bool:
        """Whether `kubectl wait` for the condition returns at once."""
        name = f"{CompositeResourceDefinition.plural}/{definition.name}"
        try:
            await asyncio.to_thread(self._kubectl, "wait", f"--for=condition={type_}", "--timeout=0", name)
        except KubectlError as error:
            if "condition not met" not in str(error):
                raise
            return False
        return True


def _expected(found: Json) -> tuple[list[bool], list[str]]:
    ready, established, offered = (condition(found, each) for each in ("Ready", "Established", "Offered"))
    name, composites = found["metadata"]["name"], str(found["status"]["composites"])
    row = [name, established[0], offered[0], *ready[:2], composites]
    return [ready[0] == "True", established[0] == "True"], row
