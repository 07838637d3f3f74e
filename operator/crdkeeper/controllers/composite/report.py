"""What one pass over a composite has done: counted, and told by Events, also if the pass ends in an error."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from crdkeeper.core.composites.deeds import CompositeWrite
from crdkeeper.core.templates.namespaces import Identity


class PassPhase(StrEnum):
    """What a pass spends its time on."""

    GATHER = "gather"
    PLAN = "plan"
    APPLY = "apply"


@dataclass(slots=True)
class PassReport:
    """Of one pass."""

    seconds: dict[PassPhase, float] = field(default_factory=dict)
    writes: Counter[CompositeWrite] = field(default_factory=Counter)
    objects: list[tuple[CompositeWrite, Identity]] = field(default_factory=list)
    """What was done to which object, in order."""
    slowed: bool = False
    """Whether something that flaps was left as it is."""
    composite: Mapping[str, Any] | None = None
    """As it was read; None if there is none."""
    before: Sequence[Mapping[str, Any]] | None = None
    """The conditions of the composite before the pass has written its status; None if it has said nothing."""
    status: Mapping[str, Any] | None = None
    """The status of the composite as the pass has left it; None if it has said nothing."""

    def saw(self, conditions: Sequence[Mapping[str, Any]]) -> None:
        """These are the conditions before a write: those before the first one count."""
        if self.before is None:
            self.before = conditions

    @contextmanager
    def phase(self, phase: PassPhase) -> Iterator[None]:
        """Measure a part of the pass."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.monotonic() - began

    def wrote(self, write: CompositeWrite, identity: Identity | None = None) -> None:
        """A request has changed the composite, or one of its objects."""
        self.writes[write] += 1
        if identity is not None:
            self.objects.append((write, identity))
