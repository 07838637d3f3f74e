"""Reads and writes what is really stored, bypassing the API server, through etcd's HTTP/JSON gateway.

This is the tests' ground truth: the API server converts what it reads, so only etcd can show at which version
an object is stored.
"""

import base64
import http.client
import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

PAGE = 1000
# etcd's default for --max-txn-ops.
TRANSACTION = 128
# The API server writes the keys of a custom object in order, so it nearly always starts like this.
API_VERSION = re.compile(rb'\{"apiVersion":"([^"\\]+)"')
# Enough base64 for such a start; a multiple of four, so that it can be decoded by itself.
HEAD = 512
_AT_ONCE = 4
"""Transactions of `put_all`: while etcd writes one, the next is prepared."""
_COMPACTED = "etcd_debugging_mvcc_compact_revision"


class EtcdError(RuntimeError):
    """etcd refused a request."""


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of the database: of its file, which does not become smaller, and of what is in use in it."""

    file: int
    used: int
    compacted: int
    """The revision before which the history is gone."""


class Etcd:
    """The keys and values of one etcd."""

    def __init__(self, port: int) -> None:
        self._port = port

    def stored_versions(self, group: str, resource: str, *, revision: int | None = None) -> Counter[str]:
        """How many custom objects are stored at which apiVersion, all at one revision, by default now."""
        found: Counter[str] = Counter()
        for pair in self._pairs(f"/registry/{group}/{resource}/", revision=revision):
            head = API_VERSION.match(base64.b64decode(pair["value"][:HEAD]))
            found[head[1].decode() if head else _parse(pair["value"])["apiVersion"]] += 1
        return found

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys that start with the prefix, in order, all at one revision."""
        for pair in self._pairs(prefix, keys_only=True):
            yield base64.b64decode(pair["key"]).decode()

    def write_counts(self, prefix: str) -> dict[str, int]:
        """How often each key that starts with the prefix was written since its creation."""
        return {
            base64.b64decode(pair["key"]).decode(): int(pair["version"])
            for pair in self._pairs(prefix, keys_only=True)
        }

    def writes(self, prefix: str) -> Counter[int]:
        """How many of the keys that start with the prefix were written how often since their creation."""
        return Counter(int(pair["version"]) for pair in self._pairs(prefix, keys_only=True))

    def get(self, key: str) -> dict[str, Any] | None:
        """A custom object as stored; None if the key does not exist. For all other resources see `raw`."""
        value = self.raw(key)
        return None if value is None else json.loads(value)

    def raw(self, key: str) -> bytes | None:
        """The bytes: JSON; for built-in resources protobuf (`k8s\\0…`); or encrypted (`k8s:enc:…`)."""
        pairs = self._call("range", {"key": _encode(key)}).get("kvs", [])
        return base64.b64decode(pairs[0]["value"]) if pairs else None

    def put(self, key: str, value: bytes | Mapping[str, object]) -> None:
        """Stores bytes, or an object as JSON, even if the API server would reject it."""
        data = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
        self._call("put", _pair(key, data))

    def put_all(self, pairs: Iterable[tuple[str, bytes]]) -> None:
        """Stores many values, in transactions as large as etcd allows: thousands a second."""
        left = iter(pairs)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            under_way: deque[Future[Any]] = deque()
            while some := [{"requestPut": _pair(key, value)} for key, value in islice(left, TRANSACTION)]:
                under_way.append(pool.submit(self._call, "txn", {"success": some}))
                while len(under_way) > _AT_ONCE:
                    under_way.popleft().result()
            for each in under_way:
                each.result()

    def delete(self, key: str) -> bool:
        """Removes a key, regardless of finalizers; returns whether it existed."""
        return "deleted" in self._call("deleterange", {"key": _encode(key)})

    def written_since(self, prefix: str, revision: int) -> bool:
        """Whether a key with the prefix was written after that revision."""
        request = {
            "key": _encode(prefix),
            "range_end": _encode(_after(prefix)),
            "min_mod_revision": str(revision + 1),
            "keys_only": True,
            "limit": "1",
        }
        return "kvs" in self._call("range", request)

    def revision(self) -> int:
        """The current revision: the newest resourceVersion in the cluster."""
        return int(self._call("range", {"key": _encode("\0"), "count_only": True})["header"]["revision"])

    def compact(self, revision: int | None = None) -> None:
        """Discards all history before the revision (the current one by default); returns when it is gone."""
        self._call("compaction", {"revision": str(revision or self.revision()), "physical": True})

    def size(self) -> Size:
        """The size of the database."""
        status = self._post("/v3/maintenance/status", {})
        metrics = self._request("GET", "/metrics", None).decode()
        compacted = re.search(rf"^{_COMPACTED} (\S+)$", metrics, re.MULTILINE)
        if compacted is None:
            raise EtcdError(f"etcd's metrics have no {_COMPACTED}")
        return Size(int(status["dbSize"]), int(status["dbSizeInUse"]), int(float(compacted[1])))

    def _pairs(
        self, prefix: str, *, keys_only: bool = False, revision: int | None = None
    ) -> Iterator[dict[str, str]]:
        """Page by page, so that memory stays constant; each page at that revision, or the first one's."""
        key, end = prefix.encode(), _after(prefix)
        request: dict[str, object] = {"range_end": _encode(end), "limit": str(PAGE), "keys_only": keys_only}
        if revision is not None:
            request["revision"] = str(revision)
        while True:
            answer = self._call("range", {**request, "key": _encode(key)})
            pairs = answer.get("kvs", [])
            yield from pairs
            if not answer.get("more"):
                return
            request["revision"] = request.get("revision", answer["header"]["revision"])
            key = base64.b64decode(pairs[-1]["key"]) + b"\0"

    def _call(self, method: str, request: Mapping[str, object]) -> dict[str, Any]:
        return self._post(f"/v3/kv/{method}", request)

    def _post(self, path: str, request: Mapping[str, object]) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._request("POST", path, json.dumps(request)))
        return answer

    def _request(self, method: str, path: str, body: str | None) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK:
            raise EtcdError(
                f"etcd answered {path} with {response.status}: {answer.decode(errors='replace').strip()}"
            )
        return answer


def _pair(key: str, value: bytes) -> dict[str, str]:
    return {"key": _encode(key), "value": base64.b64encode(value).decode()}


def _parse(value: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(base64.b64decode(value))
    return parsed


def _after(prefix: str) -> bytes:
    """The end of the range of all keys with a prefix: the first key that sorts after them."""
    data = prefix.encode()
    return data[:-1] + bytes([data[-1] + 1])


def _encode(key: str | bytes) -> str:
    return base64.b64encode(key.encode() if isinstance(key, str) else key).decode()
