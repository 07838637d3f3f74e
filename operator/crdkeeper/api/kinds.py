"""All kinds of `crdkeeper.dev`: what `crds/` holds, and what must be installed before the operator works."""

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.meta import Kind
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionconversion import VersionConversion

KINDS: tuple[type[Kind], ...] = (StorageMigration, DefinitionPolicy, DefinitionReport, VersionConversion)
