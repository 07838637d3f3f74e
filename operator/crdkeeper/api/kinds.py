"""The operator's kinds of `crdkeeper.dev`: the content of `crds/`, without which it cannot work."""

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.meta import Kind
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionconversion import VersionConversion

KINDS: tuple[type[Kind], ...] = (StorageMigration, DefinitionPolicy, DefinitionReport, VersionConversion)
