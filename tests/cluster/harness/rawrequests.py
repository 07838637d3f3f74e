"""Requests exactly as written, and answers as text: for objects that Python's parsers of JSON refuse.

They go through `kubectl proxy`, over one connection: starting kubectl for each takes many times as long.
"""

import http.client
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.controlplane.kubectl import Kubectl

_TIMEOUT_SECONDS = 120.0
MERGE_PATCH = "application/merge-patch+json"


class Refused(RuntimeError):
    """The answer's status was not 2xx; the message has the answer."""


class RawRequests:
    """Sends requests as kubectl's user."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection

    def __call__(self, method: str, path: str, body: str = "", media_type: str = "application/json") -> str:
        """The body of the answer. Raises Refused."""
        headers = {"Content-Type": media_type} if body else {}
        self._connection.request(method, path, body.encode() if body else None, headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        if not 200 <= answer.status < 300:
            raise Refused(f"{method} {path}: {answer.status}\n{text}")
        return text


@contextmanager
def raw_requests(kubectl: Kubectl) -> Iterator[RawRequests]:
    """A proxy for the time of the context."""
    command = [*kubectl.command, "proxy", "--port=0"]
    environment = {**os.environ, "KUBERC": "off"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as proxy:
        try:
            assert proxy.stdout is not None
            host, _, port = proxy.stdout.readline().split()[-1].rpartition(":")
            connection = http.client.HTTPConnection(host, int(port), timeout=_TIMEOUT_SECONDS)
            yield RawRequests(connection)
            connection.close()
        finally:
            proxy.terminate()
