"""Plain requests with the standard library, for measuring the API server: nothing hidden."""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crdkeeper.cluster.transport.tls import verifying

_PAGE = 500
_KEPT_SECONDS = 30.0
"""The API server closes connections that are idle for longer than 90 seconds."""
_SUCCESS = (http.HTTPStatus.OK, http.HTTPStatus.CREATED, http.HTTPStatus.ACCEPTED)


class Server:
    """The API server's address and the client's identity, from a kubeconfig of the tests' control plane."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        url = urlsplit(cluster["server"])
        self.host, self.port = str(url.hostname), int(url.port or 443)
        self.context = verifying(ca_file=cluster["certificate-authority"])
        self.authorization = f"Bearer {config['users'][0]['user']['token']}"
        self._kept = threading.local()

    def list(self, path: str, *, accept: str, limit: int = _PAGE) -> Iterator[dict[str, Any]]:
        """All items of a list, page by page."""
        connection = self._connect()
        headers = {"Authorization": self.authorization, "Accept": accept}
        token = ""
        while True:
            suffix = f"&continue={token}" if token else ""
            connection.request("GET", f"{path}?limit={limit}{suffix}", headers=headers)
            page = _answer(connection)
            yield from page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                connection.close()
                return

    def watch(self, path: str, name: str, silence: float) -> Iterator[dict[str, Any]]:
        """The object, now and after each change, without end; raises TimeoutError after such a silence."""
        query = f"?watch=1&fieldSelector=metadata.name%3D{name}"
        while True:  # the API server ends each watch after about half an hour
            connection = self._connect(silence)
            connection.request("GET", path + query, headers={"Authorization": self.authorization})
            try:
                for line in connection.getresponse():
                    yield json.loads(line)["object"]
            finally:
                connection.close()

    def watch_all(self, path: str) -> Iterator[dict[str, Any]]:
        """All objects of a resource, now and after each change, until the resource is served no more."""
        version = ""
        while True:
            connection = self._connect(3600.0)
            query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
            connection.request("GET", path + query, headers={"Authorization": self.authorization})
            response = connection.getresponse()
            if response.status == http.HTTPStatus.NOT_FOUND and version:
                connection.close()
                return
            if response.status != http.HTTPStatus.OK:  # the storage of a kind is set up on its first request
                connection.close()
                time.sleep(0.5)
                continue
            try:
                for line in response:
                    event = json.loads(line)
                    if event["type"] == "ERROR":  # such as that this version is too old
                        version = ""
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield event["object"]
            finally:
                connection.close()

    def send(self, method: str, path: str, value: Mapping[str, Any] | None = None) -> Any:
        """A request on a connection that each thread keeps; APPLY is a server-side apply."""
        headers = {"Authorization": self.authorization, "Content-Type": "application/json"}
        if method == "APPLY":
            method, path = "PATCH", f"{path}?fieldManager=benchmark"
            headers["Content-Type"] = "application/apply-patch+yaml"
        kept, self._kept.connection = getattr(self._kept, "connection", None), None
        if kept is not None and time.monotonic() - self._kept.at > _KEPT_SECONDS:
            kept.close()
            kept = None
        connection = kept or self._connect()
        connection.request(method, path, None if value is None else json.dumps(value), headers=headers)
        answer = _answer(connection)
        self._kept.connection, self._kept.at = connection, time.monotonic()
        return answer

    def raw(self, path: str) -> bytes:
        """The body of a GET, whatever it is."""
        connection = self._connect()
        connection.request("GET", path, headers={"Authorization": self.authorization})
        try:
            response = connection.getresponse()
            body = response.read()
            if response.status != http.HTTPStatus.OK:
                raise RuntimeError(
                    f"the API server refused: {response.status} {body.decode(errors='replace')}"
                )
            return body
        finally:
            connection.close()

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """A merge patch; returns the resulting object."""
        connection = self._connect()
        headers = {
            "Authorization": self.authorization,
            "Content-Type": "application/merge-patch+json",
        }
        connection.request("PATCH", path, json.dumps(patch), headers=headers)
        try:
            return _answer(connection)
        finally:
            connection.close()

    def _connect(self, timeout: float = 120.0) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, self.port, context=self.context, timeout=timeout)


def _answer(connection: http.client.HTTPSConnection) -> dict[str, Any]:
    response = connection.getresponse()
    body = response.read()
    if response.status not in _SUCCESS:
        raise RuntimeError(f"the API server refused: {response.status} {body.decode(errors='replace')}")
    answer: dict[str, Any] = json.loads(body)
    return answer
