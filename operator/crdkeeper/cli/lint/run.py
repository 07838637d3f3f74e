"""One run of `crdkeeper lint`: reads CRDs one after the other, checks each, and then all together."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from crdkeeper.cli.input.files import STDIN, Failed, LocatedDefinition, Skipped, Unrelated, read
from crdkeeper.cli.input.ignore import Suppressions
from crdkeeper.cli.lint.baseline import AcceptedFindings
from crdkeeper.cli.lint.check import check_definition, check_samples, report_suppressions
from crdkeeper.cli.lint.config import Configurations
from crdkeeper.cli.lint.conflicts import Claimant, add_conflicts, claimant
from crdkeeper.cli.lint.findings import LintResult
from crdkeeper.cli.lint.samples import Samples, kind_of
from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.lint.found import Found
from crdkeeper.core.lint.linter import MOST_STEPS

if TYPE_CHECKING:
    from crdkeeper.cluster.transport.connection import Connection

_Kind = tuple[str, str]
"""Group and kind."""


class Run:
    """Collects the result. `everything` also shows infos; `baseline` has the accepted findings."""

    def __init__(
        self,
        configurations: Configurations,
        *,
        everything: bool = False,
        baseline: AcceptedFindings | None = None,
    ) -> None:
        self._baseline = baseline
        self.result = LintResult(keeps_unreported=baseline is not None)
        self._configurations = configurations
        self._everything = everything
        self._claimants: list[Claimant] = []
        self._comments: dict[int, tuple[str, Suppressions]] = {}
        self._by_file: dict[str, Suppressions] = {}
        self._samples = Samples()
        self._shown: dict[_Kind, str] = {}
        """The files of CRDs, by group and kind; without standard input, which cannot be read again."""
        self._numbers: Counter[tuple[str, _Kind]] = Counter()
        """How many CRDs of one kind a file has."""

    def check_files(self, files: Sequence[str], *, allow_none: bool = False) -> None:
        """Read and check all files; with `allow_none`, files without any CRD are fine.

        Raises BadConfiguration.
        """
        result = self.result
        for each in read(files, self._excludes):
            if isinstance(each, LocatedDefinition):
                self._check(each)
            elif isinstance(each, Skipped):
                result.skipped.append(replace(each, value=None))
                self._samples.add(each.value)
            elif not (allow_none and isinstance(each, Unrelated)):
                result.failed.append(each)
        self._check_samples()
        self._finish()
        if not (result.checked or result.failed or result.excluded or allow_none):
            result.failed.append(Failed(", ".join(files), Position(), "contains no CustomResourceDefinition"))

    def check_cluster(
        self, connection: "Connection", names: Sequence[str], selector: str, *, allow_none: bool = False
    ) -> None:
        """Read and check the CRDs that are named or selected, or all; with `allow_none`, there may be none.

        Raises BadConfiguration, and click.ClickException if there is a problem with the cluster.
        """
        # Imported only here: a check of files takes less time than importing a Kubernetes client.
        from crdkeeper.cli.input.options import run_async
        from crdkeeper.cli.lint.cluster import conditions, gather

        live = run_async(gather(connection, names, selector))
        for each in live.definitions:
            self._check(each, conditions(each))
        self.result.missing.extend(live.missing)
        if not (live.definitions or live.missing or allow_none):
            said = "no CRD has these labels" if selector else "the cluster has no CRD"
            self.result.missing.append(said)
        self._finish(alone=False)

    def _excludes(self, file: Path) -> bool:
        excluded = self._configurations.of(file).excludes(file)
        if excluded:
            self.result.excluded.append(str(file))
        return excluded

    def _check(self, definition: LocatedDefinition, more: Iterable[Found] = ()) -> None:
        configuration = self._configurations.of_name(definition.file)
        check_definition(definition, configuration, self.result, everything=self._everything, more=more)
        claiming = claimant(definition)
        if claiming is not None:
            self._claimants.append(claiming)
        self._comments[id(definition.comments)] = (definition.file, definition.comments)
        self._by_file[definition.file] = definition.comments
        kind = kind_of(definition.value)
        if kind is not None and definition.file not in ("", STDIN):
            self._shown[kind] = definition.file
            self._numbers[definition.file, kind] += 1

    def _check_samples(self) -> None:
        """Try the columns of CRDs with the objects in the files. Files of CRDs are read again, each once."""
        by_file: dict[str, set[_Kind]] = {}
        for kind, file in self._shown.items():
            if self._samples.of(*kind):
                by_file.setdefault(file, set()).add(kind)
        numbers = {file: sum(self._numbers[file, kind] for kind in kinds) for file, kinds in by_file.items()}
        steps = MOST_STEPS // max(sum(numbers.values()), 1)
        for file, kinds in by_file.items():
            for each in islice(_definitions(file, kinds), numbers[file]):
                comments = self._by_file.get(file, each.comments)
                check_samples(
                    replace(each, comments=comments),
                    self._samples.of(*(kind_of(each.value) or ("", ""))),
                    self._configurations.of_name(file),
                    self.result,
                    everything=self._everything,
                    steps=steps,
                )

    def _finish(self, *, alone: bool = True) -> None:
        """Add what can be determined only at the end; `alone`: no API server has checked the names."""
        if alone:
            add_conflicts(self._claimants, self._configurations, self.result, everything=self._everything)
        for file, comments in self._comments.values():
            report_suppressions(comments, file, self._configurations.of_name(file), self.result)
        if self._baseline is not None:
            self._apply(self._baseline)
        self.result.findings.sort(
            key=lambda each: (
                each.file,
                each.position.line,
                each.position.column,
                each.definition,
                each.field,
            )
        )

    def _apply(self, baseline: AcceptedFindings) -> None:
        """Remove the baseline's findings."""
        result = self.result
        baseline.note([*result.unreported, *(each.finding for each in result.ignored)])
        result.findings, result.known = baseline.divide(result.findings)
        result.stale = baseline.stale(result.definitions)


def _definitions(file: str, kinds: Collection[_Kind]) -> Iterator[LocatedDefinition]:
    """The CRDs in a file that define these kinds."""
    for each in read([file]):
        if isinstance(each, LocatedDefinition) and kind_of(each.value) in kinds:
            yield each
