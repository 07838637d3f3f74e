"""Rewrites kro's ResourceGraphDefinition as a CompositeResourceDefinition and a Composition.

Facts about kro come from its API (api/v1alpha1) and its documentation (https://kro.run). What has no
counterpart is reported.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.api.meta import API_VERSION
from crdkeeper.apiserver.cel.syntax.lexer import tokenize
from crdkeeper.apiserver.objects.objectnode import copied
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.core.importing.note import Imported, ImportNote, NotImportable
from crdkeeper.core.importing.parts import DROPPED, MOST_DEPTH, is_at, mapping, refusals
from crdkeeper.core.importing.resulttypes import simple_type
from crdkeeper.core.importing.simpleschema import read_simple_schema
from crdkeeper.core.templates.texts import BadText, Embedded, parts_of

KIND: Final = "ResourceGraphDefinition"
_GROUP: Final = "kro.run"
_OF_SCHEMA: Final = frozenset(
    (
        *("additionalPrinterColumns", "apiVersion", "categories", "group", "kind", "metadata", "scope"),
        *("shortNames", "spec", "status", "types"),
    )
)
_OF_RESOURCE: Final = frozenset(("externalRef", "forEach", "id", "includeWhen", "readyWhen", "template"))
_OPEN: Final = {"x-kubernetes-preserve-unknown-fields": True}
_PLURALS: Final = tuple(
    (re.compile(rf"(?:{ending})\Z"), plural)
    for ending, plural in (
        (r"(ind|vert)ex", r"\1ices"),
        (r"trix", "trices"),
        (r"(?<=[^aeiou])y", "ies"),
        (r"(ch|sh|ss|tz|us|x|zz)", r"\1es"),
        (r"([ei])z", r"\1zzes"),
        (r"([ilot]|an)o", r"\1os"),
        (r"o", "oes"),
        (r"(?<=[lr])f|fe", "ves"),
        (r"s", "s"),
        (r"", "s"),
    )
)
"""Endings of words in lower case and of their plurals, as kro's library (gobuffalo/flect) has them."""
_WORDS: Final = (
    *("aircraft", "bison", "child", "criterion", "deer", "die", "equipment", "feet", "fish", "foot"),
    *("ganglion", "goose", "hedron", "information", "lexicon", "louse", "man", "men", "mice", "money"),
    *("moose", "mouse", "noumenon", "people", "person", "phenomenon", "police", "rice", "salmon", "sheep"),
    *("shrimp", "swine", "taxon", "teeth", "tooth", "trout", "you"),
)
_UNSURE: Final = re.compile(rf"(?:[afioz]|ae|[ae]u|[ei]x|fe|[^s]s|um|{'|'.join(_WORDS)})\Z")
"""The ends of words with other plurals in that library, or with one that depends on the word."""
_TAKEN: Final = ("conditions", "state")
"""Fields of the status that kro itself writes."""
_CONDITIONS: Final = ("InstanceManaged", "GraphResolved", "ResourcesReady")
"""Types of conditions that only kro sets."""


def imported(document: Mapping[str, Any]) -> Imported:
    """The definition and the Composition. Raises NotImportable, naming the field."""
    version = str(document.get("apiVersion"))
    if document.get("kind") != KIND or version.partition("/")[0] != _GROUP:
        raise NotImportable(f"a {document.get('kind')} of {version} is no {KIND} of {_GROUP}")
    return _Import(document).done()


def plural_of(kind: str) -> tuple[str, bool]:
    """The plural of a kind in lower case, as kro names resources, and whether it is sure that kro does."""
    name = kind.lower()
    ending, plural = next(each for each in _PLURALS if each[0].search(name))
    return ending.sub(plural, name, count=1), _UNSURE.search(name) is None


