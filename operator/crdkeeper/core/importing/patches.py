"""Patches of Crossplane's function-patch-and-transform, written into a template and a status."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from crdkeeper.apiserver.cel.syntax.literaltext import literal_text
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.core.importing.fieldpath import (
    BadFieldPath,
    Steps,
    expanded,
    parse,
    put,
    selection,
)
from crdkeeper.core.importing.note import ImportNote, NotImportable
from crdkeeper.core.importing.transforms import NoCounterpart, formatted, transformed
from crdkeeper.core.templates.texts import LONGEST_EXPRESSION

COMPOSITE: Final = "composite"
_VALUE: Final = "v"
_ALWAYS: Final = (("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid"))
"""Fields that each composite has."""
_FROM: Final = ("FromCompositeFieldPath", "CombineFromComposite")
_TO: Final = ("ToCompositeFieldPath", "CombineToComposite")
_COMBINES: Final = ("CombineFromComposite", "CombineToComposite")
_KNOWN: Final = frozenset(
    ("combine", "fromFieldPath", "patchSetName", "policy", "toFieldPath", "transforms", "type")
)
_GONE: Final[dict[Steps, str]] = {
    ("metadata", "labels", "crossplane.io/composite"): "composite.metadata.name",
}
_MOST_PATCHES: Final = 20_000
_ONLY_VERB: Final = re.compile(r"%[sdv]")
_REMEDY: Final = "Write the field into the template or the status of the Composition by hand."


@dataclass(frozen=True, slots=True)
class _Expression:
    """What a patch gives."""

    text: str
    optional: bool
    """It is an optional in CEL: without a value if the patch is not to be applied."""
    joined: str = ""
    """The same as a text with expressions in it, if it is one."""

    def written(self, before: Any) -> str:
        """A value in a template, in the place of what the base has there, if anything."""
        if not self.optional:
            return self.joined or f"${{{self.text}}}"
        if before is None:
            return f"${{{self.text}}}"
        return f"${{{self.text}.orValue({literal_text(_unescaped(before))})}}"


@dataclass(slots=True)
class Patches:
    """The patches of one resource."""

    name: str
    """Of the resource in the Composition."""
    sets: Mapping[str, Any]
    """The patch sets by their names, each with the patches and their path."""
    base: dict[str, Any]
    """The template, with literal texts escaped."""
    status: dict[str, Any]
    """Of the composite, shared by all resources."""
    number: Iterator[int]
    """Counts the patches of all resources."""
    notes: list[ImportNote] = field(default_factory=list)
    _written: dict[Steps, tuple[Any, _Expression]] = field(default_factory=dict)
    """What the base had, and what is there now."""
    _around: set[Steps] = field(default_factory=set)
    """The objects and lists around what was written."""

    def apply(self, patches: object, path: Path) -> None:
        """Apply a list of patches in order; what cannot be is told. Raises NotImportable: too many."""
        for each, at in self._all(patches, path):
            if next(self.number) >= _MOST_PATCHES:
                raise NotImportable(f"more than {_MOST_PATCHES:,} patches", at)
            try:
                self._apply(each)
            except BadFieldPath as error:
                self.tell(at, f"dropped: {error}", _REMEDY)
            except NoCounterpart as error:
                self.tell(at, f"dropped: there is no counterpart to {error}", _REMEDY)

    def tell(self, path: Path, message: str, remedy: str = "") -> None:
        """Note what differs."""
        self.notes.append(ImportNote(path, message, remedy))

    def _all(
        self, patches: object, path: Path, *, inside: bool = False
    ) -> Iterator[tuple[Mapping[str, Any], Path]]:
        if patches is not None and not isinstance(patches, list):
            self.tell(path, "dropped: it is no list", _REMEDY)
            return
        for i, each in enumerate(patches or ()):
            at = path.index(i)
            if not isinstance(each, Mapping):
                self.tell(at, "dropped: it is no patch", _REMEDY)
            elif each.get("type") != "PatchSet" or inside:
                yield each, at
            elif (found := self.sets.get(str(each.get("patchSetName")))) is None:
                self.tell(at, f"dropped: there is no patch set {each.get('patchSetName')}", _REMEDY)
            else:
                yield from self._all(*found, inside=True)

    def _apply(self, patch: Mapping[str, Any]) -> None:
        kind = patch.get("type") or _FROM[0]
        for name in patch.keys() - _KNOWN:
            raise NoCounterpart(f"the field {name}")
        if kind not in (*_FROM, *_TO):
            raise NoCounterpart(f"a patch of the type {kind}")
        policy = patch.get("policy") or {}
        if not isinstance(policy, Mapping) or _merges(policy):
            raise NoCounterpart("a policy that merges")
        value = self._value(patch, kind, required=policy.get("fromFieldPath") == "Required")
        same = None if kind in _COMBINES else patch.get("fromFieldPath")
        steps = parse(patch.get("toFieldPath") or same)
        if kind in _FROM:
            for each in expanded(self.base, steps):
                self._write(each, value)
        else:
            self._map(steps, value)

    def _value(self, patch: Mapping[str, Any], kind: str, *, required: bool) -> _Expression:
        of = COMPOSITE if kind in _FROM else self.name
        transforms = patch.get("transforms") or ()
        if kind not in _COMBINES:
            steps = parse(patch.get("fromFieldPath"))
            if of == COMPOSITE and (known := _GONE.get(steps)):
                return _Expression(transformed(known, transforms), optional=False)
            if required or steps in _ALWAYS:
                value = selection(of, steps)
                made = transformed(value, transforms)
                return _Expression(made, optional=False, joined=_joined([value], transforms))
            value = selection(of, steps, optional=True)
            if transforms:
                value = f"{value}.optMap({_VALUE}, {transformed(_VALUE, transforms)})"
            return _Expression(value, optional=True)
        return self._combined(patch, of, transforms, required=required)

    def _combined(self, patch: Mapping[str, Any], of: str, transforms: Any, *, required: bool) -> _Expression:
        combine = patch.get("combine")
        string = combine.get("string") if isinstance(combine, Mapping) else None
        if not isinstance(combine, Mapping) or not isinstance(string, Mapping):
            raise NoCounterpart("a combination that makes no text")
        variables = combine.get("variables")
        if not isinstance(variables, list) or not all(isinstance(each, Mapping) for each in variables):
            raise NoCounterpart("a combination without a list of variables")
        paths = [parse(each.get("fromFieldPath")) for each in variables]
        text = string.get("fmt")
        values = [selection(of, each) for each in paths]
        made = transformed(formatted(values, text), transforms)
        unsure = [each for each in paths if not required and each not in _ALWAYS]
        if not unsure:
            joined = _joined(values, [{"type": "string", "string": {"fmt": text}}, *transforms])
            return _Expression(made, optional=False, joined=joined)
        tests = " && ".join(f"{selection(of, each, optional=True)}.hasValue()" for each in unsure)
        return _Expression(f"({tests} ? optional.of({made}) : optional.none())", optional=True)

    def _write(self, steps: Steps, value: _Expression) -> None:
        around = [steps[:i] for i in range(1, len(steps))]
        if steps in self._around or any(each in self._written for each in around):
            raise BadFieldPath("an earlier patch sets a part of the same field, or what it is a part of")
        base, earlier = self._written.get(steps, (None, None))
        if earlier is None:
            base = put(self.base, steps, None)
        elif value.optional:
            last = earlier.text if earlier.optional else f"optional.of({earlier.text})"
            value = _Expression(f"{value.text}.or({last})", optional=True)
        text = value.written(base)
        if len(text) > LONGEST_EXPRESSION:
            put(self.base, steps, earlier.written(base) if earlier is not None else base)
            raise NoCounterpart(f"an expression of more than {LONGEST_EXPRESSION:,} characters")
        self._written[steps] = base, value
        self._around.update(around)
        put(self.base, steps, text)

    def _map(self, steps: Steps, value: _Expression) -> None:
        if steps[0] != "status" or len(steps) == 1:
            raise NoCounterpart("a patch of a composite's field outside of its status")
        if any(isinstance(each, int) for each in steps):
            raise NoCounterpart("a patch of an item of a list in the status")
        earlier = put(self.status, steps[1:], value.written(None))
        if earlier is not None:
            put(self.status, steps[1:], earlier)
            raise BadFieldPath("an earlier patch sets the same field of the status")


def _unescaped(value: Any) -> Any:
    """A part of a base as it is written in an expression, where `${` needs no escape."""
    if isinstance(value, dict):
        return {name: _unescaped(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_unescaped(each) for each in value]
    return value.replace("$${", "${") if isinstance(value, str) else value


def _merges(policy: Mapping[str, Any]) -> bool:
    return policy.get("toFieldPath", "Replace") != "Replace" or "mergeOptions" in policy


def _joined(values: list[str], transforms: Any) -> str:
    """A text with expressions in it, if the only transform is a format with simple verbs."""
    if not transforms:
        return ""
    first = transforms[0]
    text = (first.get("string") or {}).get("fmt") if first.get("type") == "string" else None
    if len(transforms) != 1 or not isinstance(text, str) or first["string"].get("type", "Format") != "Format":
        return ""
    literals = _ONLY_VERB.split(text)
    if len(literals) != len(values) + 1 or any("%" in each for each in literals):
        return ""
    pieces = [literals[0].replace("${", "$${")]
    for value, literal in zip(values, literals[1:], strict=True):
        pieces += [f"${{{value}}}", literal.replace("${", "$${")]
    return "".join(pieces)
