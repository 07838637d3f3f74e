"""Two decoded CRDs, and comparisons of them as a whole: identity, names, conversion."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Final

from crdkeeper.apiserver.definitions.rules.internalform import internal
from crdkeeper.apiserver.definitions.versionorder import preferred
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.props import PRESERVE, VALIDATIONS, Schema, equal
from crdkeeper.core.compatibility import definitionkinds as kinds
from crdkeeper.core.compatibility.change import Change, ChangeKind, Place
from crdkeeper.core.compatibility.findings import Changes
from crdkeeper.core.compatibility.node import from_to

_LEAST_RULE: Final = 50
"""Characters that take as long to compile as the rest of a rule does."""


@dataclass(frozen=True, slots=True)
class DecodedVersion:
    """One entry of spec.versions."""

    index: int
    value: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.value.get("name", ""))

    @property
    def served(self) -> bool:
        return bool(self.value.get("served"))

    @property
    def storage(self) -> bool:
        """Whether objects are stored in it."""
        return bool(self.value.get("storage"))

    @property
    def schema(self) -> Schema | None:
        """The schema. Its root is an object, even if the type is missing, as v1beta1 allowed."""
        found: Schema | None = (self.value.get("schema") or {}).get("openAPIV3Schema")
        return {**found, "type": "object"} if found is not None and not found.get("type") else found

    @property
    def path(self) -> Path:
        """Where it is in the CRD."""
        return root("spec").child("versions").index(self.index)

    @property
    def schema_path(self) -> Path:
        """Where its schema is in the CRD."""
        return self.path.child("schema").child("openAPIV3Schema")


@dataclass
class DecodedDefinition:
    """A decoded CRD."""

    decoded: Mapping[str, Any]
    stored: frozenset[str]
    """status.storedVersions; empty if the CRD is from a file."""
    converted: bool = False
    """Whether a webhook converts even if the CRD does not say so."""
    versions: dict[str, DecodedVersion] = field(init=False)

    def __post_init__(self) -> None:
        self.versions = {}
        for i, each in enumerate(self.spec.get("versions", ())):
            version = DecodedVersion(i, each)
            self.versions.setdefault(version.name, version)

    @property
    def spec(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.decoded.get("spec", {})
        return found

    @cached_property
    def names(self) -> Mapping[str, Any]:
        """spec.names with its defaults."""
        return internal(self.decoded).names

    @property
    def served(self) -> list[DecodedVersion]:
        """The served versions."""
        return [each for each in self.versions.values() if each.served]

    @property
    def serves_none(self) -> bool:
        """Whether it has versions, but serves none of them."""
        return bool(self.versions) and not self.served

    @property
    def storage(self) -> DecodedVersion | None:
        """The version in which objects are stored."""
        return next((each for each in self.versions.values() if each.storage), None)

    @property
    def preferred(self) -> DecodedVersion | None:
        """The version for clients that do not name one."""
        return preferred(self.served, lambda each: each.name)

    @cached_property
    def _names(self) -> Mapping[str, frozenset[str]]:
        """All names of fields in the schema of each version, at any depth."""
        schemas = {name: each.schema for name, each in self.versions.items()}
        return {name: frozenset(_names(each)) for name, each in schemas.items() if each is not None}

    @cached_property
    def _known(self) -> Counter[str]:
        """How many versions have a name."""
        return Counter(chain.from_iterable(self._names.values()))

    def fields_beside(self, version: DecodedVersion) -> "FieldsBeside":
        """All field names of the other versions, at any place."""
        return FieldsBeside(self._known, self._names.get(version.name, frozenset()))

    def rule_characters(self) -> int:
        """The total length of all rules of x-kubernetes-validations, where even a short one takes time."""
        schemas = (each.schema for each in self.versions.values() if each.schema is not None)
        nodes = (node for schema in schemas for node in _nodes(schema))
        return sum(
            len(rule.get("rule", "")) + _LEAST_RULE for node in nodes for rule in node.get(VALIDATIONS) or ()
        )

    @property
    def converts(self) -> bool:
        """Whether a webhook converts."""
        return self.converted or (self.spec.get("conversion") or {}).get("strategy") == "Webhook"


@dataclass(frozen=True, slots=True)
class FieldsBeside:
    """The names in versions other than one. Does not create a set for each: a CRD may have hundreds."""

    known: Mapping[str, int]
    """How many versions have a name."""
    own: frozenset[str]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.known.get(name, 0) > (name in self.own)


def _names(schema: Schema) -> Iterator[str]:
    for node in _nodes(schema):
        yield from node.get("properties") or ()


def _nodes(schema: Schema) -> Iterator[Schema]:
    """The schema and everything below it: fields, items and values of maps."""
    pending = [schema]
    while pending:
        node = pending.pop()
        yield node
        inner = [
            *(node.get("properties") or {}).values(),
            node.get("items"),
            node.get("additionalProperties"),
        ]
        pending += (each for each in inner if isinstance(each, dict))


def may_have(schema: Schema, name: str) -> bool:
    """Whether objects of a schema can have this top-level field."""
    open_ = schema.get(PRESERVE) or schema.get("additionalProperties")
    return bool(open_) or name in (schema.get("properties") or {})


@dataclass(frozen=True, slots=True)
class DefinitionPair:
    """The old and the new state of one CRD, and where its changes are collected."""

    old: DecodedDefinition
    new: DecodedDefinition
    findings: Changes

    def say(
        self,
        kind: ChangeKind,
        message: str,
        field: str,
        path: Path,
        old_path: Path | None = None,
        version: str = "",
    ) -> None:
        """Add a change outside of schemas."""
        place = Place(version, field, path, old_path or path)
        self.findings.add(Change(kind, place, message, kind.effects))


def compare_identity(pair: DefinitionPair) -> None:
    """Group, plural name, scope and kind."""
    old, new = pair.old, pair.new
    spec = root("spec")
    if old.spec.get("group") != new.spec.get("group"):
        message = from_to("group", old.spec, new.spec)
        pair.say(kinds.IDENTITY, message, "spec.group", spec.child("group"))
    if old.spec.get("scope") != new.spec.get("scope"):
        pair.say(kinds.SCOPE, from_to("scope", old.spec, new.spec), "spec.scope", spec.child("scope"))
    for name, kind in (("plural", kinds.IDENTITY), ("kind", kinds.KIND), ("listKind", kinds.LIST_KIND)):
        if old.names.get(name) != new.names.get(name):
            message = from_to(name, old.names, new.names)
            pair.say(kind, message, f"spec.names.{name}", spec.child("names").child(name))
    if old.spec.get("preserveUnknownFields") and not new.spec.get("preserveUnknownFields"):
        at = spec.child("preserveUnknownFields")
        message = "fields that the schema does not name: kept → pruned"
        pair.say(kinds.KEEPS_UNKNOWN_FIELDS, message, "spec.preserveUnknownFields", at)


def compare_names(pair: DefinitionPair) -> None:
    """The names by which people refer to the resource."""
    old, new = pair.old.names, pair.new.names
    names = root("spec").child("names")
    if old.get("singular") != new.get("singular"):
        at = names.child("singular")
        pair.say(kinds.NAME_REMOVED, from_to("singular", old, new), "spec.names.singular", at)
    for key, what in (("shortNames", "short name"), ("categories", "category")):
        before, after = old.get(key) or (), new.get(key) or ()
        for each in sorted(set(before) - set(after)):
            pair.say(kinds.NAME_REMOVED, f'{what} "{each}" removed', f"spec.names.{key}", names.child(key))
        for each in sorted(set(after) - set(before)):
            pair.say(kinds.NAME_ADDED, f'{what} "{each}" added', f"spec.names.{key}", names.child(key))


def compare_conversion(pair: DefinitionPair) -> None:
    """How objects are converted between versions, if there are several."""
    if len(pair.new.versions) < 2:
        return
    old, new = (each.spec.get("conversion") or {} for each in (pair.old, pair.new))
    at = root("spec").child("conversion")
    if pair.new.converts and not pair.old.converts:
        pair.say(
            kinds.CONVERSION_WEBHOOK,
            "strategy: None → Webhook",
            "spec.conversion.strategy",
            at.child("strategy"),
        )
    elif pair.old.converts and not pair.new.converts:
        kind = kinds.CONVERSION_NEEDLESS if _all_equal(pair) else kinds.CONVERSION_DROPPED
        pair.say(kind, "strategy: Webhook → None", "spec.conversion.strategy", at.child("strategy"))
    elif pair.old.converts:
        _compare_webhooks(old.get("webhook") or {}, new.get("webhook") or {}, at.child("webhook"), pair)


def _all_equal(pair: DefinitionPair) -> bool:
    schemas = [each.schema for each in pair.new.versions.values()]
    pair.findings.spend(len(schemas))
    first = schemas[0] if schemas else None
    return first is not None and all(each is not None and equal(first, each) for each in schemas)


def _compare_webhooks(
    old: Mapping[str, Any], new: Mapping[str, Any], path: Path, pair: DefinitionPair
) -> None:
    before, after = _target(old), _target(new)
    if before != after:
        message = f"the webhook is elsewhere: {before} → {after}"
        at = path.child("clientConfig")
        pair.say(kinds.CONVERSION_WEBHOOK, message, "spec.conversion.webhook.clientConfig", at)
    reviews, now = (each.get("conversionReviewVersions") or () for each in (old, new))
    gone = sorted(set(reviews) - set(now))
    if gone:
        message = f"{', '.join(gone)} removed"
        at = path.child("conversionReviewVersions")
        field = "spec.conversion.webhook.conversionReviewVersions"
        pair.say(kinds.REVIEW_VERSION_REMOVED, message, field, at)


def _target(webhook: Mapping[str, Any]) -> str:
    """The address of the webhook, without its caBundle: that is rotated, often by another controller."""
    config = webhook.get("clientConfig") or {}
    if config.get("url"):
        return str(config["url"])
    service = config.get("service") or {}
    path = str(service.get("path") or "").lstrip("/")
    return f"{service.get('namespace')}/{service.get('name')}:{service.get('port', 443)}/{path}"
