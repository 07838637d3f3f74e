"""What is registered of a controller: its kind, its task, and the watches that it needs.

Apart from the lists of controllers, so that a process imports only its own: each MiB counts at startup.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from crdkeeper.api.meta import Kind
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.state import ClusterState


@dataclass(frozen=True, slots=True)
class Watch:
    """How the objects of a kind that Kopf watches get into the operator's state."""

    keep: Callable[[Mapping[str, Any]], Any]
    """Reduces an object to what the state keeps. Raises ValueError or KeyError if it cannot be read."""
    saw: Callable[[ClusterState, str, Any], None]
    """Passes it to the state, with its name; None once the object is gone."""

    @classmethod
    def whole(cls, kind: type[Kind]) -> "Watch":
        """Keeps each object as its model, for `ClusterState.of`."""
        return cls(kind.model_validate, lambda state, name, seen: state.saw(kind, name, seen))


@dataclass(frozen=True, slots=True)
class Controller:
    """The controller of one kind."""

    kind: type[Kind]
    name: str
    """The name of its task, in logs and in /readyz."""
    begin: Callable[[Context], Coroutine[Any, Any, None]]
    """Subscribes to the state and returns the controller's task, which runs until it is cancelled.

    Imports what few clusters use only when needed, because each MiB counts at startup.
    """
    watch: Watch | None = None
    """None if the controller watches the kind itself."""
    also: Mapping[type[Kind], Watch] = field(default_factory=dict)
    """Kinds of other controllers that it follows, too. A cluster may lack them."""

    def watches(self) -> Mapping[type[Kind], Watch]:
        """The kinds for Kopf to watch."""
        return {**({self.kind: self.watch} if self.watch is not None else {}), **self.also}


def _generation(found: Mapping[str, Any]) -> int:
    # Rules that cannot be parsed are reported in the object's status, so the controller reads the whole
    # object.
    return int(found["metadata"]["generation"])


MIGRATIONS = Watch(StorageMigration.model_validate, ClusterState.saw_migration)
CONVERSIONS = Watch(_generation, ClusterState.saw_conversion)
