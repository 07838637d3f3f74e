"""A process that examines changes of CRDs, so that conversions never wait for it.

`python -m crdkeeper.webhook.changes.workerprocess` reads lines of JSON from standard input, each followed by
the bytes that it announces: a job (an AdmissionReview, with the policies if they are new), the CRD's
conversion rules, then pages of live objects, and at last an empty one, perhaps with the CRD's
DefinitionReport. It writes a line after each step: the answer as far as is known, if it is, and whether it
needs a page. It has no access to the cluster, and ends with its input. With `--decides`, it only says
whether a policy protects the CRD.
"""

import json
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, Final

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.core.changes.examination import Examination
from crdkeeper.core.changes.guarding import GuardingPolicy, guard_of
from crdkeeper.core.changes.review import DeletionRequest, read_change, response
from crdkeeper.core.changes.telling import refusal_of, warnings_of
from crdkeeper.core.conversion.nesting import loads
from crdkeeper.core.conversion.review import BadReview
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.policy.protection import protection_refusal
from crdkeeper.core.text import visible
from crdkeeper.webhook.timelimit import OutOfTime, TimeLimit

_log = logging.getLogger(__name__)

MEMORY_BYTES: Final = 128 << 20
"""Twice what published CRDs take with a page of objects. With conversions, less than in the manifests."""
_NICENESS: Final = 5
"""Of examinations. Conversions go first: nothing can be read without them. So do decisions: they take
milliseconds, and if one comes too late, the API server lets a protected CRD go."""
_LEAST_SECONDS: Final = 0.001
_TELLING_SECONDS: Final = 0.15
"""The part of a change's time in which to tell what is known by then."""
_PROTECTION_SECONDS: Final = 0.6
_TOO_MUCH: Final = "the DefinitionPolicies take more memory than there is to judge by them"
_RULES_SECONDS: Final = 0.3
_COMPARE_SECONDS: Final = 0.6
_COMPILE_SECONDS: Final = 0.6
"""The largest published CRDs take a tenth of the one and a fifth of the other.

Together they may take longer than there is time."""


Json = Mapping[str, Any]


