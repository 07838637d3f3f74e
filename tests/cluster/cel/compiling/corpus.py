"""The CRDs of a directory: unchanged, with other rules, and without limits that make rules cheap."""

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from crdkeeper.apiserver.schema.props import VALIDATIONS
from crdkeeper.core.documents.yamldocument import documents
from tests.cluster.cel.compiling.expressions import mutated

_LIMITS: Final = ("maxItems", "maxLength", "maxProperties", "enum", "format")


def with_other_rules(rng: random.Random, folder: str, times: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each CRD with rules, and `times` variants of each of its versions; with the name of its file."""
    for file in sorted(Path(folder).rglob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        if VALIDATIONS not in text:
            continue
        for document in documents(text):
            crd = document.value
            for version in range(len(crd["spec"].get("versions", ()))):
                single = _single(crd, version)
                if not list(_nodes(single["spec"])):
                    continue
                yield file.name, single
                for _ in range(times):
                    yield file.name, _with_mutations(rng, single)
                    yield file.name, _without_limits(rng, single)


def _single(crd: dict[str, Any], index: int) -> dict[str, Any]:
    crd = copy.deepcopy(crd)
    version = crd["spec"]["versions"][index]
    version.update(served=True, storage=True)
    crd["spec"]["versions"] = [version]
    crd["spec"].pop("conversion", None)
    crd.pop("status", None)
    return crd


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    """All schemas with rules."""
    if isinstance(node, dict):
        if isinstance(node.get(VALIDATIONS), list):
            yield node
        for each in node.values():
            yield from _nodes(each)
    elif isinstance(node, list):
        for each in node:
            yield from _nodes(each)


def _with_mutations(rng: random.Random, crd: dict[str, Any]) -> dict[str, Any]:
    crd = copy.deepcopy(crd)
    for schema in _nodes(crd["spec"]):
        for rule in schema[VALIDATIONS]:
            if rng.random() < 0.6:
                rule["rule"] = mutated(rng, rule["rule"])
            if rng.random() < 0.2:
                rule["messageExpression"] = rng.choice(("'a'", "string(self)", "self.x", rule["rule"]))
            if rng.random() < 0.1:
                rule["optionalOldSelf"] = rng.random() < 0.7
    return crd


def _without_limits(rng: random.Random, crd: dict[str, Any]) -> dict[str, Any]:
    crd = copy.deepcopy(crd)
    _drop_limits(rng, crd["spec"]["versions"][0])
    return crd


def _drop_limits(rng: random.Random, node: Any) -> None:
    if isinstance(node, dict):
        for key in _LIMITS:
            if not isinstance(node.get(key), dict | None) and "type" in node and rng.random() < 0.6:
                del node[key]
        for each in node.values():
            _drop_limits(rng, each)
    elif isinstance(node, list):
        for each in node:
            _drop_limits(rng, each)
