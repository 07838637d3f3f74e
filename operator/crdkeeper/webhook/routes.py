"""What the port for API servers serves, and how a process prepares for that."""

import resource
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from crdkeeper.cluster.resources.changewebhook import PREFIX
from crdkeeper.webhook.http.types import TEXT, Body, HttpLimits, Response

_SWITCH_SECONDS: Final = 0.0005
"""How long a thread that compiles rules may block requests at a time. With 5 ms, some waited 150 ms."""
_OTHER_DESCRIPTORS: Final = 250
"""Besides conversions: probes, the API server, files."""
_PATH: Final = "/convert/"
_ALLOW_POST: Final = TEXT + b"Allow: POST\r\n"

Answered = Response | Coroutine[Any, Any, Response]


class Admitting(Protocol):
    """Judges changes of CRDs, for whoever knows the token."""

    def admits(self, token: str) -> bool:
        """Whether a request with this token comes from an API server."""

    async def answer(self, body: Body) -> Response:
        """The answer to an AdmissionReview."""


@dataclass(frozen=True, slots=True)
class Routes:
    """Passes requests on by their path."""

    convert: Callable[[str, Body, str], Answered]
    """CRD, body and the client's address to an answer."""
    judging: Admitting | None

    def answer(self, _: str, path: str, body: Body, source: str) -> Answered:
        """The answer to a request that has passed the gate."""
        if self.judging is not None and path.startswith(PREFIX):
            return self.judging.answer(body)
        return self.convert(path.removeprefix(_PATH), body, source)

    def gate(self, method: str, path: str) -> Response | None:
        """Turn requests away before their body is read. Only API servers know the token for changes."""
        judging = self.judging
        if judging is None or not path.startswith(PREFIX) or not judging.admits(path.removeprefix(PREFIX)):
            name = path.removeprefix(_PATH)
            if name == path or not name or "/" in name:
                return Response(b"only conversions are served here\n", 404)
        if method != "POST":
            return Response(b"only POST is known here\n", 405, _ALLOW_POST)
        return None


def prepare_to_serve() -> None:
    """Set what is set once for a whole process."""
    sys.setswitchinterval(_SWITCH_SECONDS)


def affordable(limits: HttpLimits) -> HttpLimits:
    """With as many connections as this process may have: one without a file descriptor cannot be accepted.

    Containers often start with a soft limit of 1,024, which may be raised up to the hard limit.
    """
    others = limits.handshakes + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + others
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return limits
    return replace(limits, connections=max(1, min(soft, wanted) - others))
