"""What an answer says of the finalizer that was to be released."""

import asyncio
from typing import Any, cast

import orjson
import pytest

from crdkeeper.cluster.resources.finalizers import Freeing, release_finalizer
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import Answer, ApiError, Client
from tests.unit.core.finalizers.test_rule import found, metadata
from tests.unit.jsonpatch import patched

WIDGETS = Endpoint("example.com", "v1", "widgets")


class Admitting:
    """An API server whose admission leaves these finalizers, and that stores the object at this version."""

    answer: Answer | None = None
    patch: Any = None
    """The last one that was sent."""

    def __init__(self, finalizers: list[str], version: str) -> None:
        self.metadata = {
            "namespace": "s",
            "name": "n",
            "uid": "u",
            "resourceVersion": version,
            "finalizers": finalizers,
        }

    async def send(self, *_: Any, content: bytes, **__: Any) -> Answer:
        self.patch = orjson.loads(content)
        return self.answer or Answer(
            200, orjson.dumps({"kind": "PartialObjectMetadata", "metadata": self.metadata})
        )


@pytest.mark.parametrize(
    ("before", "after", "version", "freeing"),
    [
        (["a/b"], [], "7", Freeing.RELEASED),
        (["a/b", "c/d"], ["c/d"], "8", Freeing.RELEASED),
        (["a/b", "c/d", "a/b"], ["c/d"], "8", Freeing.RELEASED),
        (["a/b", "c/d", "a/b"], ["c/d", "a/b"], "8", Freeing.REFUSED),
        (["a/b"], ["a/b"], "7", Freeing.REFUSED),
        (["a/b", "c/d"], ["c/d", "a/b"], "8", Freeing.REFUSED),
        (["a/b"], ["a/b", "a/b"], "8", Freeing.REFUSED),
    ],
)
def test_what_admission_puts_back_is_not_released(
    before: list[str], after: list[str], version: str, freeing: Freeing
) -> None:
    client, one = cast(Client, Admitting(after, version)), found(finalizers=before)
    freed = asyncio.run(release_finalizer(client, WIDGETS, one, "a/b"))
    assert freed.freeing is freeing
    assert freed.message == ("admission has put it back" if freeing is Freeing.REFUSED else "")


def test_what_is_listed_more_than_once_goes_as_a_whole() -> None:
    before, after = ["a/b", "c/d", "a/b", "e/f", "a/b"], ["c/d", "e/f"]
    api = Admitting(after, "8")
    freed = asyncio.run(release_finalizer(cast(Client, api), WIDGETS, found(finalizers=before), "a/b"))
    assert freed.freeing is Freeing.RELEASED
    released = patched({"metadata": metadata(finalizers=before)}, api.patch)
    assert released["metadata"]["finalizers"] == after
    with pytest.raises(ValueError, match="/metadata/finalizers/4"):
        patched({"metadata": metadata(finalizers=[*before[:4], "g/h"])}, api.patch)


def test_who_is_asked_to_wait_learns_for_how_long() -> None:
    api = Admitting([], "7")
    api.answer = Answer(429, b"Too many requests, please try again later.", retry_after=7.0)
    with pytest.raises(ApiError) as raised:
        asyncio.run(release_finalizer(cast(Client, api), WIDGETS, found(), "a/b"))
    assert (raised.value.code, raised.value.retry_after) == (429, 7.0)
