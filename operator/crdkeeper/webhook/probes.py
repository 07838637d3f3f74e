"""The answers of the port without TLS: for kubelets and Prometheus."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from crdkeeper.webhook.http.types import TEXT, Response
from crdkeeper.webhook.rules.rulebook import RuleSource

_ALLOW_GET: Final = TEXT + b"Allow: GET\r\n"


def probed(
    method: str,
    path: str,
    healthz: Callable[[], Response],
    readyz: Callable[[], Response],
    metrics: Callable[[], Response],
) -> Response:
    """The answer to a request."""
    if method != "GET":
        return Response(b"only GET is known here\n", 405, _ALLOW_GET)
    answers = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
    return answers[path]() if path in answers else Response(b"not found\n", 404)


def readiness(
    rules: RuleSource,
    *,
    broken: str,
    stopping: bool,
    loaded: bool,
    served: bool,
    judging: bool,
    listening: bool,
    certificate: Path,
) -> Response:
    """The answer of /readyz: whether API servers may be sent here.

    `broken` names a task that ended; `loaded`: all rules that existed at startup are compiled;
    `served`: that was so before, and other processes still serve; `judging`: there are policies that judge
    changes of CRDs, or protect CRDs.
    """
    if broken:
        return Response(f"{broken}\n".encode(), 503)
    if stopping:
        return Response(b"stopping\n", 503)
    seconds, why = rules.unseen()
    if not loaded and not served:
        return Response(f"the rules are not compiled yet: {why}\n".encode(), 503)
    unserved = sorted((rules.blocking & rules.problems.keys()) - rules.conversions.keys())
    if unserved and not served:
        return Response("".join(f"{each}: {rules.problems[each]}\n" for each in unserved).encode(), 503)
    if (rules.conversions or judging) and not listening:
        return Response(f"waiting for {certificate}\n".encode(), 503)
    stale = f"; changes to the rules may have been missed for {seconds:.0f} s: {why}" if why else ""
    return Response(f"converting {', '.join(sorted(rules.conversions)) or 'nothing'}{stale}\n".encode())