class _Import:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._metadata = mapping(document.get("metadata") or {}, root("metadata"))
        spec = mapping(document.get("spec"), root("spec"))
        self._path = root("spec").child("schema")
        self._schema = mapping(spec.get("schema"), self._path)
        self._resources = spec.get("resources") or []
        self._notes: list[ImportNote] = []
        self._untyped: list[str] = []
        for name in spec.keys() - {"schema", "resources"}:
            self._tell(root("spec").child(name), *DROPPED)

    def _tell(self, path: Path, message: str, remedy: str = "") -> None:
        self._notes.append(ImportNote(path, message, remedy))

    def done(self) -> Imported:
        kind, version = (self._text(each) for each in ("kind", "apiVersion"))
        group = self._text("group", _GROUP)
        name = str(self._metadata.get("name") or plural_of(kind)[0])
        spec = {
            "compositeTypeRef": {"apiVersion": f"{group}/{version}", "kind": kind},
            "resources": self._made_resources(),
        }
        status = self._status()
        if status:
            spec["status"] = status
        composition = {
            "apiVersion": API_VERSION,
            "kind": "Composition",
            "metadata": {"name": name},
            "spec": spec,
        }
        definition = self._definition(kind, version, group, status, name)
        self._notes += refusals(composition, _in_graph)
        return Imported(definition, tuple(self._notes), composition)

    def _text(self, name: str, default: str | None = None) -> str:
        found = self._schema.get(name) or default
        if not isinstance(found, str):
            raise NotImportable("must be a text", self._path.child(name))
        return found

    def _definition(
        self, kind: str, version: str, group: str, status: Mapping[str, Any], composition: str
    ) -> dict[str, Any]:
        for name in self._schema.keys() - _OF_SCHEMA:
            self._tell(self._path.child(name), *DROPPED)
        types_path, spec_path = self._path.child("types"), self._path.child("spec")
        types = mapping(self._schema.get("types") or {}, types_path)
        fields = mapping(self._schema.get("spec") or {}, spec_path)
        read = read_simple_schema(fields, types, name="spec", path=spec_path, types_path=types_path)
        properties = {"spec": read.schema}
        if status:
            properties["status"] = self._status_schema(status, root("status"))
            self._tell_of_types()
        plural, sure = plural_of(kind)
        if not sure:
            self._tell(
                self._path.child("kind"),
                f"the plural is {plural}, and kro may have another one",
                "Compare it with kubectl get crd, and set spec.names.plural and metadata.name.",
            )
        names = {"kind": kind, "plural": plural}
        names |= {each: self._schema[each] for each in ("shortNames", "categories") if self._schema.get(each)}
        made_version: dict[str, Any] = {
            "name": version,
            "served": True,
            "referenceable": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        }
        columns = [*self._columns(), *read.columns]
        if columns:
            made_version["additionalPrinterColumns"] = copied(columns)
        spec = {
            "group": group,
            "scope": self._schema.get("scope") or "Namespaced",
            "names": names,
            "defaultCompositionRef": {"name": composition},
            "versions": [made_version],
        }
        if self._schema.get("metadata"):
            spec["metadata"] = copied(self._schema["metadata"])
        return {
            "apiVersion": API_VERSION,
            "kind": "CompositeResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": spec,
        }

    def _columns(self) -> list[Any]:
        """The columns that show something here, too."""
        given, at = (
            self._schema.get("additionalPrinterColumns") or [],
            self._path.child("additionalPrinterColumns"),
        )
        if not isinstance(given, list):
            raise NotImportable("must be a list", at)
        kept = []
        for i, each in enumerate(given):
            shown = str(each.get("jsonPath")) if isinstance(each, Mapping) else ""
            of_kro = is_at(shown, ".status.conditions") and any(name in shown for name in _CONDITIONS)
            if of_kro or is_at(shown, ".status.state"):
                self._tell(at.index(i), f"dropped: only kro writes {shown}; see the columns Ready and Synced")
            else:
                kept.append(each)
        return kept

    def _status(self) -> dict[str, Any]:
        at = self._path.child("status")
        given = mapping(self._schema.get("status") or {}, at)
        for name in _TAKEN:
            if name in given:
                self._tell(at.child(name), "dropped: kro writes this field itself")
        kept = {name: each for name, each in given.items() if name not in _TAKEN}
        found: dict[str, Any] = self._rewritten(kept, at)
        return found

    def _status_schema(self, value: Any, path: Path) -> dict[str, Any]:
        """The schema of a part of the status, as far as its expressions show it."""
        if isinstance(value, Mapping):
            fields = {name: self._status_schema(each, path.child(name)) for name, each in value.items()}
            return {"type": "object", "properties": fields}
        if isinstance(value, list):
            kinds = [self._status_schema(each, path.index(i)) for i, each in enumerate(value)]
            return {"type": "array", "items": kinds[0] if kinds else dict(_OPEN)}
        kind = simple_type(value)
        if kind is None:
            self._untyped.append(str(path).removeprefix("status."))
            return dict(_OPEN)
        return {"type": kind}

    def _tell_of_types(self) -> None:
        if self._untyped:
            shown = ", ".join(self._untyped[:_SHOWN]) + (", …" if len(self._untyped) > _SHOWN else "")
            self._tell(
                self._path.child("status"),
                f"kro infers the types of {shown} from the schemas in the cluster; they are left open",
                "Set the types of these fields in the schema of the definition's status.",
            )

    def _made_resources(self) -> list[dict[str, Any]]:
        at = root("spec").child("resources")
        if not isinstance(self._resources, list):
            raise NotImportable("must be a list", at)
        return [
            self._resource(mapping(each, at.index(i)), at.index(i)) for i, each in enumerate(self._resources)
        ]

    def _resource(self, given: Mapping[str, Any], path: Path) -> dict[str, Any]:
        for name in given.keys() - _OF_RESOURCE:
            self._tell(path.child(name), *DROPPED)
        made: dict[str, Any] = {"name": given.get("id")}
        for name in ("includeWhen", "forEach", "readyWhen", "template"):
            if given.get(name):
                made[name] = self._rewritten(given[name], path.child(name))
        if given.get("externalRef"):
            made["externalRef"] = self._external(
                mapping(given["externalRef"], path.child("externalRef")), path.child("externalRef")
            )
        return made

    def _external(self, given: Mapping[str, Any], path: Path) -> dict[str, Any]:
        metadata = mapping(given.get("metadata") or {}, path.child("metadata"))
        if metadata.get("selector"):
            self._tell(
                path.child("metadata").child("selector"),
                "dropped: an externalRef of crdkeeper names one object, or with forEach one for each item",
                "Name the objects.",
            )
        made = {each: given.get(each) for each in ("apiVersion", "kind")}
        for name in ("name", "namespace"):
            if metadata.get(name):
                made[name] = self._rewritten(metadata[name], path.child("metadata").child(name))
        if "${" in str(made.get("namespace", "")):
            self._tell(
                path.child("metadata").child("namespace"),
                "an expression chooses the namespace, which needs an account that may read there",
                "Set spec.serviceAccountName of the Composition, or write the namespace out.",
            )
        return made

    def _rewritten(self, value: Any, path: Path, depth: int = 1) -> Any:
        """A part of a template, whose expressions call the composite by crdkeeper's name."""
        if depth > MOST_DEPTH:
            raise NotImportable(f"more than {MOST_DEPTH} levels", path)
        if isinstance(value, Mapping):
            return {
                str(name): self._rewritten(each, path.child(str(name)), depth + 1)
                for name, each in value.items()
            }
        if isinstance(value, list):
            return [self._rewritten(each, path.index(i), depth + 1) for i, each in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        try:
            parts = parts_of(value, escapes=False)
        except BadText as error:
            self._tell(path, str(error), error.hint)
            return value
        pieces: list[str] = []
        for each in parts:
            if not isinstance(each, Embedded):
                pieces.append(each)
                continue
            if pieces and pieces[-1].endswith("$"):
                # With the next one, it would be the escape that kro does not have.
                pieces[-1] = f"{pieces[-1][:-1]}${{'$'}}"
            pieces.append(f"${{{_renamed(each.text)}}}")
        return "".join(pieces)


_SHOWN: Final = 10
_NAME_OF_RESOURCE: Final = 3
"""The steps from spec to the name of a resource."""


def _renamed(expression: str) -> str:
    """The expression with `composite` for the variable `schema`, and the rest as it is written."""
    tokens = tokenize(expression)
    pieces, end = [], 0
    for i, (kind, text, at) in enumerate(zip(*tokens, strict=True)):
        if kind != "id" or text != "schema":
            continue
        before = tokens.kinds[max(0, i - 1)] if i else ""
        selected = before == "." or (before == "?" and i > 1 and tokens.kinds[i - 2] == ".")
        if selected or tokens.kinds[i + 1] == "(":
            continue
        pieces += [expression[end:at], "composite"]
        end = at + len(text)
    return "".join((*pieces, expression[end:]))


def _in_graph(path: Path) -> Path:
    """The place in the old file of a place in the Composition."""
    first, *steps = path.steps
    if steps[:1] == ["status"]:
        steps = ["schema", *steps]
    elif steps[-1:] == ["name"] and len(steps) == _NAME_OF_RESOURCE:
        steps[-1] = "id"
    found = root(str(first))
    for step in steps:
        found = found.index(step) if isinstance(step, int) else found.child(step)
    return found
