"""What is known of a composite's objects when not everything can be asked for."""

from typing import Any, cast

from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.core.composites.ownership import Composite
from crdkeeper.core.templates.namespaces import Identity

COMPOSITE: Any = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "uid": "u1"}}


async def test_a_kind_that_was_not_asked_for_is_looked_up_once() -> None:
    gathering = Gathering(
        cast(Any, None), cast(Any, None), Composite.of(COMPOSITE), {}, cast(Any, None), cast(Any, None)
    )
    forged = Identity("example.com", "Forged", "default", "x")
    await gathering.look([forged])
    assert gathering.found.knows(forged)
