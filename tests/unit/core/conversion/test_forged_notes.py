"""Whoever can write an object can write its annotations: no false note is believed."""

import json
from typing import Any

import pytest
import yaml

from crdkeeper.core.conversion import keptaside, restoring
from crdkeeper.core.conversion.notes import PREFIX
from crdkeeper.core.conversion.objects import Conversion, ConversionTally
from tests.unit.core.conversion.samples import INTEGER, STRING, at, compiled, list_of, map_of, obj

IMAGE = {**STRING, "pattern": "^[a-z:]+$", "maxLength": 20}
HUB: dict[str, Any] = {
    **obj(
        host=STRING,
        port={**INTEGER, "minimum": 1, "maximum": 65535},
        replicas={**INTEGER, "maximum": 10},
        mode={**STRING, "enum": ["A", "B"]},
        secret=STRING,
        containers=list_of({**obj(name=STRING, image=IMAGE, memory=STRING), "required": ["name"]}, "name"),
        limits={**map_of(INTEGER), "maxProperties": 2},
        free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        must=STRING,
    ),
    "required": ["must"],
}
SPOKE = obj(
    hostPort={**STRING, "pattern": "^[^:]+:[1-9][0-9]{0,4}$"},
    containers=map_of(obj(image=IMAGE, memoryMiB=INTEGER)),
    must=STRING,
    note=STRING,
)
RULES = """
- spoke: spec.hostPort
  join: {template: "{host}:{port}", parts: {host: spec.host, port: spec.port}}
- {hub: spec.replicas, aside: true}
- {hub: spec.mode, aside: true}
- {hub: spec.secret, drop: true}
- {hub: spec.limits, aside: true}
- {hub: spec.free, aside: true}
- {hub: spec.containers, spoke: spec.containers, key: name, each: [
    {hub: memory, spoke: memoryMiB, quantity: Mi}]}
- {spoke: spec.note, hub: 'metadata.labels[example.com/note]'}
- {hub: 'metadata.annotations[example.com/aside]', aside: true}
- {hub: 'metadata.labels[example.com/aside]', aside: true}
"""
CONTAINERS = [{"name": "web", "image": "nginx", "memory": "1Gi"}, {"name": "db", "image": "pg"}]
V1: dict[str, Any] = {"host": "good", "port": 80, "must": "be", "containers": CONTAINERS}
V1BETA1: dict[str, Any] = {
    "hostPort": "good:80",
    "must": "be",
    "containers": {"web": {"image": "nginx", "memoryMiB": 1024}, "db": {"image": "pg"}},
}
V1_AGAIN: dict[str, Any] = {
    **V1,
    "containers": [{"name": "db", "image": "pg"}, {"name": "web", "image": "nginx", "memory": "1024Mi"}],
}


@pytest.fixture(scope="module")
def conversion() -> Conversion:
    return compiled(HUB, {"v1beta1": (SPOKE, RULES)})


def note(*entries: Any, **others: Any) -> str:
    return json.dumps({"fields": list(entries), **others})


def forged(version: str, *entries: Any, **spec: Any) -> dict[str, Any]:
    """An object of the other version with a hand-written note."""
    other, own = ("v1", V1) if version == "v1beta1" else ("v1beta1", V1BETA1)
    return at(other, {**own, **spec}, annotations={PREFIX + version: note(*entries)})


def entry(path: str, was: Any = None, **fields: Any) -> dict[str, Any]:
    steps = yaml.safe_load(path) if path.startswith("[") else path.split(".")
    return {"at": steps, **({} if was is None else {"was": was}), **fields}


