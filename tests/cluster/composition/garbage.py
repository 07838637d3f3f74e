"""The garbage collector: what it owns to an owner, and waiting until it knows what there is."""

from typing import Any, Final

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import CONFIG_MAPS

Json = Any
SECONDS: Final = 150.0
"""It looks for new kinds every 30 seconds."""


async def owned_config_map(author: Author, name: str, owner: Json) -> str:
    """The path of a new ConfigMap that has this owner."""
    await author.client.request("POST", CONFIG_MAPS, {"metadata": {"name": name, "ownerReferences": [owner]}})
    return f"{CONFIG_MAPS}/{name}"


async def caught_up(author: Author, name: str) -> None:
    """Return once the garbage collector knows all ConfigMaps as they are now; `name` is for one of its own.

    It hears of each kind by a watch, and orphans only what it knows. It deletes what has no owner, so once
    that is gone it knows what was written before.
    """
    nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "0"}
    await author.gone(await owned_config_map(author, name, nobody), SECONDS)
