"""Whoever reaches the webhook's port gets a proper answer for what is not a conversion, at bounded cost."""

import http.client
import json
import re
import resource
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cluster.transport.tls import verifying
from crdkeeper.webhook.http.types import HttpLimits
from tests.benchmark.meter import peak_memory, reset_peak_memory
from tests.cluster.conversion.rules import ConversionWebhook
from tests.cluster.conversion.scene import until
from tests.controlplane.probe import answers

GROUP = "bad-requests.example.com"
PATH = f"/convert/crontabs.{GROUP}"
MAX_BYTES = 16 << 20
"""As by default."""
SECONDS = 120.0
LIMITS = HttpLimits()
GIVEN_UP_SECONDS = 10.0
"""From then on the webhook says that its worker is too late, as it is now and then on a busy machine."""
REVIEW = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
REQUEST = {"uid": "7", "desiredAPIVersion": f"{GROUP}/v1alpha1", "objects": []}
OBJECT = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "CronTab",
    "metadata": {"name": "mine", "namespace": "default"},
    "spec": {"host": "localhost", "port": 80},
}


@pytest.fixture(scope="module")
def webhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConversionWebhook]:
    webhook = ConversionWebhook(tmp_path_factory.mktemp("webhook"), GROUP, max_bytes=MAX_BYTES)
    try:
        webhook.start()
        yield webhook
    finally:
        webhook.close()


@pytest.fixture(autouse=True)
def _goes_on_converting(webhook: ConversionWebhook) -> Iterator[None]:
    yield
    assert webhook.process.running
    until(lambda: answers(webhook.probe_port, "/readyz"))
    assert _converted(webhook) == {"hostPort": "localhost:80"}


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "not a ConversionReview: "),
        ("{", "not a ConversionReview: "),
        (b"\xff\xfe", "not a ConversionReview: "),
        (DEEP, "not a ConversionReview: "),
        ('{"a":' * 5000, "not a ConversionReview: "),
        ('{"kind": NaN}', "not a ConversionReview: "),
        ('"\\ud800"', "not a ConversionReview: "),
        ("null", "kind: must be ConversionReview"),
        ("[]", "kind: must be ConversionReview"),
        ("1e999", "not a ConversionReview: "),
        ('{"kind": "AdmissionReview"}', "kind: must be ConversionReview"),
        ({**REVIEW, "apiVersion": "v9"}, "apiVersion: must be one of"),
        ({**REVIEW, "apiVersion": {}}, "apiVersion: must be one of"),
        (REVIEW, "request: must be an object"),
        ({**REVIEW, "request": []}, "request: must be an object"),
        ({**REVIEW, "request": {**REQUEST, "uid": 7}}, "request.uid: must be a string"),
        ({**REVIEW, "request": {**REQUEST, "desiredAPIVersion": None}}, "request.desiredAPIVersion"),
        ({**REVIEW, "request": {**REQUEST, "objects": None}}, "request.objects"),
        ({**REVIEW, "request": {**REQUEST, "objects": [OBJECT, "x"]}}, "request.objects"),
        ("[" + "{}," * 900_000 + "{}]", "more than 1,600,000 commas and brackets"),
    ],
)
def test_what_is_no_review_is_refused(webhook: ConversionWebhook, body: Any, words: str) -> None:
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    code, text = _post(webhook, content)
    assert (code, words in text) == (400, True), text


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"desiredAPIVersion": f"{GROUP}/v9"}, f"{GROUP}/v9 is none of the versions known here"),
        ({"desiredAPIVersion": "v1"}, "v1 is none of the versions known here"),
        ({"desiredAPIVersion": "other.example.com/v1"}, "other.example.com/v1 is none of the versions"),
        (
            {"objects": [OBJECT, {**OBJECT, "apiVersion": f"{GROUP}/v9"}]},
            "CronTab default/mine: apiVersion: ",
        ),
        ({"objects": [{}]}, "None without a name: apiVersion: "),
        ({"objects": [{**OBJECT, "metadata": []}]}, "CronTab without a name: metadata: is no object"),
        (
            {"objects": [{**OBJECT, "metadata": {"annotations": 7}}]},
            "CronTab without a name: metadata.annotations: is no object",
        ),
    ],
)
def test_what_cannot_be_converted_is_answered_as_a_review(
    webhook: ConversionWebhook, version: str, request_: dict[str, Any], words: str
) -> None:
    api_version = f"apiextensions.k8s.io/{version}"
    review = {**REVIEW, "apiVersion": api_version, "request": {**REQUEST, "objects": [OBJECT], **request_}}
    code, text = _post(webhook, json.dumps(review))
    assert code == 200, text
    answer = json.loads(text)
    assert (answer["apiVersion"], answer["response"]["uid"]) == (api_version, "7")
    assert answer["response"]["convertedObjects"] == []
    assert answer["response"]["result"]["status"] == "Failed"
    assert words in answer["response"]["result"]["message"]


