"""The kinds of `crdkeeper.dev` that the composer needs: the content of `crds/composer/`."""

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.composition import Composition
from crdkeeper.api.compositionrevision import CompositionRevision
from crdkeeper.api.meta import Kind

COMPOSITE_KINDS: tuple[type[Kind], ...] = (CompositeResourceDefinition, Composition, CompositionRevision)
