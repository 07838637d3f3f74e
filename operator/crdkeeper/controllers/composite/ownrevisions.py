"""Which CompositionRevisions the composites of a definition may run by."""

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.controllers.collection import SeenCollection
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.composites.choice import is_for, revisions_of
from crdkeeper.core.revisions.content import SeenRevision


class OwnRevisions:
    """Reads what was seen of definitions, their CRDs and all revisions."""

    def __init__(self, state: ClusterState, revisions: SeenCollection[SeenRevision]) -> None:
        self._state = state
        self._revisions = revisions

    def known(self, name: str) -> list[SeenRevision]:
        """Those for composites of a definition, also at versions that are not served any more."""
        definition = self._state.of(CompositeResourceDefinition).get(name)
        if definition is None:
            return []
        return [each for each in self._revisions.all().values() if is_for(definition.spec, each)]

    def usable(self, name: str) -> list[SeenRevision]:
        """Those at versions that are served."""
        definition, seen = self._state.of(CompositeResourceDefinition).get(name), self._state.seen.get(name)
        if definition is None or seen is None:
            return []
        served = seen.definition.served_versions
        return revisions_of(definition.spec, self._revisions.all().values(), served)
