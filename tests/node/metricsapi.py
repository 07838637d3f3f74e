"""An API server for metrics.k8s.io with a load that the test chooses, for HorizontalPodAutoscalers."""

import http.server
import json
import ssl
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from tests.node import pods
from tests.node.cluster import NodeCluster
from tests.node.deployment import until
from tests.node.machines import address

API: Final = "/apis/metrics.k8s.io/v1beta1"
_SERVICE: Final = {"name": "test-metrics", "namespace": "kube-system"}
_KINDS: Final = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": "metrics.k8s.io/v1beta1",
    "resources": [{"name": "pods", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}],
}


class MetricsApi:
    """Says that the pods which somebody asks for share a load equally. Use it in the cluster's network."""

    def __init__(self, cluster: NodeCluster, *, millicores: int) -> None:
        self.millicores = millicores
        self._kubectl = cluster.plane.kubectl
        self._server = http.server.ThreadingHTTPServer((address(0), 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pki = cluster.plane.pki
        context.load_cert_chain(pki.serving_certificate, pki.serving_key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        pods.apply(self._kubectl, *self._objects())
        until(lambda: self._read(f"{API}/namespaces/default/pods").startswith("{"), 120)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A group that does not answer would stop the deletion of namespaces.
        self._kubectl("delete", "apiservice", "v1beta1.metrics.k8s.io")
        self._kubectl("delete", "service", _SERVICE["name"], f"--namespace={_SERVICE['namespace']}")
        self._server.shutdown()
        self._server.server_close()

    def _read(self, path: str) -> str:
        return self._kubectl("get", "--raw", path, check=False)

    def _objects(self) -> tuple[dict[str, Any], ...]:
        where = {**_SERVICE, "labels": {"kubernetes.io/service-name": _SERVICE["name"]}}
        port = self._server.server_address[1]
        return (
            {"apiVersion": "v1", "kind": "Service", "metadata": _SERVICE, "spec": {"ports": [{"port": 443}]}},
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": where,
                "addressType": "IPv4",
                "ports": [{"name": "", "port": port}],
                "endpoints": [{"addresses": [address(0)], "conditions": {"ready": True}}],
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": "v1beta1.metrics.k8s.io"},
                "spec": {
                    "group": "metrics.k8s.io",
                    "version": "v1beta1",
                    "service": {**_SERVICE, "port": 443},
                    "insecureSkipTLSVerify": True,
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                },
            },
        )

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        answer = self._answer

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = answer(self.path)
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        return Handler

    def _answer(self, target: str) -> dict[str, Any] | None:
        url = urlsplit(target)
        if url.path == API:
            return _KINDS
        if not url.path.startswith(f"{API}/namespaces/default/pods"):
            return None
        selector = ",".join(parse_qs(url.query).get("labelSelector", []))
        running = "--field-selector=status.phase=Running"
        named = self._kubectl("get", "pods", f"--selector={selector}", running, "--output=name").split()
        return {
            "kind": "PodMetricsList",
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {},
            "items": [self._metrics(each.removeprefix("pod/"), len(named)) for each in named],
        }

    def _metrics(self, pod: str, count: int) -> dict[str, Any]:
        return {
            "metadata": {"name": pod, "namespace": "default"},
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "window": "0s",
            "containers": [{"name": "server", "usage": {"cpu": f"{self.millicores * 1000 // count}u"}}],
        }
