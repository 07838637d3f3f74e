"""What an object loses when it is written: it is then stored in another version, which may lack a field."""

from typing import Any

from crdkeeper.core.conversion.values import Unconvertible
from crdkeeper.core.rehearsal.definition import CompiledDefinition, NotRehearsed, version_of
from crdkeeper.core.rehearsal.differences import Difference, How, differences


def lost_by_writing(definition: CompiledDefinition, obj: Any) -> list[Difference]:
    """The fields that a write without changes removes for readers of the object's own version.

    Empty if such a write is rejected, or if the conversion is unknown.
    """
    source, endpoint = version_of(obj), definition.endpoint
    if definition.storage == source or endpoint is None or source not in definition.versions:
        return []
    try:
        before = definition.read(obj, source).object
        current = definition.read(obj, endpoint).object
        if before is None or current is None:
            return []
        written = definition.schema(endpoint).rewrite(current)
        if written.object is None or written.violations:
            return []
        kept = definition.arrived(written.object, definition.storage).object
        after = definition.read(kept, source).object if kept is not None else None
        node = definition.schema(source).node
    except (NotRehearsed, Unconvertible):
        return []
    if after is None:
        return []
    return [each for each in differences(before, after, node) if each.how is not How.NEW]
