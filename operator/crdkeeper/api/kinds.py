"""The operator's kinds of `crdkeeper.dev`: the content of `crds/`, without which it cannot work."""

from crdkeeper.api.builtinpolicy import BuiltinPolicy
from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.meta import Kind
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.api.versionretirement import VersionRetirement

KINDS: tuple[type[Kind], ...] = (
    StorageMigration,
    DefinitionPolicy,
    DefinitionReport,
    VersionConversion,
    BuiltinPolicy,
    VersionRetirement,
)
