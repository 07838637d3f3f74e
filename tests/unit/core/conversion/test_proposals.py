"""The messages about fields without a rule help: proposals can be used unchanged."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.core.conversion.narrowing import narrowed
from crdkeeper.core.conversion.notes import without_notes
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.samples import samples
from tests.unit.core.conversion.samples import (
    INTEGER,
    STRING,
    crd,
    errors,
    list_of,
    map_of,
    obj,
)

CORPUS = os.environ.get("CRDKEEPER_CORPUS", "")
ENTRY = obj(name=STRING, value=STRING)
STATUSES = [{"type": "string", "enum": each} for each in (["True", "Failed"], ["true", "failed", "Odd"])]

# hub schema, spoke schema, the first proposals
PROPOSED: dict[str, tuple[Any, Any, set[str]]] = {
    "a renamed field": (
        obj(schedule=STRING),
        obj(cronSchedule=STRING),
        {"{hub: spec.schedule, spoke: spec.cronSchedule}"},
    ),
    "a field that moved": (
        obj(drain=obj(timeout=STRING, order=STRING)),
        obj(drainTimeout=STRING),
        {"{hub: spec.drain.timeout, spoke: spec.drainTimeout}", "{hub: spec.drain, aside: true}"},
    ),
    "fields that have nothing in common": (
        obj(alpha=STRING),
        obj(beta=STRING),
        {"{hub: spec.alpha, aside: true}", "{spoke: spec.beta, aside: true}"},
    ),
    "seconds": (
        obj(timeoutSeconds=INTEGER),
        obj(timeout=STRING),
        {"{hub: spec.timeoutSeconds, spoke: spec.timeout, duration: s}"},
    ),
    "mebibytes": (
        obj(memory=STRING),
        obj(memoryMiB=INTEGER),
        {"{hub: spec.memory, spoke: spec.memoryMiB, quantity: Mi}"},
    ),
    "a text of two": (
        obj(host=STRING, port=INTEGER),
        obj(hostPort=STRING),
        {
            '{spoke: spec.hostPort, join: {template: "{host}:{port}", '
            "parts: {host: spec.host, port: spec.port}}}"
        },
    ),
    "a list and a map": (
        obj(env=list_of(ENTRY, "name")),
        obj(env=map_of(STRING)),
        {"{hub: spec.env, spoke: spec.env, key: name}"},
    ),
    "a list and a map of other objects": (
        obj(env=list_of(obj(name=STRING, port=INTEGER), "name")),
        obj(env=map_of(obj(port=STRING))),
        {"{hub: spec.env, spoke: spec.env, key: name, each: [{hub: port, spoke: port, cast: true}]}"},
    ),
    "a list and one": (
        obj(listener=obj(port=INTEGER)),
        obj(listener=list_of(obj(port=STRING))),
        {
            "{hub: spec.listener, spoke: spec.listener, wrap: true, "
            "each: [{hub: port, spoke: port, cast: true}]}"
        },
    ),
    "a list and a text": (
        obj(hosts=list_of(STRING)),
        obj(hosts=STRING),
        {"{hub: spec.hosts, spoke: spec.hosts, wrap: true}"},
    ),
    "values": (
        obj(status=STATUSES[0]),
        obj(status=STATUSES[1]),
        {
            '{hub: spec.status, spoke: spec.status, values: [{hub: "True", spoke: "true"}, '
            "{hub: Failed, spoke: failed}, {hub: ..., spoke: Odd}]}"
        },
    ),
    "values and any text": (
        obj(status=STATUSES[0]),
        obj(status=STRING),
        {"{hub: spec.status, spoke: spec.status, cast: true}"},
    ),
    "lists that changed places": (
        obj(conditions=list_of(ENTRY), old=obj(conditions=list_of(obj(type=STRING)))),
        obj(conditions=list_of(obj(type=STRING)), new=obj(conditions=list_of(ENTRY))),
        {
            "{hub: spec.conditions, spoke: spec.new.conditions}",
            "{hub: spec.old.conditions, spoke: spec.conditions}",
        },
    ),
    "a name that YAML would not understand": (
        obj(**{"a-b": STRING}),
        obj(),
        {'{hub: "spec[a-b]", aside: true}'},
    ),
}


@pytest.mark.parametrize(("hub", "spoke", "wanted"), PROPOSED.values(), ids=PROPOSED)
def test_proposals(hub: Any, spoke: Any, wanted: set[str]) -> None:
    found = errors(hub, spoke, "")
    assert {each.proposals[0] for each in found} == wanted
    assert all(each.proposals[0] in each.message for each in found)
    rules = [yaml.safe_load(each) for each in wanted if "..." not in each]
    if len(rules) == len(wanted):
        schemas = {"v1": crd(hub), "v2": crd(spoke)}
        assert isinstance(compile_conversion(_spec({"v2": rules}), schemas), Conversion)


def _spec(rules: dict[str, list[Any]], hub: str = "v1") -> VersionConversionSpec:
    spokes = [{"version": version, "rules": each} for version, each in rules.items()]
    resource = {"group": "example.com", "resource": "things"}
    return VersionConversionSpec.model_validate({"resource": resource, "hub": hub, "spokes": spokes})


def _definitions() -> Iterator[dict[str, Any]]:
    """Those of the corpus that have several versions."""
    for file in sorted(Path(CORPUS).rglob("*.yaml")):
        text = file.read_text()
        if text.count("openAPIV3Schema:") < 2:
            continue
        definition = yaml.load(text, Loader=yaml.CSafeLoader)
        if len(definition["spec"].get("versions", ())) > 1:
            yield definition


@pytest.mark.skipif(not CORPUS, reason="CRDKEEPER_CORPUS names no folder of CRDs")
def test_of_real_definitions_the_proposals_compile_and_lose_nothing() -> None:
    """Used unchanged; only if a value has no counterpart, the second one is used, or nothing is known."""
    compiled = left = 0
    for definition in _definitions():
        name = definition["metadata"]["name"]
        schemas = schemas_of(definition)
        (hub,) = (each["name"] for each in definition["spec"]["versions"] if each["storage"])
        rules: dict[str, list[Any]] = {version: [] for version in schemas if version != hub}
        found = compile_conversion(_spec(rules, hub), schemas)
        if not isinstance(found, Conversion):
            for each in found:
                known = [rule for rule in each.proposals if "..." not in rule]
                rule = yaml.safe_load(known[0]) if known else None
                version = list(rules)[int(each.where.split("[")[1].split("]")[0])]
                if rule is not None and rule not in rules[version]:
                    rules[version].append(rule)
            found = compile_conversion(_spec(rules, hub), schemas)
        if not isinstance(found, Conversion):
            assert all("..." in each.message for each in found), (name, found)
            left += 1
            continue
        compiled += 1
        spec = _spec(rules, hub)
        for version in schemas:
            for content in samples(narrowed(spec, schemas, version), 12):
                value = {"apiVersion": f"example.com/{version}", "kind": "Thing", "metadata": {}, **content}
                for other in schemas:
                    there = found.convert(value, other)
                    assert without_notes(found.convert(there, version)) == value, (name, other)
    assert compiled > 20 and left < 6
