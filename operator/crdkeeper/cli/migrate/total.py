"""The sum of the migrations of one command."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.core.text import count


@dataclass(slots=True)
class Total:
    """All migrations together; `resources` is empty if there is only one, whose own figures say it all.

    Its sums are kept up to date step by step: there may be thousands of migrations.
    """

    resources: Sequence[str]
    _seen: dict[str, tuple[int, int, int, int]] = field(default_factory=dict, init=False)
    """Of each resource: percent, objects done, objects per second, objects refused."""
    _sums: list[int] = field(default_factory=lambda: [0, 0, 0, 0], init=False)
    _over: dict[str, bool] = field(default_factory=dict, init=False)
    """Of each resource to which nothing more happens, whether it failed."""

    def saw(self, migration: StorageMigration) -> None:
        """Take over the figures of a migration."""
        progress = migration.status.progress
        done = progress.rewritten + progress.current + progress.gone
        self._set(
            str(migration.spec.resource),
            (progress.percent, done, progress.objects_per_second, progress.quarantined),
        )

    def ended(self, resource: str, *, failed: bool) -> None:
        """Nothing more happens to this resource."""
        self._over[resource] = failed
        _, done, _, refused = self._seen.get(resource, (0, 0, 0, 0))
        self._set(resource, (100, done, 0, refused))

    def _set(self, resource: str, figures: tuple[int, int, int, int]) -> None:
        before = self._seen.get(resource, (0, 0, 0, 0))
        self._seen[resource] = figures
        self._sums = [old + new - gone for old, new, gone in zip(self._sums, figures, before, strict=True)]

    @property
    def percent(self) -> int:
        """Each resource counts the same: how many objects they have is known only late."""
        return self._sums[0] // max(1, len(self.resources))

    @property
    def failed(self) -> int:
        """How many failed."""
        return sum(self._over.values())

    @property
    def ends(self) -> str:
        """How many of the migrations are over."""
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{len(self._over):,} of {count(len(self.resources), 'resource')} done{failed}"

    @property
    def figures(self) -> str:
        """Objects and their rate."""
        _, done, rate, refused = self._sums
        return f"{count(done, 'object')}, {rate:,}/s, {refused:,} refused"


def total_line(total: Total) -> str:
    """The sum in one line."""
    return f"{total.ends} ({total.percent}%), {total.figures}"
