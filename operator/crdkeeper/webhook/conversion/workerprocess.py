"""A process for slow conversions, so that the serving process never waits for one.

`python -m crdkeeper.webhook.conversion.workerprocess` reads jobs from standard input, and writes their
results to standard output: a line of JSON each, followed by the bytes that the line announces. It ends with
its input.
"""

import os
import resource
import signal
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

import orjson

from crdkeeper.core.conversion.bundle import unpacked
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.review import BadReview, Reply, answered, given_up
from crdkeeper.webhook.timelimit import OutOfTime, TimeLimit

CPU_SECONDS: Final = 5.0
"""The CPU time for one request. The largest object that etcd stores needs a tenth of it."""
MEMORY_BYTES: Final = 320 << 20
"""Of all workers of a replica. Together with the serving process, less than the 512 MiB in the manifests."""
ANSWER_BYTES: Final = 32 << 20
_MOST_RULES: Final = 20


class _Worker:
    def __init__(
        self, source: BinaryIO, target: BinaryIO, limit_memory: Callable[[int], None] = lambda _: None
    ) -> None:
        self._source, self._target, self._limit_memory = source, target, limit_memory
        self._rules: OrderedDict[str, Conversion] = OrderedDict()
        self._limit = TimeLimit()

    def run(self) -> None:
        while line := self._source.readline():
            job = orjson.loads(line)
            self._limit_memory(job["memory"])
            bundle = self._source.read(job["bundle"])
            body = self._source.read(job["body"])
            said: dict[str, object]
            try:
                reply = self._replied(self._conversion(job["digest"], bundle), body)
                said, content = {**reply._asdict(), "content": len(reply.content)}, reply.content
            except BadReview as error:
                said, content = {"bad": str(error), "content": 0}, b""
            if not trusted(job["memory"]):
                sys.exit("A conversion takes more than this worker's share of the memory; it gets all.")
            self._target.write(orjson.dumps(said) + b"\n")
            self._target.write(content)
            self._target.flush()

    def _conversion(self, digest: str, bundle: bytes) -> Conversion:
        known = self._rules.pop(digest, None)
        if known is None:
            made = compile_conversion(*unpacked(bundle))
            if not isinstance(made, Conversion):
                raise RuntimeError("; ".join(map(str, made)))  # the serving process has compiled it, too
            known = made
        self._rules[digest] = known
        if len(self._rules) > _MOST_RULES:
            self._rules.popitem(last=False)
        return known

    def _replied(self, conversion: Conversion, body: bytes) -> Reply:
        try:
            reply = self._limit.run(CPU_SECONDS, answered, body, conversion)
        except OutOfTime:
            return given_up(body, f"the conversion takes more than {CPU_SECONDS:.0f} s")
        except MemoryError:
            return given_up(body, "the conversion takes too much memory")
        if len(reply.content) > ANSWER_BYTES:
            return given_up(body, f"the converted objects are larger than {ANSWER_BYTES >> 20} MiB")
        return reply


def trusted(memory: int) -> bool:
    """Whether an answer that was made with so much memory cannot be wrong for lack of it.

    Too little memory is not always a MemoryError: orjson then says that a text is no JSON, and a note that
    cannot be read is left out. So a worker with a share must have used less than half of it: then the other
    half was there for the largest allocation, about 16 bytes for each byte of a text of at most 2 MiB.
    """
    if memory >= MEMORY_BYTES:
        return True
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(each.split()[1]) << 10 for each in lines if each.startswith("VmHWM:"))
    return peak <= memory // 2


def _limit_memory(memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (memory, MEMORY_BYTES))


def main() -> None:
    """Run until the input ends."""
    # Ctrl-C in a terminal is meant for the serving process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_memory(MEMORY_BYTES)
    # Nothing else may write to standard output between answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _Worker(sys.stdin.buffer, answers, _limit_memory).run()


if __name__ == "__main__":
    main()
