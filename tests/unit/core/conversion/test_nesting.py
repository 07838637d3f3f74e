"""Objects nested as deep as an API server accepts are converted like others."""

import json
import time
from typing import Any

import orjson
import pytest

from crdkeeper.cluster.transport.client import Answer
from crdkeeper.core.conversion.nesting import DEEPEST, Deep, dumps, loads
from crdkeeper.core.conversion.notes import PREFIX
from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.conversion.review import answered
from crdkeeper.core.conversion.values import kind_of
from crdkeeper.core.conversion.verification import Trial, compile_trial
from tests.unit.core.conversion.samples import (
    GROUP,
    INTEGER,
    STRING,
    at,
    compiled,
    crd,
    list_of,
    map_of,
    obj,
    spec_of,
)

FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
ANY = {"x-kubernetes-preserve-unknown-fields": True}
# 128 levels are lists and objects; what is below them is text. orjson writes 254, and reads 1,024.
DEPTHS = (100, 124, 125, 126, 127, 128, 129, 200, 248, 249, 250, 251, 252, 253, 260, 300, 1000, 1030, 5000)
HELD = {
    "kept in its place": (obj(free=FREE), obj(free=FREE), ""),
    "moved": (obj(free=FREE), obj(other=obj(free=FREE)), "- {hub: spec.free, spoke: spec.other.free}"),
    "kept aside": (obj(free=FREE), obj(), "- {hub: spec.free, aside: true}"),
    "computed beside": (
        obj(free=FREE, a=INTEGER),
        obj(free=FREE, b=INTEGER),
        "- {hub: spec.a, spoke: spec.b, cel: {toHub: self, toSpoke: 'has(object.spec.free) ? self : 0'}}",
    ),
    "in a list": (
        obj(items=list_of(obj(free=FREE, a=INTEGER))),
        obj(items=list_of(obj(free=FREE, a=STRING))),
        "- {hub: spec.items, spoke: spec.items, each: [{hub: a, spoke: a, cast: true}]}",
    ),
}


def nested(levels: int, kind: str) -> str:
    """JSON with that many levels, and values in several notations at their end."""
    inside = r'"<é\u2028 \\\" &>"', "-1.5e-9", "1.5", "9007199254740993", "null", '{"a":[],"b":{}}'
    if kind == "lists":
        return "[" * levels + ",".join(inside) + "]" * levels
    return '{"a":[],"b":' * levels + f"[{','.join(inside)}]" + "}" * levels


def asked(conversion: Conversion, value: str, version: str) -> dict[str, Any]:
    """The result for that object, read like the API server reads it."""
    request = f'{{"uid":"7","desiredAPIVersion":"{GROUP}/{version}","objects":[{value}]}}'
    kind = '"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"'
    reply = answered(f'{{{kind},"request":{request}}}'.encode(), conversion)
    assert not reply.error, reply.error[:300]
    made: dict[str, Any] = loads(reply.content)["response"]["convertedObjects"][0]
    return made


def text(value: Any) -> str:
    return dumps(value, sort=True).decode()


@pytest.mark.parametrize("kind", ["lists", "objects"])
@pytest.mark.parametrize(("hub", "spoke", "rules"), HELD.values(), ids=HELD)
def test_an_object_of_any_depth_comes_back_as_it_was(hub: Any, spoke: Any, rules: str, kind: str) -> None:
    conversion = compiled(hub, {"v2": (spoke, rules)})
    for depth in DEPTHS:
        free = f'{{"deep":{nested(depth, kind)}}}'
        own = (
            f'{{"items":[{{"a":7,"free":{free}}}]}}' if "items" in hub["properties"] else f'{{"free":{free}}}'
        )
        value = json.dumps(at("v1", None)).replace('"spec": null', f'"spec":{own}')
        there = asked(conversion, value, "v2")
        assert there["apiVersion"] == f"{GROUP}/v2"
        back = asked(conversion, text(there), "v1")
        assert text(back) == text(loads(value)), depth


def test_an_edit_beside_something_deep_loses_nothing() -> None:
    rules = "- {hub: spec.free, aside: true}\n- {hub: spec.a, spoke: spec.b}"
    conversion = compiled(obj(free=FREE, a=STRING), {"v2": (obj(b=STRING), rules)})
    value = text(at("v1", {"a": "x", "free": {}})).replace(
        '"free":{}', f'"free":{{"d":{nested(3000, "lists")}}}'
    )
    there = asked(conversion, value, "v2")
    assert there["spec"] == {"b": "x"}
    back = asked(conversion, text({**there, "spec": {"b": "y"}}), "v1")
    assert text(back) == text(loads(value)).replace('"a":"x"', '"a":"y"')


@pytest.mark.parametrize("depth", [DEEPEST - 3, DEEPEST - 2, 9_997])
def test_no_answer_is_deeper_than_an_api_server_reads(depth: int) -> None:
    conversion = compiled(obj(free=FREE), {"v2": (obj(free=FREE), "")})
    deep = "[" * depth + "]" * depth
    value = text(at("v1", {"free": {}})).replace('"free":{}', f'"free":{{"a":1,"b":{deep}}}')
    made = asked(conversion, value, "v2")
    # The object, its spec and the field are three levels above it.
    whole = depth + 3 <= DEEPEST
    assert (text(made) == value.replace("/v1", "/v2")) == whole
    assert _levels(text(made)) <= DEEPEST
    assert made["spec"]["free"]["a"] == 1


