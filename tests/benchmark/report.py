"""The benchmark's output: tables of medians with ranges, and what exactly each figure is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from tests.benchmark.contestants import OPERATOR, SERVERS, Work
from tests.benchmark.meter import Usage

LEGEND: Final = """\
objects/s     bare client: from the first patch to the last answer, without listing the objects before.
              crdkeeper: from the condition Settled to Rewritten, with listing; without the wait before.
              by page: from the first page to the last answer, without Cluster API's limit of 100/s.
              in-tree: from the first rewritten object to Succeeded; without its wait, up to a minute.
of ceiling    the rate as a part of the bare client's in the same round: the median of these parts.
with proof    crdkeeper from Settled to Succeeded: with the second pass that proves it, and the trim; as
              objects/s, and as a part of the bare client's rate in the same round.
CPU           of the process per object while objects are rewritten, less what it uses when idle: the
              operator's, the bare client's, all of kube-controller-manager's. Where all three share a
              machine that they fill, cores / all CPU is the rate, whatever else disturbs the measurement.
peak memory   largest resident size of the operator's process during the migration."""

_WIDTHS: Final = (42, 16, 12, 22, 12, 15, 10, 10, 13)
_HEADER: Final = (
    "",
    "objects/s",
    "of ceiling",
    "with proof",
    "client CPU",
    "apiserver CPU",
    "etcd CPU",
    "all CPU",
    "peak memory",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One contestant with its work in each round."""

    name: str
    works: Sequence[Work]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All rounds with that many objects of that size. The first row is the maximum for the others."""

    objects: int
    size: int
    calibration: Mapping[int, float]
    """Objects per second of the bare client by concurrent requests."""
    rows: Sequence[Row]

    def lines(self) -> list[str]:
        """The table."""
        rounds = len(self.rows[0].works)
        calibration = ", ".join(f"{number}: {rate:.0f}" for number, rate in self.calibration.items())
        return [
            f"{self.objects:,} objects of {self.size:,} bytes; medians of {rounds} rounds (lowest-highest)",
            "",
            _columns(_HEADER),
            *(_columns(self._cells(row)) for row in self.rows),
            "",
            f"Bare client's objects/s by requests at a time: {calibration}.",
            f"Other programs kept {self._noise():.1f} cores busy meanwhile.",
        ]

    def _cells(self, row: Row) -> tuple[str, ...]:
        rates = self._rates([work.usage for work in row.works])
        proved = [work.whole for work in row.works if work.whole and row.name == OPERATOR]
        return (
            row.name,
            spread(rates),
            f"{self._part(rates):.0%}",
            f"{spread(self._rates(proved))}, {self._part(self._rates(proved)):.0%}" if proved else "-",
            self._per_object([work.client_cpu for work in row.works]),
            *(self._per_object([work.usage.cpu[name] for work in row.works]) for name in SERVERS),
            self._per_object([sum(work.usage.cpu.values()) for work in row.works]),
            _peak(row.works),
        )

    def _rates(self, spans: Sequence[Usage]) -> list[float]:
        return [self.objects / each.seconds for each in spans]

    def _part(self, rates: Sequence[float]) -> float:
        """Of the first row's, round by round."""
        ceilings = self._rates([work.usage for work in self.rows[0].works])
        return median(rate / ceiling for rate, ceiling in zip(rates, ceilings, strict=True))

    def _per_object(self, seconds: Sequence[float]) -> str:
        return f"{1000 * median(seconds) / self.objects:.2f} ms"

    def _noise(self) -> float:
        used = [work.usage for row in self.rows for work in row.works]
        return sum(each.others for each in used) / sum(each.seconds for each in used)

    def to_object(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "objects": self.objects,
            "bytesPerObject": self.size,
            "bareClientObjectsPerSecond": {str(number): rate for number, rate in self.calibration.items()},
            "contestants": {row.name: [work.to_object() for work in row.works] for row in self.rows},
        }


@dataclass(frozen=True, slots=True)
class Single:
    """One migration by crdkeeper alone."""

    objects: int
    work: Work

    def line(self) -> str:
        """In a sentence."""
        work, whole = self.work, self.work.whole or self.work.usage
        return (
            f"crdkeeper alone, {self.objects:,} objects: {self.objects / work.usage.seconds:.0f} objects/s "
            f"({self.objects / whole.seconds:.0f} with proof), "
            f"{1000 * work.client_cpu / self.objects:.2f} ms CPU, peak memory {_peak([work])}"
        )

    def to_object(self) -> dict[str, Any]:
        """As JSON."""
        return {"objects": self.objects, **self.work.to_object()}


def _columns(cells: Sequence[str]) -> str:
    first, *others = cells
    fitted = (cell.rjust(width) for cell, width in zip(others, _WIDTHS[1:], strict=True))
    return first.ljust(_WIDTHS[0]) + "".join(fitted)


def spread(rates: Sequence[float]) -> str:
    """The median and, of several, the lowest and the highest."""
    if len(rates) == 1:
        return f"{rates[0]:.0f}"
    return f"{median(rates):.0f} ({min(rates):.0f}-{max(rates):.0f})"


def _peak(works: Sequence[Work]) -> str:
    peaks = [work.peak_memory for work in works if work.peak_memory is not None]
    return f"{max(peaks) / 2**20:.0f} MiB" if peaks else "-"
