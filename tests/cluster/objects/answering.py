"""A conversion webhook with an answer for each object from the test, and such answers: many are invalid."""

import asyncio
import copy
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from hypothesis import strategies as st

from tests.certificates import LOOPBACK, Authority
from tests.cluster.objects.values import values

Json = Any
Answering = Callable[[Json], Json]
"""From the request of a ConversionReview to the whole answer."""

_GOOD: tuple[Json, ...] = (
    {},
    {"labels": {"a": "b"}},
    {"labels": {"a": "c", "x.y/z": ""}},
    {"annotations": {"A.b/C": "any thing\n"}},
    {"labels": {}, "annotations": {"a": ""}},
    {"labels": None, "annotations": None},
    {"finalizers": ["example.com/a"], "generation": 7, "resourceVersion": "1", "unknown": 1},
    {"creationTimestamp": 5, "ownerReferences": "x", "managedFields": None},
    {"generateName": "other-", "deletionTimestamp": "yesterday"},
)
_BAD: tuple[Json, ...] = (
    {"labels": {"a b": "c"}},
    {"labels": {"a": "b c"}},
    {"labels": {"a": "x" * 64}},
    {"labels": {"/a": "!"}},
    {"labels": {"a": 1}},
    {"labels": {"a": None}},
    {"labels": []},
    {"labels": "x"},
    {"annotations": {"a b": "c"}},
    {"annotations": {"a": "x" * 300_000}},
    {"annotations": {"a": {"b": 1}}},
    {"annotations": {"a": [1.5]}},
    {"annotations": {"a": 1.5}},
    {"annotations": {"a": True}},
    {"annotations": 1.5},
    {"annotations": True},
    {"name": "other"},
    {"name": None},
    {"name": 5},
    {"namespace": "other"},
    {"uid": "other"},
    {"uid": ""},
)
_OBJECTS: tuple[Json, ...] = (
    {"kind": "Other"},
    {"kind": None},
    {"kind": 5},
    {"kind": ""},
    {"apiVersion": "v2"},
    {"apiVersion": "other.example.com/v2"},
    {"apiVersion": "a/b/c"},
    {"apiVersion": None},
    {"apiVersion": 5},
    {"apiVersion": "/v2"},
    {"metadata": None},
    {"metadata": []},
    {"metadata": "x"},
    {"metadata": 5},
    {"metadata": 1.5},
    {"metadata": True},
)
_RESPONSES: tuple[Json, ...] = (
    {"uid": "other"},
    {"uid": 'a"b'},
    {"uid": None},
    {"uid": 5},
    {"result": None},
    {"result": {}},
    {"result": {"status": "Failure"}},
    {"result": {"status": "Failed", "message": "it is too late"}},
    {"result": {"message": "no status"}},
    {"result": {"status": "Success", "message": "welcome", "code": 500}},
    {"result": "Success"},
    {"convertedObjects": None},
    {"convertedObjects": []},
    {"convertedObjects": [{}, {}]},
    {"convertedObjects": [None]},
    {"convertedObjects": ["x"]},
    {"convertedObjects": [5]},
    {"convertedObjects": [[]]},
    {"convertedObjects": {}},
    {"convertedObjects": "x"},
)
_REVIEWS: tuple[Json, ...] = (
    {"response": None},
    {"response": []},
    {"response": {}},
    {"kind": "Other"},
    {"kind": None},
    {"apiVersion": "apiextensions.k8s.io/v1beta1"},
    {"apiVersion": "v1"},
    {"request": {"uid": "x"}},
)
_MISSING = "missing"


@st.composite
def answerings(draw: st.DrawFn, properties: dict[str, Json]) -> Answering:
    """Answers about an object whose spec has these properties; half of them are valid."""
    names = draw(st.lists(st.sampled_from(sorted(properties)), max_size=3, unique=True))
    spec = {name: draw(values(properties[name])) for name in names}
    if draw(st.integers(0, 3)) == 0:
        spec["unknown"] = draw(st.sampled_from((1, None, {"a": []})))
    content: Json = {"spec": spec} if draw(st.integers(0, 9)) else {"spec": None, "other": 1}
    changes: dict[str, Json] = {"metadata": draw(st.sampled_from(_GOOD))}
    if draw(st.booleans()):
        part = draw(st.sampled_from(("metadata", "metadata", "object", "response", "review")))
        choices = {"metadata": _BAD, "object": _OBJECTS, "response": _RESPONSES, "review": _REVIEWS}[part]
        changes[part] = draw(st.sampled_from(choices))
        if part != "metadata" and draw(st.integers(0, 3)) == 0:
            changes[part] = dict.fromkeys(changes[part], _MISSING)

    def answer(request: Json) -> Json:
        converted = [_converted(each, content, changes, request) for each in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        review = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "response": _with(response, changes.get("response", {})),
        }
        return _with(review, changes.get("review", {}))

    return answer


def only_to(version: str, answering: Answering) -> Answering:
    """The given answers for one version; for others only apiVersion changes."""

    def answer(request: Json) -> Json:
        desired = request["desiredAPIVersion"]
        if desired.endswith(f"/{version}"):
            return answering(request)
        converted = [{**each, "apiVersion": desired} for each in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}

    return answer


def _converted(original: Json, content: Json, changes: Json, request: Json) -> Json:
    metadata = _with(original["metadata"], changes["metadata"])
    made = {
        "apiVersion": request["desiredAPIVersion"],
        "kind": original["kind"],
        "metadata": metadata,
        **content,
    }
    return copy.deepcopy(_with(made, changes.get("object", {})))


def _with(value: Json, changes: Json) -> Json:
    return {key: each for key, each in {**value, **changes}.items() if each is not _MISSING}


class AnsweringWebhook:
    """Selects the answer by an object's name, and keeps the first request about it for each version."""

    def __init__(self, url: str, ca: bytes) -> None:
        self.url = url
        self.ca = ca
        self.answers: dict[str, Answering] = {}
        self.asked: dict[tuple[str, str], Json] = {}

    async def answer(self, request: web.Request) -> web.Response:
        """For aiohttp."""
        review = (await request.json())["request"]
        name = review["objects"][0]["metadata"]["name"]
        self.asked.setdefault((name, review["desiredAPIVersion"]), review)
        # orjson rejects some of a test's answers.
        return web.Response(text=json.dumps(self.answers[name](review)), content_type="application/json")


@asynccontextmanager
async def answering_webhook(directory: Path) -> AsyncIterator[AnsweringWebhook]:
    """Serves one on the loopback address."""
    authority = Authority()
    issued = authority.issue()
    certificate = directory / "webhook.pem"
    certificate.write_bytes(issued.certificate + issued.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    webhook = AnsweringWebhook("", authority.pem)
    application = web.Application(client_max_size=16 << 20)
    application.router.add_post("/convert", webhook.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, LOOPBACK, 0, ssl_context=context)
        await site.start()
        webhook.url = f"https://{LOOPBACK}:{runner.addresses[0][1]}/convert"
        yield webhook
    finally:
        await asyncio.shield(runner.cleanup())
