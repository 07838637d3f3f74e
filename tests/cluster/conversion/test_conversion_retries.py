"""How an API server handles a failing conversion webhook: the basis for how ours refuses and ends."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from tests.cluster.conversion.rules import crontab_definition
from tests.cluster.harness.crontabs import until
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError

MARKER = "marked"


class Webhook(ThreadingHTTPServer):
    """Changes only apiVersion; the first requests for objects with the marker fail as configured."""

    daemon_threads = True

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        authority = Authority()
        issued = authority.issue()
        (directory / "pair.pem").write_bytes(issued.certificate + issued.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "pair.pem")
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.client_config = {
            "url": f"https://127.0.0.1:{self.server_address[1]}/",
            "caBundle": base64.b64encode(authority.pem).decode(),
        }
        self.failures = 0
        self.status = 0
        """Of the failures; 0 for none: the connection ends, as when a process is killed."""
        self.headers: dict[str, str] = {}
        self.requests = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Webhook

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        webhook = self.server
        marked = MARKER in json.dumps(review["request"]["objects"])  # and not by a watch cache
        webhook.requests += marked
        if marked and webhook.failures:
            webhook.failures -= 1
            if webhook.status:
                self._answer(webhook.status, b"", webhook.headers)
            else:
                self.close_connection = True
            return
        request = review["request"]
        objects = [{**each, "apiVersion": request["desiredAPIVersion"]} for each in request["objects"]]
        result = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        self._answer(200, json.dumps({**review, "request": None, "response": result}).encode(), {})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[Webhook]:
    with Webhook(tmp_path) as webhook:
        thread = threading.Thread(target=webhook.serve_forever)
        thread.start()
        yield webhook
        webhook.shutdown()
        thread.join()


def test_what_an_api_server_repeats(installed: Cluster, webhook: Webhook, group: str) -> None:
    definition = crontab_definition(group, storage="v1", client_config=webhook.client_config)
    kubectl = installed.kubectl
    kubectl("apply", "--server-side", "-f", "-", input=json.dumps(definition))
    try:
        kubectl.wait_established(f"crd/crontabs.{group}")
        until(lambda: kubectl("get", f"crontabs.v1beta1.{group}", "-o", "name") == "")
        item = {"apiVersion": f"{group}/v1beta1", "kind": "CronTab", "metadata": {"name": "x"}}
        body = json.dumps({**item, "spec": {"cronSpec": MARKER}})

        def requests(failures: int, status: int, **headers: str) -> int:
            """How many requests a write without effect took. Raises KubectlError if it failed."""
            webhook.failures, webhook.status, webhook.requests = failures, status, 0
            webhook.headers = {name.replace("_", "-"): value for name, value in headers.items()}
            kubectl("create", "--dry-run=server", "-f", "-", input=body)
            return webhook.requests

        least = requests(0, 0)
        assert least
        assert requests(1, 503, Retry_After="1") == least + 1
        assert requests(10, 429, Retry_After="0") == least + 10
        for failures, status, after in ((11, 503, "0"), (1, 503, ""), (1, 404, "0"), (1, 0, "")):
            with pytest.raises(KubectlError, match="conversion webhook for"):
                requests(failures, status, **({"Retry_After": after} if after else {}))
            assert webhook.requests == failures, status
    finally:
        kubectl("delete", "crd", f"crontabs.{group}", "--timeout=120s", check=False)