@pytest.mark.parametrize("depth", [300, 900, 1000, 9990])
def test_objects_may_be_nested_as_deep_as_can_be_answered(webhook: ConversionWebhook, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    object_ = json.dumps({**OBJECT, "status": None}).replace("null", deep)
    review = json.dumps({**REVIEW, "request": {**REQUEST, "objects": []}})
    code, text = _post(webhook, review.replace('"objects": []', f'"objects": [{object_}]'))
    assert code == 200, text
    assert re.findall(r'"status": ?"(\w+)"', text) == ["Success"]
    assert f'"status":{deep}' in text


def test_nothing_but_conversion_can_be_reached(webhook: ConversionWebhook) -> None:
    for path in ("/", "/metrics", "/readyz", "/convert", "/convert/", f"{PATH}/x", f"/x{PATH}", "//", "*"):
        assert _post(webhook, "{}", path)[0] == 404, path
    for path in ("/convert/others.example.com", "/convert/..", "/convert/%2e%2e", "/convert/" + "x" * 4000):
        assert _post(webhook, "{}", path)[0] == 404, path
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"):
        assert _post(webhook, "{}", method=method)[0] == 405, method


def test_large_bodies_take_bounded_memory(webhook: ConversionWebhook) -> None:
    pid = webhook.process.pid
    assert _converted(webhook)
    reset_peak_memory(pid)
    before = peak_memory(pid)
    megabyte = b" " * (1 << 20)
    for _ in range(3):
        with ExitStack() as stack:
            channels = [stack.enter_context(_channel(webhook)) for _ in range(4)]
            lengths = [100 << 20, MAX_BYTES] * 2
            began = time.monotonic()
            for channel, length in zip(channels, lengths, strict=True):
                head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
                channel.sendall(head.encode())
            for number in range(100):
                for channel in channels:
                    _send(channel, megabyte, taken_until=began + LIMITS.linger_seconds if number < 4 else 0)
            # Two are held until they are complete, but then they are not reviews, or there is no room for
            # both. If this takes too long, by us (408) or by the worker (500), that is said.
            said = {_status(channel) for channel in channels}
            slow = time.monotonic() - began > LIMITS.progress_seconds
            assert said <= {400, 413, 503, *((408, 500) if slow else ())}
    # At most twice 16 MiB of bodies are held at a time, and a growing buffer is copied.
    assert peak_memory(pid) - before < 150 << 20


def test_bursts_on_many_connections_leave_no_large_buffers(webhook: ConversionWebhook) -> None:
    pid = webhook.process.pid
    assert _converted(webhook)
    reset_peak_memory(pid)
    before = peak_memory(pid)
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 260000\r\n\r\n".encode()
    with ExitStack() as stack:
        for _ in range(400):
            _send(stack.enter_context(_channel(webhook)), head + b" " * 259_999)
        assert _converted(webhook)
    # For 16 MiB of small bodies and TLS' buffers for each connection. Twice 256 KiB of these would be 200
    # MiB.
    assert peak_memory(pid) - before < 100 << 20


def test_the_worst_that_is_converted_takes_bounded_memory(webhook: ConversionWebhook) -> None:
    pid = webhook.process.pid
    assert _converted(webhook)
    reset_peak_memory(pid)
    before = peak_memory(pid)
    containers = [{"name": f"{number:06}"} for number in range(240_000)]
    worst = {**OBJECT, "spec": {**OBJECT["spec"], "containers": containers}}  # type: ignore[dict-item]
    review = {**REVIEW, "request": {**REQUEST, "objects": [worst]}}
    code, text = _post(webhook, json.dumps(review, separators=(",", ":")))
    assert (code, '"status":"Success"' in text) == (200, True)
    # The pod may have 512 MiB.
    assert peak_memory(pid) - before < 350 << 20


def test_clients_that_do_not_go_on_are_in_nobodys_way(webhook: ConversionWebhook) -> None:
    pid = webhook.process.pid
    before = peak_memory(pid)
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(_plain(webhook))  # no handshake
        for begun in ("", "P", f"POST {PATH} HTTP/1.1\r\nX: y", f"POST {PATH} HTTP/1.1\r\nHost: x\r\n"):
            for _ in range(25):
                stack.enter_context(_channel(webhook)).sendall(begun.encode())
        for _ in range(25):
            channel = stack.enter_context(_channel(webhook))
            channel.sendall(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\nhalf".encode())
        for _ in range(20):
            assert _converted(webhook) == {"hostPort": "localhost:80"}
    assert peak_memory(pid) - before < 100 << 20


def test_connections_are_bounded_before_they_have_shaken_hands(webhook: ConversionWebhook) -> None:
    descriptors = Path(f"/proc/{webhook.process.pid}/fd")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    try:
        with ExitStack() as stack:
            for _ in range(1500):
                stack.enter_context(_plain(webhook))
            assert _converted(webhook) == {"hostPort": "localhost:80"}
            assert len(list(descriptors.iterdir())) < 1100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_only_modern_tls_is_spoken(webhook: ConversionWebhook) -> None:
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        old = verifying(ca_file=webhook.ca_file)
        old.minimum_version = old.maximum_version = version
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises(ssl.SSLError):
            _post(webhook, "{}", context=old)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        new = verifying(ca_file=webhook.ca_file)
        new.minimum_version = new.maximum_version = version
        assert _post(webhook, "{}", context=new)[0] == 400


@pytest.mark.parametrize(
    "raw",
    [
        b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x00\xff" + b"\x00" * 300,
        b"\x80\x2e\x01\x00\x02" + b"\xff" * 300,
        b"\x00" * 70_000,
    ],
    ids=["in the clear", "a broken hello", "SSL 2", "zeros"],
)
def test_what_is_no_tls_ends_the_connection(webhook: ConversionWebhook, raw: bytes) -> None:
    with _plain(webhook) as channel:
        _send(channel, raw)
        try:
            while received := channel.recv(65536):
                assert b"HTTP" not in received
        except ConnectionError:
            return


def _post(
    webhook: ConversionWebhook,
    body: str | bytes,
    path: str = PATH,
    *,
    method: str = "POST",
    context: ssl.SSLContext | None = None,
) -> tuple[int, str]:
    """The answer; the first one for which the worker was not too late."""
    context = context or verifying(ca_file=webhook.ca_file)
    deadline = time.monotonic() + SECONDS
    while True:
        began = time.monotonic()
        code, text = _asked(webhook, body, path, method, context)
        now = time.monotonic()
        late = code in (500, 503) and now - began >= GIVEN_UP_SECONDS
        if not late or now > deadline:
            return code, text


def _asked(
    webhook: ConversionWebhook, body: str | bytes, path: str, method: str, context: ssl.SSLContext
) -> tuple[int, str]:
    connection = http.client.HTTPSConnection("127.0.0.1", webhook.port, timeout=SECONDS, context=context)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def _converted(webhook: ConversionWebhook) -> Any:
    """The result for a valid object."""
    review = {**REVIEW, "request": {**REQUEST, "objects": [OBJECT]}}
    code, text = _post(webhook, json.dumps(review))
    assert code == 200, text
    return json.loads(text)["response"]["convertedObjects"][0]["spec"]


def _plain(webhook: ConversionWebhook) -> socket.socket:
    return socket.create_connection(("127.0.0.1", webhook.port), timeout=SECONDS)


def _channel(webhook: ConversionWebhook) -> ssl.SSLSocket:
    context = verifying(ca_file=webhook.ca_file)
    return context.wrap_socket(_plain(webhook), server_hostname="127.0.0.1")


def _send(channel: socket.socket, data: bytes, *, taken_until: float = 0) -> None:
    """Send it; fails if the server stops reading before that moment."""
    try:
        channel.sendall(data)
    except OSError:
        # It was refused, and the server has stopped reading the rest.
        if time.monotonic() < taken_until:
            raise


def _status(channel: ssl.SSLSocket) -> int:
    head = b"".join(_until_blank(channel))
    return int(head.split(b" ", 2)[1])


def _until_blank(channel: ssl.SSLSocket) -> Iterable[bytes]:
    seen = b""
    while b"\r\n\r\n" not in seen:
        piece = channel.recv(65536)
        assert piece, "closed without an answer"
        seen += piece
        yield piece
