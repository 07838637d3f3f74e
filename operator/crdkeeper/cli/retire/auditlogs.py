"""Reads the files of `--audit-log`: no API shows audit logs, so a person has to bring them.

They may be of any size: one line is in memory at a time. A pipe can be read only once, a file is read again
whenever uses are counted.
"""

import asyncio
import stat
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import BinaryIO, Final

from crdkeeper.cli.output.printing import Trouble
from crdkeeper.core.retirement.auditlog import AuditTally
from crdkeeper.core.retirement.evidence import AuditedUses

LONGEST: Final = 4 << 20
"""Bytes of a line: an event with the objects of a request and its answer may have more, and is skipped."""
_STDIN: Final = "-"
_YIELD_BYTES: Final = 1 << 20
"""So often, others may work: a signal, or the display."""


class AuditLogs:
    """The files of one command, and what they said when they were read last (None: not yet).

    `tally` has counted nothing yet. Methods raise Trouble for what cannot be read, or is no audit log.
    """

    def __init__(self, files: Sequence[str], tally: AuditTally) -> None:
        self.uses: AuditedUses | None = None
        self._tally = tally
        several = dict.fromkeys(files)
        self._pipes = [each for each in several if each == _STDIN or not _is_file(each)]
        self._files = [each for each in several if each not in self._pipes]

    @property
    def has_pipes(self) -> bool:
        """Whether some can be read only once."""
        return bool(self._pipes)

    def read_pipes(self) -> None:
        """Read what can be read only once; not in an event loop, which a pipe without an end would stop."""
        for each in self._pipes:
            for line in _read(each):
                self._tally.add(line)

    async def read(self) -> AuditedUses:
        """Read the files as they are now, and add what the pipes said."""
        tally = deepcopy(self._tally)
        for each in self._files:
            waiting = 0
            for line in _read(each):
                tally.add(line)
                waiting += len(line or b"") or LONGEST
                if waiting >= _YIELD_BYTES:
                    waiting = 0
                    await asyncio.sleep(0)
        if not tally.events and (tally.unreadable or tally.too_long):
            raise Trouble("--audit-log has no event of audit.k8s.io/v1: API servers write one in each line")
        self.uses = tally.uses()
        return self.uses


def _is_file(name: str) -> bool:
    try:
        return stat.S_ISREG(Path(name).stat().st_mode)
    except OSError as error:
        raise Trouble(f"--audit-log {name}: {error.strerror or error}") from None


def _read(name: str) -> Iterator[bytes | None]:
    try:
        if name == _STDIN:
            yield from lines_of(sys.stdin.buffer)
            return
        with Path(name).open("rb") as stream:
            yield from lines_of(stream)
    except OSError as error:
        raise Trouble(f"--audit-log {name}: {error.strerror or error}") from None


def lines_of(stream: BinaryIO) -> Iterator[bytes | None]:
    """The lines; None for one that is longer than LONGEST, of which nothing is kept."""
    while piece := stream.readline(LONGEST + 1):
        if len(piece) <= LONGEST or piece.endswith(b"\n"):
            yield piece
            continue
        while piece and not piece.endswith(b"\n"):
            piece = stream.readline(LONGEST)
        yield None
