"""Checks over HTTP(S) whether a server of the control plane serves."""

import http.client
from pathlib import Path

from crdkeeper.cluster.transport.tls import verifying


def answers(
    port: int, path: str, *, host: str = "127.0.0.1", ca_file: Path | None = None, token: str | None = None
) -> bool:
    """Whether a GET on the port returns 200; over TLS if a CA is given."""
    if ca_file is None:
        connection = http.client.HTTPConnection(host, port, timeout=5)
    else:
        context = verifying(ca_file=ca_file)
        connection = http.client.HTTPSConnection(host, port, timeout=5, context=context)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
