"""A change of a CRD with many objects is refused by as many of them as could be examined in time.

It would pass if the API server had to wait for longer than two seconds.
"""

import os
import re
from typing import Final

from tests.cluster.changes.scene import Scene, without

OBJECTS: Final = int(os.environ.get("CRDKEEPER_CHANGE_OBJECTS", "300"))


async def test_as_many_objects_as_there_is_time_for(scene: Scene) -> None:
    await scene.judge("Deny")
    await scene.admin.apply_definition(scene.kind)
    await scene.admin.create_objects(scene.kind, OBJECTS, engine="mysql", note="x")
    changed = scene.kind.changed("v1", spec=without("note")).changed("v2", spec=without("note"))
    said = await scene.until_said("refuses it", changed)
    of = r"(?:the first ([0-9,]+) of about )?([0-9,]+)"
    found = re.search(rf"([0-9,]+) of {of} Database objects would lose spec\.note", said)
    assert found is not None, said
    harmed, examined, total = (int((each or found[3]).replace(",", "")) for each in found.groups())
    assert 0 < harmed == examined <= total == OBJECTS
    assert (examined == OBJECTS) is (found[2] is None)


async def test_the_few_of_many_that_would_lose_a_field_are_counted(scene: Scene) -> None:
    """Even the last by name, on the second page. There is time for both also on a machine much slower."""
    many, few = 54, 6
    await scene.judge("Deny")
    await scene.admin.apply_definition(scene.kind)
    await scene.admin.create_objects(scene.kind, many, engine="mysql")
    for number in range(few):
        await scene.admin.create_objects(
            scene.kind, 1, prefix=f"noted-{number:05d}", engine="mysql", note=f"of {number}"
        )
    changed = scene.kind.changed("v1", spec=without("note")).changed("v2", spec=without("note"))
    expected = f"{few} of {many + few} Database objects would lose spec.note at v1, v2"
    said = await scene.until_said(expected, changed)
    assert "refuses it (spec.changes)" in said
