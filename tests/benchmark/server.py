"""Plain requests with the standard library, for measuring the API server: nothing hidden."""

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crdkeeper.cluster.transport.tls import verifying

_PAGE = 500


class Server:
    """The API server's address and the client's identity, from a kubeconfig of the tests' control plane."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        url = urlsplit(cluster["server"])
        self.host, self.port = str(url.hostname), int(url.port or 443)
        self.context = verifying(ca_file=cluster["certificate-authority"])
        self.authorization = f"Bearer {config['users'][0]['user']['token']}"

    def list(self, path: str, *, accept: str) -> Iterator[dict[str, Any]]:
        """All items of a list, page by page."""
        connection = self._connect()
        headers = {"Authorization": self.authorization, "Accept": accept}
        token = ""
        while True:
            suffix = f"&continue={token}" if token else ""
            connection.request("GET", f"{path}?limit={_PAGE}{suffix}", headers=headers)
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
        """All objects of a resource, now and after each change, without end."""
        version = ""
        while True:
            connection = self._connect(3600.0)
            query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
            connection.request("GET", path + query, headers={"Authorization": self.authorization})
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:  # the storage of a kind is set up on its first request
                connection.close()
                time.sleep(0.5)
                continue
            try:
                for line in response:
                    event = json.loads(line)
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield event["object"]
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
    if response.status != http.HTTPStatus.OK:
        raise RuntimeError(f"the API server refused: {response.status} {body.decode(errors='replace')}")
    answer: dict[str, Any] = json.loads(body)
    return answer
