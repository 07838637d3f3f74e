"""Requests from the Go program in `gowebhook/load`, and what the processes that serve them used meanwhile."""

import base64
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.benchmark import goprograms
from tests.benchmark.meter import Meter, Usage

WARM_SECONDS: Final = 0.3


@dataclass(frozen=True, slots=True)
class Target:
    """A server to call over TLS."""

    address: str
    server_name: str
    ca_file: Path


@dataclass(frozen=True, slots=True)
class Sample:
    """What a number of clients got in a span of time, each waiting for its answers."""

    seconds: float
    answers: int
    latencies: Sequence[float]
    """Seconds, sorted."""
    usage: Usage

    def quantile(self, part: float) -> float:
        """The latency, in seconds, that this share of requests did not exceed."""
        return self.latencies[min(len(self.latencies) - 1, int(part * len(self.latencies)))]


class Failed(Exception):
    """A request failed, so there are no figures."""


def post(path: str, body: bytes) -> bytes:
    """A ConversionReview with the headers that the API server's client sends."""
    return _request("POST", path, f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n") + body


def get(path: str, authorization: str) -> bytes:
    """A read from the API server."""
    return _request("GET", path, f"Authorization: {authorization}\r\n")


def _request(method: str, path: str, headers: str) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: benchmark\r\n"
        f"Accept: application/json, */*\r\n{headers}\r\n"
    )
    return head.encode()


def load(
    target: Target,
    requests: Sequence[bytes],
    meter: Meter,
    *,
    at_once: int,
    seconds: float,
    reconnect: bool = False,
) -> Sample:
    """Send the requests alternately, with that many clients, for that long. Raises Failed."""
    work: dict[str, Any] = {
        "address": target.address,
        "serverName": target.server_name,
        "ca": target.ca_file.read_text(),
        "requests": [base64.b64encode(each).decode() for each in requests],
        "atOnce": at_once,
        "warm": WARM_SECONDS,
        "seconds": seconds,
        "reconnect": reconnect,
    }
    with subprocess.Popen(
        [goprograms.build() / "load"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin is not None and program.stdout is not None and program.stderr is not None
        program.stdin.write(json.dumps(work))
        program.stdin.close()
        # It reports when the requests that count begin and end.
        said = program.stderr.readline()
        before = meter.read()
        said += program.stderr.readline()
        usage = before.until(meter.read())
        report = program.stdout.read()
        if said != "begin\nend\n":
            raise Failed(said + program.stderr.read())
    found = json.loads(report)
    if not found["answers"]:
        raise Failed(f"no answer in {seconds} s")
    return Sample(found["seconds"], found["answers"], found["latencies"], usage)