AT_V1BETA1 = {
    "what a join makes": entry("spec.hostPort", "evil:1", **{"is": "good:80"}),
    "the object around it": entry("spec", {**V1BETA1, "hostPort": "evil:1"}, **{"is": V1BETA1}),
    "a number that is converted": entry("spec.containers.web.memoryMiB", 5, **{"is": 1024}),
    "an entry more in a map": entry("spec.containers.evil", {"image": "evil"}),
    "an entry less in a map": entry("spec.containers.web", **{"is": V1BETA1["containers"]["web"]}),
    "what moves as it is": entry("spec.must", "evil", **{"is": "be"}),
    "a field that is undeclared": entry("spec.evil", "evil"),
    "a part that is undeclared": entry("spec.containers.web.evil", "evil"),
    "the name": entry("metadata.name", "evil", **{"is": "a"}),
    "the namespace": entry("metadata.namespace", "evil"),
    "the uid": entry("metadata.uid", "2", **{"is": "1"}),
    "the owners": entry("metadata.ownerReferences", [{"kind": "Evil"}]),
    "all of metadata": entry("metadata", {"name": "evil"}, **{"is": {"name": "a", "uid": "1"}}),
    "the kind": entry("kind", "Evil", **{"is": "CronTab"}),
    "the version": entry("apiVersion", "evil/v1", **{"is": "stable.example.com/v1beta1"}),
    "an annotation": entry("metadata.annotations.evil", "evil"),
    "all annotations": entry("metadata.annotations", {"evil": "evil"}),
    "a label": entry("metadata.labels.evil", "evil"),
    "a note": entry(f"[metadata, annotations, {PREFIX}v1]", note(entry("spec.replicas", 3))),
    "a field of the root": entry("evil", "evil"),
    "a prototype": entry("__proto__.evil", "evil"),
}


@pytest.mark.parametrize("one", AT_V1BETA1.values(), ids=AT_V1BETA1)
def test_what_the_rules_convert_is_theirs(conversion: Conversion, one: dict[str, Any]) -> None:
    tally = ConversionTally()
    assert plain(conversion.convert(forged("v1beta1", one), "v1beta1", tally)) == at("v1beta1", V1BETA1)
    assert tally.ignored == 1


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """Without honest notes, which are not checked here."""
    annotations = value["metadata"].get("annotations") or {}
    left = {key: each for key, each in annotations.items() if not key.startswith(PREFIX)}
    metadata = {key: each for key, each in value["metadata"].items() if key != "annotations"}
    return {**value, "metadata": {**metadata, **({"annotations": left} if left else {})}}


WEB = ["spec", "containers", ["web"]]
TWICE = [*V1_AGAIN["containers"], {"name": "web", "image": "evil"}]
AT_V1 = {
    "another type": entry("spec.replicas", "3"),
    "a text as an object": entry("spec.mode", {"a": "A"}),
    "beyond the maximum": entry("spec.replicas", 11),
    "a number of many digits": entry("spec.replicas", 2**64 - 1),
    "not of the enum": entry("spec.mode", "C"),
    "null": {"at": ["spec", "mode"], "was": None},
    "too many entries": entry("spec.limits", {"a": 1, "b": 2, "c": 3}),
    "a wrong type in a map": entry("spec.limits", {"a": "b"}),
    "what a rule drops": entry("spec.secret", "evil"),
    "a port beyond its bounds": entry("spec.port", 70000, **{"is": 80}),
    "a field less that is required": entry("spec.must", **{"is": "be"}),
    "an item that is not known": {"at": [*WEB[:2], ["evil"]], "was": {"name": "evil"}},
    "an item under another name": {"at": [*WEB, "name"], "was": "evil", "is": "web"},
    "a pattern": {"at": [*WEB, "image"], "was": "EVIL", "is": "nginx"},
    "a memory that converts to another": {"at": [*WEB, "memory"], "was": "2Gi", "is": "1024Mi"},
    "a memory that converts to nothing": {"at": [*WEB, "memory"], "was": "evil", "is": "1024Mi"},
    "a name twice": {"at": WEB[:2], "was": TWICE, "is": V1_AGAIN["containers"]},
    "no text as an annotation": entry("[metadata, annotations, example.com/aside]", 3),
    "no text as a label": entry("[metadata, labels, example.com/aside]", {"a": "b"}),
    "what cannot be a label": entry("[metadata, labels, example.com/aside]", "not a label"),
    "what a rule makes a label": entry("[metadata, labels, example.com/note]", "evil"),
}


@pytest.mark.parametrize("one", AT_V1.values(), ids=AT_V1)
def test_what_comes_back_is_of_the_schema(conversion: Conversion, one: dict[str, Any]) -> None:
    tally = ConversionTally()
    made = plain(conversion.convert(forged("v1", one), "v1", tally))
    assert made == at("v1", V1_AGAIN)
    assert tally.ignored == 1