def test_no_note_makes_an_answer_too_deep() -> None:
    conversion = compiled(
        obj(free=FREE, a=ANY),
        {"v2": (obj(), "- {hub: spec.free, aside: true}\n- {hub: spec.a, aside: true}")},
    )
    deep = "[" * 20_000 + "]" * 20_000
    note = f'{{"fields":[{{"at":["spec","a"],"was":[1,{deep}]}}]}}'
    made = asked(conversion, text(at("v2", {}, annotations={PREFIX + "v1": note})), "v1")
    assert made["spec"]["a"][0] == 1
    assert _levels(text(made)) < 200


BROKEN = (
    *(
        "[" * 300 + each + "]" * 300
        for each in ("1,", ",", "1 2", '"', "tru", "1e999", "NaN", ":", "}", "{]", '"\x01"')
    ),
    *(
        "[" * 300 + "{" + each + "}" + "]" * 300
        for each in ("1:2", '"a"', '"a":', '"a":1,', ',"a":1', '"a":1:2')
    ),
    "[" * 300,
    "[" * 300 + "]" * 299,
    "[" * 300 + "]" * 301,
    "[" * 300 + "]" * 300 + "x",
    "[" * 300 + "}" * 300,
    "[" * 100 + '{"a":' * 200 + "1" + "]" * 200 + "}" * 100,
)


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_no_json_stays_so_far_down(broken: str) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        loads(broken)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_note_spoils_no_answer(broken: str) -> None:
    conversion = compiled(obj(a=ANY), {"v2": (obj(), "- {hub: spec.a, aside: true}")})
    note = f'{{"fields":[{{"at":["spec","a"],"was":{broken}}}]}}'
    assert asked(conversion, text(at("v2", {}, annotations={PREFIX + "v1": note})), "v1")["spec"] == {}


def test_white_space_and_keys_of_all_kinds() -> None:
    found = loads(" \n" + '{ "a\\u00e9\\"" :\t[ ' * 200 + ' 1.0 , "x" ' + "] }" * 200 + " ")
    assert dumps(found).decode() == '{"aé\\"":[' * 200 + '1,"x"' + "]}" * 200


def test_a_map_of_anything_far_down() -> None:
    conversion = compiled(obj(b=map_of(ANY)), {"v2": (obj(b=map_of(ANY)), "")})
    value = text(at("v1", {"b": {}})).replace('"b":{}', f'"b":{{"x":{nested(400, "objects")}}}')
    assert text(asked(conversion, value, "v2")) == text(loads(value)).replace("/v1", "/v2")


def test_a_rule_that_meets_something_deep_shows_a_stand_in() -> None:
    rules = "- {hub: spec.a, spoke: spec.a, cel: {toSpoke: 'self.join()', toHub: '[self]'}}"
    conversion = compiled(obj(a=list_of(STRING)), {"v2": (obj(a=STRING), rules)})
    # As the schema was before, although no schema of any version can require it now.
    value = text(at("v1", {"a": []})).replace('"a":[]', f'"a":[{nested(400, "lists")}]')
    there = asked(conversion, value, "v2")
    assert there["spec"] == {}
    assert kind_of(Deep(b"[]", 1)) == "a list or an object far down"


@pytest.mark.parametrize("depth", [100, 300, 900, 1100, 9000])
def test_no_object_holds_up_the_verification_of_rules(depth: int) -> None:
    schemas = {"v1": crd(obj(free=FREE, a=STRING)), "v2": crd(obj(free=FREE, a=INTEGER))}
    trial = compile_trial(spec_of({"v2": "- {hub: spec.a, spoke: spec.a, cast: true}"}), schemas)
    assert isinstance(trial, Trial)
    value = text(at("v1", {"a": "7", "free": {}}))
    page = f'{{"items":[{value}]}}'.replace('"free":{}', f'"free":{{"b":{nested(depth, "lists")}}}')
    found = Answer(200, page.encode()).object
    assert found is not None
    assert trial.judge(found["items"][0]).faults == []


def test_the_largest_that_etcd_takes_is_read_in_time() -> None:
    conversion = compiled(obj(free=FREE), {"v2": (obj(), "- {hub: spec.free, aside: true}")})
    deep = "[" * 5000 + ",".join(["[]"] * 490_000) + "]" * 5000
    value = text(at("v1", {"free": {}})).replace('"free":{}', f'"free":{{"a":{deep}}}')
    assert len(value) > 1_450_000
    begin = time.process_time()
    there = asked(conversion, value, "v2")
    assert text(asked(conversion, text(there), "v1")) == value
    # A worker has five seconds of this for each.
    assert time.process_time() - begin < 10


class Aborted(BaseException):
    """As a limit of time raises it, at any point."""


@pytest.mark.parametrize("access", [1, 2])
def test_work_that_is_aborted_while_it_is_written_says_so(access: int) -> None:
    """orjson raises an exception of its own instead, which looked like a defect, or went unnoticed."""
    read: list[int] = []

    class Slow(Deep):
        @property
        def text(self) -> bytes:
            read.append(1)
            if len(read) == access:
                raise Aborted
            return b"[]"

        @text.setter
        def text(self, _: bytes) -> None:
            pass

    with pytest.raises(Aborted):
        dumps({"a": Slow(b"[]", 1)})
    assert len(read) == access


def _levels(found: str) -> int:
    """Of JSON without brackets in strings."""
    depth = deepest = 0
    for each in found:
        depth += (each in "[{") - (each in "]}")
        deepest = max(deepest, depth)
    return deepest
