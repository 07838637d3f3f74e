"""The conversion benchmark compares the same work: both of its webhooks return the same objects."""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.benchmark import conversionsubject as subject
from tests.benchmark.conversion import OBJECTS
from tests.benchmark.conversioncontestants import ByHand, Contestant, Ours
from tests.certificates import Authority

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="the Go webhook is built from source")


@pytest.fixture
def contestants(tmp_path: Path) -> Iterator[list[Contestant]]:
    authority = Authority()
    with ExitStack() as stack:
        made: list[Contestant] = []
        for each in (Ours(authority, tmp_path), ByHand(authority, tmp_path)):
            stack.callback(each.close)
            each.start()
            made.append(each)
        yield made


def test_both_make_the_same_objects_as_their_author_would(contestants: list[Contestant]) -> None:
    for source, target in (subject.VERSIONS, subject.VERSIONS[::-1]):
        for each in contestants:
            numbers = range(OBJECTS)
            asked = [subject.stored(each.group, source, i) for i in numbers]
            answer = each.convert(subject.review(each.group, target, asked))
            assert answer["response"]["result"] == {"status": "Success"}
            made = answer["response"]["convertedObjects"]
            wanted = [
                {**subject.manifest(each.group, target, i), "metadata": asked[i]["metadata"]} for i in numbers
            ]
            assert json.dumps(made, sort_keys=True) == json.dumps(wanted, sort_keys=True), each.title