def test_values_of_the_schema_that_the_rules_lose_can_be_chosen(conversion: Conversion) -> None:
    chosen = [
        entry("spec.replicas", 3),
        entry("spec.mode", "B"),
        entry("spec.limits", {"a": 1}),
        entry("spec.free", {"any": [{"thing": 1}]}),
        {"at": [*WEB, "memory"], "was": "1Gi", "is": "1024Mi"},
        {"at": WEB[:2], "order": [["web"], ["db"]]},
        entry("[metadata, annotations, example.com/aside]", "any text"),
        entry("[metadata, labels, example.com/aside]", "a-label"),
    ]
    tally = ConversionTally()
    assert conversion.convert(forged("v1", *chosen), "v1", tally) == at(
        "v1",
        {**V1, "replicas": 3, "mode": "B", "limits": {"a": 1}, "free": {"any": [{"thing": 1}]}},
        annotations={"example.com/aside": "any text"},
        labels={"example.com/aside": "a-label"},
    )
    assert tally.ignored == 0


def test_what_is_honest_comes_back_beside_what_is_not(conversion: Conversion) -> None:
    old = at("v1", {**V1, "replicas": 3, "mode": "B"})
    new = conversion.convert(old, "v1beta1")
    key = PREFIX + "v1"
    fields = json.loads(new["metadata"]["annotations"][key])["fields"]
    new["metadata"]["annotations"][key] = note(7, *fields, *AT_V1.values(), {"at": []})
    assert conversion.convert(new, "v1")["spec"] == old["spec"]


def test_an_edit_is_no_forgery(conversion: Conversion) -> None:
    new = conversion.convert(at("v1", {**V1, "replicas": 3}), "v1beta1")
    new["spec"]["containers"]["web"]["memoryMiB"] = 2048
    tally = ConversionTally()
    made = conversion.convert(new, "v1", tally)["spec"]
    assert (made["replicas"], made["containers"][0]["memory"]) == (3, "2048Mi")
    assert tally.ignored == 0


def test_of_entries_for_one_place_the_first_counts(conversion: Conversion) -> None:
    limits = {"a": 1}
    entries = [
        entry("spec.limits", limits),
        entry("spec.limits", {"b": 2}),
        entry("spec.limits.c", 3),
        entry("spec.replicas", 1),
        entry("spec", {"evil": 1}, **{"is": V1_AGAIN}),
        {"at": WEB[:2], "order": [["web"], ["db"]]},
        {"at": WEB[:2], "order": [["db"], ["web"]]},
    ]
    tally = ConversionTally()
    made = conversion.convert(forged("v1", *entries), "v1", tally)
    assert made["spec"] == {
        **V1,
        "limits": limits,
        "replicas": 1,
        "containers": [V1["containers"][0] | {"memory": "1024Mi"}, CONTAINERS[1]],
    }
    assert tally.ignored == 4


DEEP: Any = "x"
for _ in range(240):
    DEEP = [DEEP]
