"""A migration that a test waits for, and time that the test puts forward."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from threading import Event

from pykube.config import KubeConfig
from pykube.http import HTTPClient

from crdkeeper.scripting import StorageMigration
from tests.unit.scripting.apiserver import Answer, ApiServer, bookmark, serving, watch
from tests.unit.scripting.objects import NAME

PLENTY = 30.0
"""Seconds that no test takes."""
NO_NEWS = watch(bookmark("101"), stays=True)


class Clock:
    """Monotonic time that can be put forward."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self.sleep = time.sleep

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def over(self, last: Answer) -> Answer:
        """This answer, by which all the time is over."""

        def answered(handler: BaseHTTPRequestHandler, closing: Event) -> None:
            self._ahead += PLENTY
            last(handler, closing)

        return answered


@contextmanager
def waited_for(*answers: Answer) -> Iterator[tuple[ApiServer, StorageMigration]]:
    """A migration on an API server with these answers."""
    with serving(*answers) as server:
        yield server, StorageMigration.named(NAME, api=HTTPClient(KubeConfig.from_url(server.url)))
