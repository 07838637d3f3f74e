"""A conversion webhook in the test's own process, with any behaviour that a test needs."""

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.certificates import Authority, Issued

Review = dict[str, Any]
Behaviour = Callable[[Review], tuple[int, bytes]]


def converts(review: Review) -> tuple[int, bytes]:
    """Like the strategy None: sets apiVersion."""
    wanted = review["request"]["desiredAPIVersion"]
    return answers(review, [{**each, "apiVersion": wanted} for each in review["request"]["objects"]])


def answers(review: Review, objects: list[Any], **response: Any) -> tuple[int, bytes]:
    """A ConversionReview with these objects; keywords change its response."""
    said = {
        "uid": review["request"]["uid"],
        "result": {"status": "Success"},
        "convertedObjects": objects,
        **response,
    }
    body = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": said}
    return 200, json.dumps(body).encode()


@dataclass
class ConversionWebhook:
    """Serves at a loopback port; `behaviour` may be changed at any time."""

    port: int
    behaviour: Behaviour = converts
    methods: list[str] = field(default_factory=list)
    """The HTTP method of each request."""

    def client_config(self, ca_bundle: bytes | None) -> dict[str, Any]:
        """As in a CRD."""
        found: dict[str, Any] = {"url": f"https://127.0.0.1:{self.port}/convert"}
        return {**found, "caBundle": base64.b64encode(ca_bundle).decode()} if ca_bundle else found


@contextmanager
def serving_webhook(
    directory: Path, issued: Issued | None = None
) -> Iterator[tuple[ConversionWebhook, bytes]]:
    """The webhook, and the caBundle for its certificate unless one is given."""
    authority = Authority()
    issued = issued or authority.issue()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate, key = directory / "webhook.crt", directory / "webhook.key"
    certificate.write_bytes(issued.certificate)
    key.write_bytes(issued.key)
    context.load_cert_chain(certificate, key)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def setup(self) -> None:
            # In the connection's own thread, so that a client without handshake blocks nobody.
            self.request = context.wrap_socket(self.request, server_side=True)
            super().setup()

        def do_POST(self) -> None:
            webhook.methods.append("POST")
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            code, body = webhook.behaviour(review)
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            webhook.methods.append("GET")
            self.send_error(405)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = socket.AF_INET

        def handle_error(self, *_: object) -> None:
            pass  # a client that hangs up during the handshake, as it should

    with Server(("127.0.0.1", 0), Handler) as server:
        webhook = ConversionWebhook(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, name="conversion webhook", daemon=True)
        thread.start()
        try:
            yield webhook, authority.pem
        finally:
            server.shutdown()
            thread.join()
