"""Which events of definitions and CRDs concern composites: most only say that a status was written."""

from collections.abc import Hashable, Iterable

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.core.composites.inventory import KindKey
from crdkeeper.core.diagnosis.facts import SeenDefinition
from crdkeeper.core.revisions.content import SeenRevision
from crdkeeper.core.templates.kinds import group_of

GroupKind = tuple[str, str]
"""Group and kind."""
_NO_KINDS: frozenset[GroupKind] = frozenset()


class Relevance:
    """What mattered of each definition and each CRD when it was seen last."""

    def __init__(self) -> None:
        self._definitions: dict[str, Hashable] = {}
        self._crds: dict[str, tuple[GroupKind, Hashable]] = {}

    def of_definition(self, name: str, seen: CompositeResourceDefinition | None) -> bool:
        """Whether something has changed that composites depend on."""
        before = self._definitions.pop(name, None)
        if seen is None:
            return before is not None
        metadata = seen.metadata
        now = metadata.uid, metadata.generation, metadata.deletion_timestamp is not None
        self._definitions[name] = now
        return before != now

    def of_crd(self, name: str, seen: SeenDefinition | None) -> frozenset[GroupKind]:
        """The kinds of which something has changed that composites depend on."""
        before, now = self._crds.pop(name, None), None
        if seen is not None:
            crd = seen.definition
            matters = crd.uid, crd.generation, crd.established, crd.terminating, seen.definition_uid
            now = self._crds[name] = (crd.group, crd.kind), matters
        if before == now:
            return _NO_KINDS
        return frozenset(each[0] for each in (before, now) if each is not None)


def groups_and_kinds(kinds: Iterable[KindKey]) -> frozenset[GroupKind]:
    """The same kinds without their versions."""
    return frozenset((group_of(api_version), kind) for api_version, kind in kinds)


def kinds_of_revision(revision: SeenRevision) -> frozenset[GroupKind]:
    """The kinds that it is compiled by, whether it could be or not."""
    own = revision.api_version, revision.kind
    return groups_and_kinds((own, *revision.made, *revision.read))