UNREADABLE = {
    "no text": 7,
    "nothing": "",
    "no JSON": "{",
    "no object": "[]",
    "no entries": '{"fields": 1}',
    "nested deeper than any parser goes": "[" * 5000,
    "infinity": '{"fields": [{"at": ["spec", "replicas"], "was": 1e999}]}',
    "not a number": '{"fields": [{"at": ["spec", "replicas"], "was": NaN}]}',
    "too long": note(entry("spec.free", {"a": "x" * (8 << 20)})),
    "too many": note(entry("spec.free", {"a": [1] * 1_000_000})),
    "no steps": note({"at": []}),
    "no list of steps": note({"at": "spec"}),
    "a position on the way": note({"at": ["spec", 0, "a"]}),
    "a negative position": note({"at": ["spec", -1]}),
    "a flag as a step": note({"at": [True]}),
    "a name of lists": note({"at": [[[]]]}),
    "a long way": note({"at": ["spec"] * 1000}),
    "no list as an order": note({"at": ["spec"], "order": "x"}),
    "no entry": note(1),
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_note_is_worth_nothing(conversion: Conversion, text: Any) -> None:
    tally = ConversionTally()
    value = at("v1beta1", V1BETA1, annotations={PREFIX + "v1": text})
    assert conversion.convert(value, "v1", tally) == at("v1", V1_AGAIN)
    assert tally.ignored == 1


@pytest.mark.parametrize("order", [2**64 - 1, 2**63, -1, "x", None])
def test_a_number_of_many_digits_beside_the_entries(conversion: Conversion, order: Any) -> None:
    text = note(entry("spec.replicas", 3), order=order)
    value = at("v1beta1", V1BETA1, annotations={PREFIX + "v1": text, PREFIX + "v9": text})
    made = conversion.convert(value, "v1")
    assert made["spec"]["replicas"] == 3
    assert conversion.convert(made, "v1beta1")["spec"] == V1BETA1


def test_a_note_for_the_version_that_an_object_has_means_nothing(conversion: Conversion) -> None:
    lie = note(entry("spec.replicas", 4, **{"is": 3}), entry("spec.mode", "B"))
    old = at("v1", {**V1, "replicas": 3}, annotations={PREFIX + "v1": lie})
    new = conversion.convert(old, "v1beta1")
    assert conversion.convert(new, "v1") == at("v1", {**V1, "replicas": 3})


def test_a_note_for_a_third_version_changes_no_other() -> None:
    hub, one_way = obj(n=INTEGER, m=STRING), "- {hub: spec.n, spoke: spec.n, cel: {toHub: 'self / 3'}}"
    conversion = compiled(hub, {"v2": (hub, ""), "v3": (hub, one_way)})
    value = at("v1", {"n": 3, "m": "x"}, annotations={PREFIX + "v3": note(entry("spec.n", 1000))})
    assert plain(conversion.convert(value, "v2")) == at("v2", {"n": 3, "m": "x"})


def test_what_is_kept_aside_cannot_use_up_what_expressions_may_cost() -> None:
    rules = (
        "- {hub: spec.list, aside: true}\n"
        "- {spoke: spec.sum, cel: {toSpoke: 'object.?spec.?list.orValue([]).map(x, x + x).size()'}}"
    )
    conversion = compiled(obj(a=STRING, list=list_of(STRING)), {"v2": (obj(a=STRING, sum=INTEGER), rules)})
    costly = ["x" * 200] * 1000
    value = at("v2", {"a": "x"}, annotations={PREFIX + "v1": note(entry("spec.list", costly))})
    assert conversion.convert(value, "v1")["spec"]["a"] == "x"


def test_a_pattern_that_takes_long_lets_nothing_in() -> None:
    pattern = {**STRING, "pattern": "^" + "(a?){50}" * 20 + "$"}
    conversion = compiled(
        obj(a=STRING, slow=list_of(pattern)), {"v2": (obj(a=STRING), "- {hub: spec.slow, aside: true}")}
    )
    value = at("v2", {"a": "x"}, annotations={PREFIX + "v1": note(entry("spec.slow", ["a" * 5000] * 40))})
    tally = ConversionTally()
    assert conversion.convert(value, "v1", tally) == at("v1", {"a": "x"})
    assert tally.ignored == 1


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_work_grows_with_the_size_alone(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list whose items all change, and a note whose entries name them in the wrong places."""
    each = "- {hub: spec.all, spoke: spec.all, each: [{hub: e, aside: true}]}"
    conversion = compiled(obj(all=list_of(obj(e=INTEGER))), {"v2": (obj(all=list_of(obj())), each)})

    def steps(number: int) -> int:
        fields = [{"at": ["spec", "all", number - i], "was": {"e": i}, "is": {}} for i in range(number)]
        forged = {PREFIX + "v1": note(*fields, *fields)} if version == "v1" else {}
        items = [{}] * number if version == "v1" else [{"e": 1}] * number
        value = at("v2" if version == "v1" else "v1", {"all": items}, annotations=forged)
        counted = 0

        def count(one: Any, other: Any) -> bool:
            nonlocal counted
            counted += 1
            return bool(original(one, other))

        original = keptaside.same
        with monkeypatch.context() as patch:
            patch.setattr(keptaside, "same", count)
            patch.setattr(restoring, "same", count)
            conversion.convert(value, version)
        return counted

    small, large = steps(100), steps(800)
    assert small >= 100
    assert large <= 9 * small
