"""CronTabs whose changes are judged by a VersionConversion's rules, and a change that makes them count."""

import json

from tests.cluster.conversion.rules import RULES, crontab_definition
from tests.cluster.conversion.scene import Scene
from tests.cluster.harness import eventually

DROPPED = {
    **RULES,
    "v1alpha1": [
        {"hub": each["hub"], "drop": True} if each.get("hub") == "spec.replicas" else each
        for each in RULES["v1alpha1"]
    ],
}
_LOST = "1 of 1 CronTab objects would lose spec.replicas with the next write"
_UNEXAMINED = "is not known", "no live object was examined"
"""On a busy machine, there may be no time for the rules or the object: then no loss proves nothing."""


class RuledScene:
    """CronTabs that are converted by rules, whose changes are judged."""

    def __init__(self, converted: Scene) -> None:
        self.converted = converted
        self._kubectl = converted.plane.kubectl

    def store(self, version: str, *flags: str) -> str:
        """What `kubectl apply` says when another version becomes the stored one."""
        definition = crontab_definition(self.converted.group, storage=version, client_config={})
        definition["spec"].pop("conversion")  # the operator has written it
        text = json.dumps(definition)
        return self._kubectl("apply", "--server-side", *flags, "-f", "-", input=text, check=False)

    async def until_refused(self) -> None:
        """Return once v1alpha1 may not be stored, because the rules lose something there."""
        assert "serverside-applied" not in await self._said(f"refuses it (spec.changes): {_LOST}")

    async def until_harmless(self) -> None:
        """Return once v1alpha1 may be stored, and the object was examined."""
        assert "refuses it" not in await self._said("storage-version", _LOST, *_UNEXAMINED)

    async def _said(self, text: str, *absent: str) -> str:
        """What a dry run of storing v1alpha1 says, once it has that text, and none of the others."""
        said = ""

        async def look() -> bool:
            nonlocal said
            said = self.store("v1alpha1", "--dry-run=server")
            return text in said and not any(each in said for each in absent)

        await eventually(look, otherwise=lambda: said)
        return said

    def touch(self, version: str) -> None:
        """Write the object at that version, unchanged but for a label."""
        resource = f"crontabs.{version}.{self.converted.group}"
        self._kubectl("label", resource, "a", f"written-at={version}", "--overwrite")
