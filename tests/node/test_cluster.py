"""The nodes behave like real ones for a pod: images, DNS, Services, logs. And there is no way out."""

import socket
from collections.abc import Iterator

import pytest

from tests.node import pods
from tests.node.cluster import NodeCluster

SERVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.client_address[0].encode())
http.server.HTTPServer(("", 8000), Handler).serve_forever()
"""
ASK_API_SERVER = f"""{pods.ASKS}
import ssl
ca = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
context = ssl.create_default_context(cafile=ca)
print(status("https://kubernetes.default.svc/version", context=context))
"""
ASK_SERVER = f"{pods.ASKS}print(status('http://server/'))"
ASK_OUTSIDE = """
import socket
for address in ("192.0.2.1", "1.1.1.1", "169.254.169.254"):
    try:
        socket.create_connection((address, 80), timeout=2)
        print("connected to", address)
    except OSError:
        pass
try:
    print("resolved to", socket.getaddrinfo("example.com", 80))
except socket.gaierror:
    pass
"""


@pytest.fixture
def server(nodes: NodeCluster) -> Iterator[None]:
    """A server on the second node behind a Service."""
    kubectl = nodes.plane.kubectl
    pods.apply(kubectl, pods.manifest("server", SERVER, nodeName="node-1"))
    kubectl("expose", "pod", "server", "--port=80", "--target-port=8000")
    kubectl("wait", "pod/server", "--for=condition=Ready", "--timeout=180s")
    yield
    kubectl("delete", "pod,service", "server", "--now")


@pytest.mark.parametrize("node", ["node-0", "node-1"])
def test_a_pod_reaches_the_api_server_by_its_name(nodes: NodeCluster, node: str) -> None:
    said = pods.run(nodes.plane.kubectl, f"asks-{node}", ASK_API_SERVER, nodeName=node)
    assert said == "200\n"


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("node", ["node-0", "node-1"])
def test_a_pod_reaches_another_through_a_service(nodes: NodeCluster, node: str) -> None:
    """On its own node and on the other one."""
    said = pods.run(nodes.plane.kubectl, f"asks-server-{node}", ASK_SERVER, nodeName=node)
    assert said == "200\n"


def test_nothing_leads_outside(nodes: NodeCluster) -> None:
    assert pods.run(nodes.plane.kubectl, "asks-outside", ASK_OUTSIDE) == ""
    with pytest.raises(OSError, match="unreachable"):
        socket.create_connection(("192.0.2.1", 80), timeout=5)


def test_commands_can_be_run_in_a_pod(nodes: NodeCluster) -> None:
    kubectl = nodes.plane.kubectl
    pods.apply(kubectl, pods.manifest("patient", "import time; time.sleep(600)"))
    kubectl("wait", "pod/patient", "--for=condition=Ready", "--timeout=180s")
    assert kubectl("exec", "patient", "--", "cat", "/proc/1/comm").strip() == "python"
    kubectl("delete", "pod", "patient", "--now")
