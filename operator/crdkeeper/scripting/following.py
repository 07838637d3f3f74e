"""Follows one object of the cluster: a list, a watch from there, and both again if either fails.

pykube-ng's own watch ends with the client's timeout for answers, takes an error such as 410 for an object,
and keeps its connection when the caller stops reading. See "Efficient detection of changes" on
https://kubernetes.io/docs/reference/using-api/api-concepts/.
"""

import json
import math
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn
from urllib.parse import urlencode

import requests
from pykube.exceptions import HTTPError
from pykube.http import HTTPClient
from urllib3.exceptions import ReadTimeoutError

from crdkeeper.core.migration.pace import backoff
from crdkeeper.scripting.errors import ConnectError

_CONNECT_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 30.0
_QUIET_SECONDS: Final = 10.0
"""A watch that is silent this long is opened again: a connection can be dead without a sign."""
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 5.0
_TRANSIENT: Final = frozenset((408, 429, 500, 502, 503, 504))
_NETWORK: Final = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)


class Deadline:
    """A point in monotonic time."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Seconds; negative when it has passed."""
        return self._end - time.monotonic()


@dataclass(frozen=True, slots=True)
class SeenState:
    """What was seen: the object's current state or, if it is `gone`, its last state if known."""

    object: dict[str, Any] | None
    gone: bool = False


class _Interrupted(Exception):
    """The API server did not answer, or the answer was cut off: retry after `pause` seconds."""

    def __init__(self, text: str, pause: float = 0.0) -> None:
        super().__init__(text)
        self.pause = pause


class _Expired(_Interrupted):
    """The API server no longer has the changes since then: list again (410)."""


class _Quiet(Exception):
    """The watch was silent for longer than the client waits."""


class Following:
    """The states of one object, beginning with the current one, until the deadline.

    `trouble` says why the API server cannot be reached at present; it is empty if it can. Only once it is
    `listed` is it known whether there is such an object.
    """

    def __init__(self, api: HTTPClient, api_version: str, plural: str, name: str, deadline: Deadline) -> None:
        self.trouble = ""
        self.listed = False
        self._api = api
        self._api_version = api_version
        self._plural = plural
        self._name = name
        self._deadline = deadline
        self._version: str | None = None
        self._failures = 0

    def states(self) -> Generator[SeenState]:
        """Ends at the deadline. Skips a state only if a newer one follows.

        Raises HTTPError of pykube for answers that a retry does not change, such as 403, and ConnectError for
        an API server whose certificate is not trusted.
        """
        while self._deadline.remaining > 0:
            try:
                if self._version is None:
                    yield self._list()
                else:
                    yield from self._watch(self._version)
            except _Quiet:
                continue
            except _Interrupted as interrupted:
                if isinstance(interrupted, _Expired):
                    self._version = None
                self.trouble = str(interrupted)
                pause = backoff(self._failures, _FIRST_PAUSE, _LONGEST_PAUSE)
                self._failures += 1
                time.sleep(max(0.0, min(max(pause, interrupted.pause), self._deadline.remaining)))

    def _list(self) -> SeenState:
        with self._get({}, patience=min(self._deadline.remaining, _ANSWER_SECONDS)) as response:
            try:
                found = response.json()
                items, version = found["items"], found["metadata"]["resourceVersion"]
            except (*_NETWORK, ValueError, KeyError, TypeError) as error:
                raise _Interrupted(f"its response cannot be parsed: {error}") from error
        self._version = version
        self.listed = True
        self.trouble = ""
        return SeenState(items[0]) if items else SeenState(None, gone=True)

    def _watch(self, version: str) -> Iterator[SeenState]:
        patience = min(self._deadline.remaining, _QUIET_SECONDS)
        parameters = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": math.ceil(self._deadline.remaining),
        }
        with self._get(parameters, patience=patience) as response:
            # The first event may take long.
            self.trouble = ""
            for event in _events(response):
                self._failures = 0
                state = self._take(event)
                if state is not None:
                    yield state
                if self._deadline.remaining < patience:
                    return  # and continue with less patience: no read may outlast the deadline
        raise _Interrupted("it ended the watch")

    def _take(self, event: Mapping[str, Any]) -> SeenState | None:
        """The state in an event, if it has one; remembers the position of the watch."""
        try:
            type_, body = event["type"], event["object"]
            if type_ == "ERROR":
                _refused(int(body["code"]), str(body["message"]))
            self._version = body["metadata"]["resourceVersion"]
        except (KeyError, TypeError, ValueError) as error:
            raise _Interrupted(f"an event of the watch cannot be read: {error}") from error
        return None if type_ == "BOOKMARK" else SeenState(body, gone=type_ == "DELETED")

    def _get(self, parameters: Mapping[str, object], *, patience: float) -> requests.Response:
        """A successful response, whose body is not read yet; `patience` is in seconds."""
        query = urlencode({"fieldSelector": f"metadata.name={self._name}", **parameters})
        try:
            response: requests.Response = self._api.get(
                url=f"{self._plural}?{query}",
                version=self._api_version,
                stream=True,
                timeout=(min(patience, _CONNECT_SECONDS), patience),
            )
        except _NETWORK as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise ConnectError(f"The API server's certificate is not trusted: {error}") from error
            raise _Interrupted(str(error)) from error
        if not response.ok:
            with response:
                _refused(response.status_code, _explanation(response), response.headers.get("Retry-After"))
        return response


def _events(response: requests.Response) -> Iterator[dict[str, Any]]:
    lines = response.iter_lines()
    while True:
        try:
            event: dict[str, Any] = json.loads(next(lines))
        except StopIteration:
            return
        except (*_NETWORK, ValueError) as error:
            if error.args and isinstance(error.args[0], ReadTimeoutError):
                raise _Quiet from error
            raise _Interrupted(f"the watch broke off: {error}") from error
        yield event


def _refused(code: int, message: str, retry_after: str | None = None) -> NoReturn:
    """Raise what an error status means: list again, retry, or give up."""
    if code == requests.codes.gone:
        raise _Expired(f"{code}: {message}")
    if code in _TRANSIENT:
        waits = retry_after is not None and retry_after.isdecimal() and len(retry_after) < 5
        raise _Interrupted(f"{code}: {message}", float(retry_after or 0) if waits else 0.0)
    raise HTTPError(code, message)


def _explanation(response: requests.Response) -> str:
    """The message of a metav1.Status, or else the beginning of the body."""
    try:
        return str(response.json()["message"])
    except (*_NETWORK, ValueError, KeyError, TypeError):
        return response.reason or "no explanation"
