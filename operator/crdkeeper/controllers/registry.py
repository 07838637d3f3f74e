"""All controllers of the operator: one entry for each kind, from which its watch and its task follow."""

from crdkeeper.api.builtinpolicy import BuiltinPolicy
from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.controllers.builtinpolicy.controller import begin_builtins
from crdkeeper.controllers.definitionpolicy.controller import begin_policies
from crdkeeper.controllers.definitionreport.controller import begin_reports
from crdkeeper.controllers.entry import CONVERSIONS, MIGRATIONS, Controller, Watch
from crdkeeper.controllers.storagemigration.controller import begin_migrations
from crdkeeper.controllers.versionconversion.beginning import run_conversions
from crdkeeper.controllers.versionretirement.controller import begin_retirements
from crdkeeper.core.policy.reading import read_policy

POLICIES = Watch(read_policy, lambda state, name, seen: state.saw(DefinitionPolicy, name, seen))
"""Also those that cannot be read, since they govern CRDs."""

CONTROLLERS: tuple[Controller, ...] = (
    Controller(StorageMigration, "migrations", begin_migrations, MIGRATIONS),
    Controller(DefinitionPolicy, "policies", begin_policies, POLICIES),
    Controller(DefinitionReport, "reports", begin_reports),
    Controller(VersionConversion, "conversions", run_conversions, CONVERSIONS),
    Controller(BuiltinPolicy, "builtins", begin_builtins, Watch.whole(BuiltinPolicy)),
    Controller(VersionRetirement, "retirements", begin_retirements, Watch.whole(VersionRetirement)),
)
