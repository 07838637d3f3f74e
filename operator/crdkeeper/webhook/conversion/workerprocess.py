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
from typing import BinaryIO, Final

import orjson

from crdkeeper.core.conversion.bundle import unpacked
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.review import BadReview, Reply, answered, given_up
from crdkeeper.webhook.conversion.timelimit import OutOfTime, TimeLimit

CPU_SECONDS: Final = 5.0
"""The CPU time for one request. The largest object that etcd stores needs a tenth of it."""
MEMORY_BYTES: Final = 320 << 20
"""Together with the serving process, less than the 512 MiB in the manifests."""
ANSWER_BYTES: Final = 32 << 20
_MOST_RULES: Final = 20


class _Worker:
    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source, self._target = source, target
        self._rules: OrderedDict[str, Conversion] = OrderedDict()
        self._limit = TimeLimit()

    def run(self) -> None:
        while line := self._source.readline():
            job = orjson.loads(line)
            bundle = self._source.read(job["bundle"])
            body = self._source.read(job["body"])
            said: dict[str, object]
            try:
                reply = self._replied(self._conversion(job["digest"], bundle), body)
                said, content = {**reply._asdict(), "content": len(reply.content)}, reply.content
            except BadReview as error:
                said, content = {"bad": str(error), "content": 0}, b""
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


def main() -> None:
    """Run until the input ends."""
    # Ctrl-C in a terminal is meant for the serving process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    # Nothing else may write to standard output between answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _Worker(sys.stdin.buffer, answers).run()


if __name__ == "__main__":
    main()
