"""No object that the API server accepts makes a LIST of others fail, at any version, whatever is stored."""

import json
import random
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from crdkeeper.core.conversion.notes import PREFIX
from tests.cluster.conversion.rules import SPECS
from tests.cluster.harness.crontabs import FULL, CronTabs, until
from tests.cluster.harness.rawrequests import MERGE_PATCH, RawRequests, Refused, raw_requests

VERSIONS = ("v1", "v1beta1", "v1alpha1")
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {**ANYTHING, "x-kubernetes-embedded-resource": True}
MORE = {version: {**fields, "free": ANYTHING, "other": EMBEDDED} for version, fields in SPECS.items()}
# No annotation has room for it, even compressed.
NOISE = random.Random(7).randbytes(150_000).hex()
ALL_ANNOTATIONS = 256 * 1024


def lists(levels: int) -> str:
    return f'{{"free":{{"a":{"[" * levels}"<é>",1.5{"]" * levels}}}}}'


def objects(levels: int) -> str:
    around = '{"a":[],"b":' * levels
    return f'{{"free":{{"a":{around}1{"}" * levels}}}}}'


# The spec of each at v1, as JSON.
SPEC: dict[str, str] = {
    "lists-200": lists(200),
    "lists-1100": lists(1100),
    "lists-5000": lists(5000),
    "lists-9990": lists(9990),
    "objects-200": objects(200),
    "objects-1100": objects(1100),
    "objects-4000": objects(4000),
    "large": json.dumps({"host": "a", "port": 1, "containers": [{"name": "web", "memory": NOISE}]}),
    "many": json.dumps({"containers": [{"name": f"c{i}", "memory": "1"} for i in range(2000)]}),
    "numbers": '{"free":{"a":123456789012345678901234567890,"b":1e308,"c":-0.0,"d":1E-400},"replicas":1e3}',
    "largest-port": '{"port":9223372036854775807,"host":"a"}',
    "surrogates": r'{"free":{"a":"\ud800","\ud800":"\udc00"},"host":"\ud800\u0000\u2028","port":1}',
    "keys": r'{"free":{"":1,"__proto__":{},"\u0000":1,"a\nb":2,"[0]":3,"~":4,"fields":[],"at":1}}',
    "key-twice": '{"host":"a","host":"b","port":1,"free":{"x":1,"x":2}}',
    "nulls": '{"host":null,"port":null,"containers":null,"free":{"a":null}}',
    "embedded": '{"other":{"apiVersion":"v1","kind":"X","metadata":{"name":"x","labels":{"a":"b"}}}}',
    "no-spec": "null",
}
FORGED = {f"{PREFIX}{each}": "incomplete" for each in VERSIONS}
# Metadata of an object at v1 whose replicas and memory must be kept aside.
METADATA: dict[str, dict[str, Any]] = {
    "marked-by-hand": {"labels": FORGED},
    "labelled-by-hand": {"labels": {f"{v}.{PREFIX}{i}": "x" * 63 for v in VERSIONS for i in range(50)}},
    "noted-by-hand": {"annotations": {f"{PREFIX}{each}": '{"fields": [' + "[" * 5000 for each in VERSIONS}},
    "full-of-annotations": {"annotations": {"a": "x" * (ALL_ANNOTATIONS - 1)}},
    "owned": {
        "generateName": "x",
        "finalizers": ["example.com/x"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}],
    },
}


@pytest.fixture
def specs() -> Mapping[str, Any]:
    return MORE


