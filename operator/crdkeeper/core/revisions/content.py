"""The content of a Composition, its revisions, and the one that it needs.

A revision has the content if its spec is the same and its label has the same hash: the label stands for the
labels that were copied, which people may change later, for example to promote a revision. A label that
somebody else changed leads to another revision of the same content, never to the use of other content.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from crdkeeper.api.compositionrevision import HASH_LABEL, CompositionRevision
from crdkeeper.api.meta import API_VERSION, GROUP
from crdkeeper.core.conversion.nesting import dumps

COMPOSITION_LABEL: Final = f"{GROUP}/composition"
"""The Composition of a revision: its name, or a hash of it if it is too long for the value of a label."""
_MOST_IN_LABEL: Final = 63
_MOST_IN_NAME: Final = 253
_NOT_CONTENT: Final = ("compositionRef", "revision", "revisionHistoryLimit")
"""Which revisions are kept says nothing about what is composed."""
_TRACKING: Final = ("app.kubernetes.io/instance", "argocd.argoproj.io/instance")
"""Argo CD prunes what carries its label and is in no repository."""


MOST_LEVELS: Final = 100
"""Of a spec. What is nested deeper is read as text from some level of an answer on, which differs between a
list, a watch and a single object: then equal content could seem to be other content."""


@dataclass(frozen=True, slots=True)
class SeenRevision:
    """A CompositionRevision without its resources."""

    name: str
    uid: str
    resource_version: str
    composition: str
    """By its spec, which cannot change; not by a label."""
    api_version: str
    """Of the composites, like the kind."""
    kind: str
    number: int
    digest: str
    """Of the spec that it copies."""
    labels: Mapping[str, str]
    deleted: bool
    """Whether it is being deleted."""
    made: frozenset[tuple[str, str]] = frozenset()
    """The apiVersions and kinds of its templates."""
    read: frozenset[tuple[str, str]] = frozenset()
    """The apiVersions and kinds of its externalRefs."""
    account: str = ""
    """The name of the ServiceAccount whose rights count; empty if the composer's do."""
    account_namespace: str = ""
    """Where that is, if composites are in no namespace."""
    keeps: Mapping[str, bool] = field(default_factory=dict)
    """By the name of a resource that makes objects: whether these stay (deletion: Orphan)."""


@dataclass(frozen=True, slots=True)
class CompositionContent:
    """What a revision of a Composition copies."""

    composition: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str]
    digest: str
    hash: str


@dataclass(frozen=True, slots=True)
class NewRevision:
    """A revision that has to be created."""

    name: str
    number: int
    content: CompositionContent

    def to_object(self) -> dict[str, Any]:
        """The CompositionRevision to create."""
        of = self.content
        ours = {COMPOSITION_LABEL: label_of(of.composition), HASH_LABEL: of.hash}
        return {
            "apiVersion": API_VERSION,
            "kind": CompositionRevision.model_fields["kind"].default,
            "metadata": {"name": self.name, "labels": {**of.labels, **ours}},
            "spec": {**of.spec, "compositionRef": {"name": of.composition}, "revision": self.number},
        }


def content_of(composition: Mapping[str, Any]) -> CompositionContent:
    """The content of a Composition as the API server returns it."""
    metadata, spec = composition["metadata"], composition["spec"]
    labels = {key: each for key, each in (metadata.get("labels") or {}).items() if key not in _TRACKING}
    digest = _digest(spec)
    hash_ = blake2b(dumps([digest, labels], sort=True), digest_size=16).hexdigest()
    return CompositionContent(metadata["name"], spec, labels, digest, hash_)


def seen_revision(found: Mapping[str, Any]) -> SeenRevision:
    """Reduce a CompositionRevision as the API server returns it. Raises KeyError if it is none."""
    metadata, spec = found["metadata"], found["spec"]
    reference = spec["compositeTypeRef"]
    return SeenRevision(
        metadata["name"],
        metadata["uid"],
        metadata["resourceVersion"],
        spec["compositionRef"]["name"],
        reference["apiVersion"],
        reference["kind"],
        spec["revision"],
        _digest(spec),
        dict(metadata.get("labels") or {}),
        "deletionTimestamp" in metadata,
        _kinds(spec, "template"),
        _kinds(spec, "externalRef"),
        spec.get("serviceAccountName") or "",
        spec.get("serviceAccountNamespace") or "",
        {
            each["name"]: each.get("deletion") == "Orphan"
            for each in spec.get("resources") or ()
            if each.get("externalRef") is None
        },
    )


