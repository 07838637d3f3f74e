"""A conversion webhook in a separate process, so that it can be killed: run as a script, not imported.

Both versions have the same fields: it sets apiVersion, like the strategy None.
"""

import argparse
import json
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answers ConversionReviews, and GET requests that check whether it runs."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        wanted = request["desiredAPIVersion"]
        converted = [{**each, "apiVersion": wanted} for each in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        self._answer({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})

    def _answer(self, body: dict[str, object]) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    parser = argparse.ArgumentParser()
    for flag in ("port", "certificate", "key"):
        parser.add_argument(f"--{flag}", required=True)
    options = parser.parse_args()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    server = ThreadingHTTPServer(("127.0.0.1", int(options.port)), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
