"""All kinds of `crdkeeper.dev`: the content of `crds/`, without which the operator cannot work."""

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.composition import Composition
from crdkeeper.api.compositionrevision import CompositionRevision
from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.meta import Kind
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionconversion import VersionConversion

KINDS: tuple[type[Kind], ...] = (StorageMigration, DefinitionPolicy, DefinitionReport, VersionConversion)
COMPOSITE_KINDS: tuple[type[Kind], ...] = (CompositeResourceDefinition, Composition, CompositionRevision)
"""The kinds of the composer, which is installed apart: the content of `crds/composer/`."""
