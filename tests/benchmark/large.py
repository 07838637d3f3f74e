"""Very many objects in 10,000 namespaces, by the operator and by the command, each killed several times.

Before, both migrate few objects once, on the same control plane and without kills, to compare the rate.
"""

import random
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final

from crdkeeper.core.migration.counts import format_duration
from tests.benchmark.command import tell
from tests.benchmark.distance import Distance
from tests.benchmark.largecontestants import ByCommand, ByOperator, Contestant
from tests.benchmark.largeturn import Following, Turn
from tests.benchmark.server import Server
from tests.benchmark.subject import Subject
from tests.controlplane.plane import ControlPlane

NAMESPACES: Final = 10_000
KILLS: Final = 10
_FEW: Final = 10_000


class Large:
    """The benchmark on one control plane; `small` and `large` are what was seen so far."""

    def __init__(
        self,
        plane: ControlPlane,
        distance: Distance,
        subject: Subject,
        account: Path,
        *,
        kills: int,
        seed: int,
    ) -> None:
        self._plane = plane
        self._subject = subject
        self._kills = kills
        self._dice = random.Random(seed)
        self._server = Server(plane.kubeconfig)
        self._names = (f"large-{number}" for number in count())
        self._contestants: Mapping[str, Callable[[], Contestant]] = {
            ByOperator.title: lambda: ByOperator(plane, account),
            ByCommand.title: lambda: ByCommand(plane, distance),
        }
        self.small: list[Turn] = []
        self.large: list[Turn] = []

    def run(self, objects: int, rounds: int) -> None:
        """Both, with few objects in rounds, then with so many. Raises WrongResult."""
        began = time.monotonic()
        self._grow(min(_FEW, objects))
        for number in range(rounds):
            # In alternating order, as in the comparison.
            for title in list(self._contestants)[:: -1 if number % 2 else 1]:
                self._turn(title, self.small, kills=0)
        self._grow(objects)
        for title in self._contestants:
            self._turn(title, self.large, kills=self._kills)
        tell(f"took {format_duration(time.monotonic() - began)}")

    def to_object(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "bytesPerObject": self._subject.size,
            "few": [each.to_object() for each in self.small],
            "many": [each.to_object() for each in self.large],
        }

    def _grow(self, objects: int) -> None:
        began = time.monotonic()
        tell(f"making {objects:,} objects")
        self._subject.grow(objects)
        tell(f"  in {format_duration(time.monotonic() - began)}")

    def _turn(self, title: str, turns: list[Turn], *, kills: int) -> None:
        tell(f"{title}: {self._subject.count:,} objects")
        self._subject.flip()
        turn = Turn(title, self._subject.count, kills)
        turns.append(turn)
        Following(
            turn,
            self._contestants[title](),
            self._server,
            self._plane.etcd,
            self._subject,
            next(self._names),
            self._dice,
        ).run()
        self._subject.check()
        if turn.rate is not None:
            tell(f"  {turn.rate:.0f} objects/s")