class _Worker:
    def __init__(self, source: BinaryIO, target: BinaryIO, *, decides: bool = False) -> None:
        self._source, self._target, self._decides = source, target, decides
        self._limit = TimeLimit(real=True)
        self._policies: list[DefinitionPolicy] | None = []
        """None if they cannot be read."""

    def run(self) -> None:
        self._say(ready=True)
        while line := self._source.readline():
            said = json.loads(line)
            body, policies = self._source.read(said["body"]), self._source.read(said["policies"])
            if policies:
                self._policies = None  # they make room
                self._policies = _read(policies)
            if self._policies is None:
                self._say(unable=_TOO_MUCH, done=True)
                continue
            try:
                self._examine(said["seconds"], body, self._policies)
            except BadReview as error:
                self._say(bad=str(error), done=True)
            except Exception as error:
                _log.error("A change cannot be read: %s", visible(bounded(repr(error), LINE_BYTES)))
                self._say(bad="it is not about a CRD", done=True)

    def _examine(self, seconds: float, body: bytes, policies: list[DefinitionPolicy]) -> None:
        deadline = time.monotonic() + seconds - _TELLING_SECONDS
        try:
            request = self._limit.run(max(seconds, _LEAST_SECONDS), read_change, body)
        except OutOfTime:
            raise BadReview("it takes too long to read") from None
        if isinstance(request, DeletionRequest):
            refusal = self._protection(deadline - time.monotonic(), policies, request.old, None)
            # Without an answer, it is said that there was no time.
            answer = None if refusal is None else response(request.uid, (), refusal)
            self._say(answer=answer, done=True)
            return
        refusal = ""
        if request.old is not None:
            left = min(deadline - time.monotonic(), _PROTECTION_SECONDS)
            refusal = self._protection(left, policies, request.old, request.new)
            if refusal:
                self._say(answer=response(request.uid, (), refusal), done=True)
                return
        guard = guard_of(policies, request) if not self._decides else None
        if guard is None and refusal is None:
            self._say(answer=None, done=True)
            return
        if guard is None or (request.old or {}).get("spec") == request.new["spec"]:
            self._say(answer=response(request.uid), done=True)
            return
        examination = Examination(request)
        # The first page can be on its way while the CRDs are compared. Until then there is no answer: that
        # the change is allowed, without a word, would say that it was examined.
        self._say(collection=examination.collection, name=request.name)
        said = json.loads(self._source.readline())
        bundle, address = self._source.read(said["rules"]), WebhookAddress(**said["address"])
        if bundle:
            trouble = self._tried(
                min(deadline - time.monotonic(), _RULES_SECONDS),
                lambda: examination.use_rules(bundle, address),
            )
            examination.unruled = examination.unruled or trouble
        # What is not compared is said to be so, and its objects are judged all the same.
        self._tried(min(deadline - time.monotonic(), _COMPARE_SECONDS), examination.compare)
        trouble = ""
        if examination.concerns_objects:
            trouble = self._tried(min(deadline - time.monotonic(), _COMPILE_SECONDS), examination.compile)
        if not examination.is_prepared:
            examination.unexamined = examination.unexamined or trouble
            self._tell(examination, guard, done=True)
            return
        # This stays the answer if the first page does not come in time.
        examination.unexamined = "there was no time"
        self._tell(examination, guard)
        while self._page(examination):
            self._tell(examination, guard)
        self._tell(examination, guard, done=True)

    def _protection(
        self, seconds: float, policies: list[DefinitionPolicy], old: Json, new: Json | None
    ) -> str | None:
        """Why a policy does not let the API go; None if that is not known in time."""
        found: list[str] = []
        self._tried(seconds, lambda: found.append(protection_refusal(policies, old, new)))
        return found[0] if found else None

    def _page(self, examination: Examination) -> bool:
        """Judge the next page. Returns whether to go on."""
        said = json.loads(self._source.readline())
        until = time.monotonic() + said["seconds"]
        content, report = self._source.read(said["page"]), self._source.read(said["report"])
        examination.uncounted = said["unreported"] or examination.uncounted
        if report:
            self._tried(until - time.monotonic(), lambda: examination.read_census(loads(report)))
        if not content:
            examination.unexamined = said["why"]
            return False
        page: list[Any] = []
        trouble = self._tried(until - time.monotonic(), lambda: page.append(_read_page(content)))
        if trouble:
            examination.unexamined = trouble
            return False
        items, left, token = page[0]
        self._say(token=token)
        judged: list[Any] = []
        trouble = self._tried(until - time.monotonic(), lambda: _collect(examination.judged(items), judged))
        for obj, effects in judged:
            examination.add(obj, effects)
        examination.left = left + len(items) - len(judged)
        examination.unexamined = trouble
        return not trouble

    def _tried(self, seconds: float, work: Callable[[], None]) -> str:
        """Do the work. Returns why that failed; empty if it did not."""
        try:
            self._limit.run(max(seconds, _LEAST_SECONDS), work)
        except OutOfTime:
            return "there was no time for more"
        except (MemoryError, RecursionError):
            return "it takes too much memory"
        except Exception as error:
            # Whatever the CRD or an object is, the change must not be held up by it.
            _log.error("A change cannot be examined: %s", visible(bounded(repr(error), LINE_BYTES)))
            return f"crdkeeper failed ({type(error).__name__}), a defect; please report it"
        return ""

    def _tell(self, examination: Examination, guard: GuardingPolicy, *, done: bool = False) -> None:
        uid = examination.request.uid
        answer = response(uid, warnings_of(examination, guard), refusal_of(examination, guard))
        self._say(answer=answer, done=done, objects=examination.concerns_objects and not done)

    def _say(self, **said: Any) -> None:
        if "bad" in said:
            said["bad"] = bounded(said["bad"], LINE_BYTES)
        self._target.write(json.dumps(said).encode() + b"\n")
        self._target.flush()


def _read(policies: bytes) -> list[DefinitionPolicy] | None:
    """The policies; None if they need more memory than there is, as anybody's may be large and many."""
    try:
        return [DefinitionPolicy.model_validate(each) for each in json.loads(policies)]
    except MemoryError:
        return None


def _read_page(content: bytes) -> tuple[list[Any], int, str]:
    """The objects of a page, how many are left, and the token to continue with.

    Raises LookupError and ValueError.
    """
    page = loads(content)
    metadata, items = page["metadata"], page.get("items") or []
    for each in items:
        # The items of a list need not repeat its fields.
        each.setdefault("apiVersion", page.get("apiVersion"))
        each.setdefault("kind", str(page.get("kind")).removesuffix("List"))
    return items, int(metadata.get("remainingItemCount") or 0), metadata.get("continue") or ""


def _collect(judged: Iterable[Any], into: list[Any]) -> None:
    """What has been judged when the time is over counts."""
    for each in judged:
        into.append(each)


def main() -> None:
    """Run until the input ends."""
    # Ctrl-C in a terminal is meant for the serving process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    decides = "--decides" in sys.argv[1:]
    if not decides:
        os.nice(_NICENESS)
    # Nothing else may write to standard output between answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _Worker(sys.stdin.buffer, answers, decides=decides).run()


if __name__ == "__main__":
    main()