def _kinds(spec: Mapping[str, Any], field: str) -> frozenset[tuple[str, str]]:
    found = (each.get(field) for each in spec.get("resources") or ())
    return frozenset(
        (str(each.get("apiVersion")), str(each.get("kind"))) for each in found if isinstance(each, dict)
    )


def is_too_deep(spec: Mapping[str, Any]) -> bool:
    """Whether a spec has more levels than MOST_LEVELS."""
    level: list[Any] = [spec]
    for _ in range(MOST_LEVELS):
        below: list[Any] = []
        for each in level:
            if isinstance(each, Mapping):
                below += each.values()
            elif isinstance(each, list):
                below += each
        level = [each for each in below if isinstance(each, Mapping | list)]
        if not level:
            return False
    return True


def newest(revisions: Collection[SeenRevision]) -> SeenRevision | None:
    """The newest of the revisions of a Composition that are not being deleted."""
    # Two of one number can only have been made by hand.
    usable = (each for each in revisions if not each.deleted)
    return max(usable, key=lambda each: (each.number, each.name), default=None)


def wanted(
    content: CompositionContent, revisions: Collection[SeenRevision], last: int
) -> SeenRevision | NewRevision:
    """The revision that a Composition needs: the newest if it has this content, or else a new one.

    `revisions` are all of the cluster. `last` is the highest number that the Composition is known to have
    had, which is not given to other content when somebody deletes that revision.
    """
    own = [each for each in revisions if each.composition == content.composition]
    current = newest(own)
    if current is not None and _has(current, content):
        return current
    taken = {each.name for each in revisions}
    number = max((each.number for each in own), default=0)
    number = max(number, last) + 1
    while name_of(content.composition, number) in taken:
        # Made by hand for another Composition.
        number += 1
    return NewRevision(name_of(content.composition, number), number, content)


def _has(revision: SeenRevision, content: CompositionContent) -> bool:
    return revision.digest == content.digest and revision.labels.get(HASH_LABEL) == content.hash


def changed_part(new: NewRevision, stored: Mapping[str, Any]) -> str:
    """What the API server stores in another way than it was to be created; empty if it has the content."""
    kept, given = _content(stored["spec"]), _content(new.content.spec)
    if kept == given:
        same = (stored["metadata"].get("labels") or {}).get(HASH_LABEL) == new.content.hash
        return "" if same else f"metadata.labels[{HASH_LABEL}]"
    return f"spec{_first_difference(given, kept)}"


def _first_difference(one: Any, other: Any) -> str:
    """The path at which two values differ that are not the same."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted(one.keys() | other.keys()):
            if key not in one or key not in other:
                return f".{key}"
            if one[key] != other[key]:
                return f".{key}{_first_difference(one[key], other[key])}"
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (each, its) in enumerate(zip(one, other, strict=True)):
            if each != its:
                return f"[{index}]{_first_difference(each, its)}"
    return ""


def name_of(composition: str, number: int) -> str:
    """The name of a revision. Those of two Compositions differ: what follows the last `-` is the number."""
    room = _MOST_IN_NAME - len(f"-{number}")
    if len(composition) > room:
        short = _short(composition)
        composition = f"{composition[: room - len(short) - 1].rstrip('.-')}-{short}"
    return f"{composition}-{number}"


def label_of(composition: str) -> str:
    """The value of the label for a Composition."""
    return composition if len(composition) <= _MOST_IN_LABEL else _short(composition)


def _short(name: str) -> str:
    return blake2b(name.encode(), digest_size=16).hexdigest()


def _digest(spec: Mapping[str, Any]) -> str:
    return blake2b(dumps(_content(spec), sort=True), digest_size=20).hexdigest()


def _content(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in spec.items() if key not in _NOT_CONTENT}