class Raw:
    """CronTabs as text, which Python could neither parse nor serialize again."""

    def __init__(self, crontabs: CronTabs, send: RawRequests) -> None:
        self._crontabs, self._send = crontabs, send

    def _path(self, version: str, name: str = "") -> str:
        return f"/apis/{self._crontabs.group}/{version}/namespaces/default/crontabs/{name}".rstrip("/")

    def create(self, name: str, spec: str, **metadata: Any) -> None:
        """Create it at v1, exactly as written here."""
        found = self._crontabs.object("v1", name, {})
        found["metadata"] |= metadata
        self._send("POST", self._path("v1"), json.dumps(found).replace('"spec": {}', f'"spec":{spec}'))

    def spec(self, version: str, name: str) -> str:
        """The text of its spec, which comes last."""
        return self._send("GET", self._path(version, name)).strip().partition('"spec":')[2]

    def rewrite(self, version: str, name: str) -> None:
        """Like a migration."""
        self._send("PATCH", self._path(version, name), "{}", MERGE_PATCH)

    def release(self, name: str) -> None:
        """Remove its finalizers."""
        self._send("PATCH", self._path("v1", name), '{"metadata":{"finalizers":null}}', MERGE_PATCH)


@pytest.fixture
def raw(crontabs: CronTabs) -> Iterator[Raw]:
    with raw_requests(crontabs.plane.kubectl) as send:
        yield Raw(crontabs, send)


def names(crontabs: CronTabs, version: str) -> set[str]:
    """All names in a LIST. (As a table: no client reads a list of objects nested this deep.)"""
    table = crontabs.plane.kubectl("get", f"crontabs.{version}.{crontabs.group}", "--no-headers")
    return {line.split()[0] for line in table.splitlines()}


def test_every_object_is_listed_at_every_version_whatever_is_stored(crontabs: CronTabs, raw: Raw) -> None:
    until(partial(crontabs.apply, "v1", "first", FULL["v1"]))
    for name, spec in SPEC.items():
        raw.create(name, spec)
    for name, metadata in METADATA.items():
        raw.create(name, json.dumps(FULL["v1"]), **metadata)
    everything = {"first", *SPEC, *METADATA}
    before = {name: raw.spec("v1", name) for name in everything}
    for storage in ("v1", "v1alpha1", "v1beta1", "v1"):
        crontabs.store(storage)
        until(partial(_stores, crontabs, storage))
        # Nothing is migrated yet: reads at the new storage version convert from the old one.
        for version in VERSIONS:
            assert names(crontabs, version) - {"probe"} == everything, (storage, version)
        assert {name: raw.spec("v1", name) for name in everything} == before
        for name in everything:
            raw.rewrite(storage, name)
        assert {_stored(crontabs, name) for name in everything} == {storage}
        assert {name: raw.spec("v1", name) for name in everything} == before
    raw.release("owned")


def test_what_no_answer_can_hold_is_left_out_of_it(crontabs: CronTabs, raw: Raw) -> None:
    until(partial(crontabs.apply, "v1", "first", FULL["v1"]))
    # The API server accepts 10,000 levels, and uses three of its own in requests to a webhook.
    for levels in range(9994, 9998):
        raw.create(f"lists-{levels}", lists(levels))
    with pytest.raises(Refused, match="exceeded max depth"):
        raw.create("lists-9998", lists(9998))
    for version in VERSIONS:
        assert len(names(crontabs, version)) == 5
    whole = set()
    for name in names(crontabs, "v1") - {"first"}:
        there = raw.spec("v1beta1", name)
        assert there.startswith('{"free":{"a":[[[')
        whole.add((name, there == raw.spec("v1", name)))
    assert sorted(whole) == [("lists-9994", True), *((f"lists-{each}", False) for each in (9995, 9996, 9997))]


def _stores(crontabs: CronTabs, version: str) -> bool:
    """Whether new writes are stored at that version."""
    crontabs.apply("v1", "probe", {"host": version})
    return _stored(crontabs, "probe") == version


def _stored(crontabs: CronTabs, name: str) -> str:
    """The version in etcd, even if Python cannot read the rest."""
    content = crontabs.plane.etcd.raw(f"/registry/{crontabs.group}/crontabs/default/{name}")
    found = re.match(rb'{"apiVersion":"[^"/]+/(\w+)"', content or b"")
    assert found, content
    return found[1].decode()
