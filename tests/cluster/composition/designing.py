"""What tests of Compositions in a cluster share: a user who writes them, and looks at what comes of them."""

from collections.abc import Callable
from typing import Any, Final

from tests.cluster.composition.authoring import Author, Definition, condition
from tests.cluster.harness import eventually
from tests.kstatus import Status, status_of

Json = Any
COMPOSITIONS: Final = "/apis/crdkeeper.dev/v1alpha1/compositions"
REVISIONS: Final = "/apis/crdkeeper.dev/v1alpha1/compositionrevisions"


def settings(**data: str) -> Json:
    """A resource: a ConfigMap with this data."""
    template = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "${composite.metadata.name}"},
        "data": data,
    }
    return {"name": "settings", "template": template}


class Designer:
    """A user who writes the Compositions of a definition."""

    def __init__(self, author: Author, definition: Definition) -> None:
        self.author = author
        self.definition = definition
        self._prefix = definition.group.replace(".", "-")
        self._made: set[str] = set()

    def name(self, which: str) -> str:
        """The name of a Composition that no other test has."""
        return f"{which}-{self._prefix}"

    async def put(
        self, which: str, *resources: Json, labels: Json = None, version: str = "v1", **spec: Any
    ) -> Json:
        """Apply a Composition with these resources."""
        value = self.document(which, *resources, labels=labels, version=version, **spec)
        return await self.author.put(f"{COMPOSITIONS}/{self.name(which)}", value)

    def document(
        self, which: str, *resources: Json, labels: Json = None, version: str = "v1", **spec: Any
    ) -> Json:
        """A Composition that is removed at the end."""
        name = self.name(which)
        self._made.add(name)
        reference = {"apiVersion": f"{self.definition.group}/{version}", "kind": self.definition.kind}
        return {
            "apiVersion": "crdkeeper.dev/v1alpha1",
            "kind": "Composition",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"compositeTypeRef": reference, "resources": list(resources), **spec},
        }

    async def delete(self, which: str) -> None:
        """Delete a Composition."""
        await self.author.delete(f"{COMPOSITIONS}/{self.name(which)}")

    async def says(
        self,
        which: str,
        type_: str,
        status: str,
        reason: str,
        *texts: str,
        judged: Status,
        revision: int | None = None,
    ) -> Json:
        """The Composition once a condition is so and contains these texts; `judged` is its kstatus."""
        last: list[Json] = []

        async def look() -> Json:
            found = await self.author.get(f"{COMPOSITIONS}/{self.name(which)}")
            last[:] = [found.get("status")]
            if found["status"].get("observedGeneration") != found["metadata"]["generation"]:
                return None
            said = condition(found, type_)
            same = said[:2] == (status, reason) and all(each in said[2] for each in texts)
            same = same and revision in (None, found["status"]["revision"])
            return found if same and status_of(found) == judged else None

        def otherwise() -> str:
            return f"{type_} is not {status} {reason} with {texts}, judged {judged}: {last}"

        return await eventually(look, otherwise=otherwise)

    async def ready(self, which: str, revision: int = 1) -> Json:
        """The Composition once it is Ready with a revision of this number."""
        return await self.says(which, "Ready", "True", "Current", judged="Current", revision=revision)

    async def revisions(self, which: str) -> list[Json]:
        """Those of a Composition, by number."""
        found = (await self.author.get(REVISIONS))["items"]
        own = [each for each in found if each["spec"]["compositionRef"]["name"] == self.name(which)]
        return sorted(own, key=lambda each: int(each["spec"]["revision"]))

    async def until(self, which: str, holds: Callable[[list[int]], bool]) -> Json:
        """The revisions of a Composition once this is true of their numbers."""
        last: list[Json] = []

        async def look() -> Json:
            last[:] = await self.revisions(which)
            numbers = [each["spec"]["revision"] for each in last]
            # Truthy also if there is none.
            return (last,) if holds(numbers) else None

        found = await eventually(
            look, otherwise=lambda: f"revisions: {[each['metadata']['name'] for each in last]}"
        )
        return found[0]

    async def clean_up(self) -> None:
        """Remove all Compositions and their revisions."""
        for name in self._made:
            await self.author.delete(f"{COMPOSITIONS}/{name}")
        for each in (await self.author.get(REVISIONS))["items"]:
            if each["spec"]["compositionRef"]["name"] in self._made:
                await self.author.delete(f"{REVISIONS}/{each['metadata']['name']}")
