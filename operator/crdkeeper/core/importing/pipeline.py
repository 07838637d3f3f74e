"""Rewrites Crossplane's Composition with patches and transforms as one of crdkeeper.

Facts about Crossplane come from its API (apis/apiextensions/v1) and from function-patch-and-transform
(input/v1beta1). What has no counterpart is reported.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from crdkeeper.api.composition import TYPE_NAMES, VARIABLES, WORDS
from crdkeeper.api.meta import API_VERSION
from crdkeeper.apiserver.cel.syntax.literaltext import literal_text
from crdkeeper.apiserver.objects.objectnode import copied
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.core.importing.fieldpath import BadFieldPath, parse, selection
from crdkeeper.core.importing.note import ImportedComposition, ImportNote, NotImportable
from crdkeeper.core.importing.parts import DROPPED, MOST_DEPTH, mapping, refusals
from crdkeeper.core.importing.patches import Patches
from crdkeeper.core.templates.kinds import group_of

KIND: Final = "Composition"
_VERSION: Final = "apiextensions.crossplane.io/v1"
_INPUT: Final = "pt.fn.crossplane.io"
_READY: Final = "function-auto-ready"
_OF_SPEC: Final = frozenset(("compositeTypeRef", "mode", "patchSets", "pipeline", "resources"))
_OF_INPUT: Final = frozenset(("apiVersion", "kind", "patchSets", "resources"))
_OF_RESOURCE: Final = frozenset(("base", "name", "patches", "readinessChecks"))
_RESERVED: Final = frozenset((*VARIABLES, *WORDS, *TYPE_NAMES))
"""What no resource can be called."""
_OTHER: Final = re.compile(r"[^A-Za-z0-9]+")
_MOST_NAME: Final = 50
_STEPS_TO_NAME: Final = 3


def imported(document: Mapping[str, Any]) -> ImportedComposition:
    """The Composition. Raises NotImportable, naming the field."""
    if document.get("kind") != KIND or document.get("apiVersion") != _VERSION:
        raise NotImportable(
            f"a {document.get('kind')} of {document.get('apiVersion')} is no {KIND} of {_VERSION}"
        )
    return _Import(document).done()


class _Import:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._metadata = mapping(document.get("metadata") or {}, root("metadata"))
        self._spec = mapping(document.get("spec"), root("spec"))
        self._notes: list[ImportNote] = []
        self._status: dict[str, Any] = {}
        self._number = itertools.count()
        self._names: dict[str, Path] = {}
        """Of the new resources: where each comes from."""

    def _tell(self, path: Path, message: str, remedy: str = "") -> None:
        self._notes.append(ImportNote(path, message, remedy))

    def done(self) -> ImportedComposition:
        at = root("spec")
        for name in self._spec.keys() - _OF_SPEC:
            self._tell(at.child(name), *DROPPED)
        resources: list[dict[str, Any]] = []
        for given, path in self._inputs():
            sets = self._patch_sets(given.get("patchSets"), path.child("patchSets"))
            for i, each in enumerate(_list(given.get("resources"), path.child("resources"))):
                place = path.child("resources").index(i)
                resources.append(self._resource(mapping(each, place), place, sets))
        spec: dict[str, Any] = {
            "compositeTypeRef": copied(self._spec.get("compositeTypeRef")),
            "resources": resources,
        }
        if self._status:
            spec["status"] = self._status
        metadata: dict[str, Any] = {"name": self._metadata.get("name")}
        if self._metadata.get("labels"):
            metadata["labels"] = copied(self._metadata["labels"])
        composition = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}
        self._notes += refusals(composition, self._before)
        return ImportedComposition(composition, tuple(self._notes))

    def _inputs(self) -> Iterator[tuple[Mapping[str, Any], Path]]:
        """What says patches and resources: the Composition itself, or steps of its pipeline."""
        at = root("spec")
        if self._spec.get("mode") != "Pipeline" and self._spec.get("resources"):
            yield self._spec, at
        steps = at.child("pipeline")
        for i, each in enumerate(_list(self._spec.get("pipeline"), steps)):
            path = steps.index(i)
            step = mapping(each, path)
            given = step.get("input")
            if isinstance(given, Mapping) and str(given.get("apiVersion")).partition("/")[0] == _INPUT:
                for name in given.keys() - _OF_INPUT:
                    self._tell(path.child("input").child(name), *DROPPED)
                yield given, path.child("input")
                continue
            function = step.get("functionRef")
            name = function.get("name") if isinstance(function, Mapping) else None
            if not str(name).endswith(_READY):
                self._tell(
                    path,
                    f"dropped: the function {name} has no counterpart",
                    "Write what it makes as resources of the Composition.",
                )

    def _patch_sets(self, given: object, path: Path) -> dict[str, tuple[Any, Path]]:
        sets = {}
        for i, each in enumerate(_list(given, path)):
            one = mapping(each, path.index(i))
            sets[str(one.get("name"))] = one.get("patches"), path.index(i).child("patches")
        return sets

    def _resource(
        self, given: Mapping[str, Any], path: Path, sets: Mapping[str, tuple[Any, Path]]
    ) -> dict[str, Any]:
        for name in given.keys() - _OF_RESOURCE:
            self._tell(path.child(name), *DROPPED)
        base = _escaped(mapping(given.get("base"), path.child("base")), path.child("base"))
        name = self._named(given.get("name"), path)
        patches = Patches(name, sets, base, self._status, self._number, self._notes)
        patches.apply(given.get("patches"), path.child("patches"))
        metadata = base.setdefault("metadata", {})
        if isinstance(metadata, dict) and not metadata.get("name"):
            metadata.pop("generateName", None)
            suffix = _OTHER.sub("-", str(given.get("name") or name)).lower().strip("-")
            metadata["name"] = f"${{composite.metadata.name}}-{suffix}"
            said = f"Crossplane generates a name; the new object is called {metadata['name']}"
            self._tell(path.child("base"), said)
        made = {"name": name, "template": base}
        checks = list(self._ready_when(name, given.get("readinessChecks"), path.child("readinessChecks")))
        if not given.get("readinessChecks") and _is_custom(base):
            # Crossplane waits for this condition; kstatus does so only once there is one.
            checks = [f"${{{_condition(name, _READY_CHECK)}}}"]
        if checks:
            made["readyWhen"] = checks
        return made

    def _named(self, given: object, path: Path) -> str:
        words = [each for each in _OTHER.split(str(given or "")) if each]
        name = "".join((*words[:1], *(each[0].upper() + each[1:] for each in words[1:])))[:_MOST_NAME]
        if not name or name[0].isdigit() or name in _RESERVED:
            name = f"resource{name[:1].upper()}{name[1:]}"
        number, free = 1, name
        while free in self._names:
            number += 1
            free = f"{name}{number}"
        self._names[free] = path
        if free != given:
            self._tell(path.child("name"), f"the resource is called {free}, because expressions name it")
        return free

    def _ready_when(self, name: str, given: object, path: Path) -> Iterator[str]:
        for i, each in enumerate(_list(given, path)):
            check, at = mapping(each, path.index(i)), path.index(i)
            write = _CHECKS.get(str(check.get("type")))
            try:
                if write is None:
                    self._tell(at, *DROPPED)
                else:
                    yield f"${{{write(name, check)}}}"
            except (BadFieldPath, KeyError, TypeError):
                self._tell(at, "dropped: it cannot be read", "Write readyWhen by hand.")

    def _before(self, path: Path) -> Path:
        """The place in the old file of a place in the Composition."""
        steps = path.steps
        if steps[:2] == ("spec", "resources") and len(steps) >= _STEPS_TO_NAME:
            found = list(self._names.values())
            number = steps[2]
            if isinstance(number, int) and number < len(found):
                return found[number]
        return path if steps[:1] == ("metadata",) else root("spec")


def _is_custom(base: Mapping[str, Any]) -> bool:
    """Whether an object is of no API of Kubernetes itself."""
    group = group_of(str(base.get("apiVersion")))
    return "." in group and not group.endswith(".k8s.io")


def _field(name: str, check: Mapping[str, Any]) -> str:
    return selection(name, parse(check["fieldPath"]), optional=True)


def _condition(name: str, check: Mapping[str, Any]) -> str:
    wanted = check["matchCondition"]
    kind, status = literal_text(str(wanted["type"])), literal_text(str(wanted["status"]))
    return f"{name}.?status.conditions.orValue([]).exists(c, c.type == {kind} && c.status == {status})"


_READY_CHECK: Final = {"matchCondition": {"type": "Ready", "status": "True"}}
_CHECKS: Final = {
    "None": lambda _name, _check: "true",
    "NonEmpty": lambda name, check: f"{_field(name, check)}.hasValue()",
    "MatchString": lambda name, check: (
        f"{_field(name, check)} == optional.of({literal_text(str(check['matchString']))})"
    ),
    "MatchInteger": lambda name, check: f"{_field(name, check)} == optional.of({int(check['matchInteger'])})",
    "MatchTrue": lambda name, check: f"{_field(name, check)}.orValue(false)",
    "MatchFalse": lambda name, check: f"!{_field(name, check)}.orValue(true)",
    "MatchCondition": _condition,
}


def _escaped(value: Any, path: Path, depth: int = 1) -> Any:
    """A copy of a part of a base, in which `${` is literal."""
    if depth > MOST_DEPTH:
        raise NotImportable(f"more than {MOST_DEPTH} levels", path)
    if isinstance(value, Mapping):
        return {str(name): _escaped(each, path.child(str(name)), depth + 1) for name, each in value.items()}
    if isinstance(value, list):
        return [_escaped(each, path.index(i), depth + 1) for i, each in enumerate(value)]
    return value.replace("${", "$${") if isinstance(value, str) else value


def _list(value: object, path: Path) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotImportable("must be a list", path)
    return value
