"""The kinds for scripts: specs and statuses as typed models, and how to create and find objects."""

from typing import Literal, Self, TypedDict, Unpack

from pykube.http import HTTPClient

from crdkeeper.api import (
    builtinpolicy,
    definitionpolicy,
    definitionreport,
    storagemigration,
    versionconversion,
    versionretirement,
)
from crdkeeper.api.builtinpolicy import BuiltinPolicySpec, BuiltinPolicyStatus
from crdkeeper.api.definitionpolicy import DefinitionPolicySpec, DefinitionPolicyStatus
from crdkeeper.api.definitionreport import DefinitionReportStatus
from crdkeeper.api.meta import Condition
from crdkeeper.api.storagemigration import StorageMigrationSpec, StorageMigrationStatus
from crdkeeper.api.versionconversion import VersionConversionSpec, VersionConversionStatus
from crdkeeper.api.versionretirement import VersionRetirementSpec, VersionRetirementStatus
from crdkeeper.core.resourcenames import parse_resource
from crdkeeper.scripting.objects import WAIT_SECONDS, CrdkeeperObject


class Limits(TypedDict, total=False):
    """The fields of `crdkeeper.api.storagemigration.MigrationLimits`."""

    min_concurrency: int
    max_concurrency: int
    max_objects_per_second: int
    max_bytes_per_second: int


class Retry(TypedDict, total=False):
    """The fields of `crdkeeper.api.storagemigration.MigrationRetry`."""

    limit: int
    backoff_seconds: int
    max_backoff_seconds: int


class MigrationOptions(TypedDict, total=False):
    """The fields of `crdkeeper.api.storagemigration.StorageMigrationSpec` that a script may want to set."""

    mode: Literal["Execute", "Plan"]
    suspend: bool
    limits: Limits
    retry: Retry
    trim: bool
    managed_fields: Literal["Keep", "Retarget"]
    verify: Literal["Remaining", "Full"]
    settle_seconds: int
    api_server_leases: Literal["Require", "Ignore"]
    ttl_seconds_after_finished: int


class StorageMigration(CrdkeeperObject):
    """A migration of all objects of one resource."""

    endpoint = storagemigration.StorageMigration.plural
    kind = "StorageMigration"

    @classmethod
    def for_(
        cls,
        resource: str,
        *,
        name: str | None = None,
        api: HTTPClient | None = None,
        **options: Unpack[MigrationOptions],
    ) -> Self:
        """A migration of `plural.group`, or of a `plural` of the core group; `create()` starts it.

        It has the resource's name unless `name` is given. Raises ValueError for what the API server would
        reject, and for unknown options.
        """
        target = parse_resource(resource)
        spec = StorageMigrationSpec.model_validate(
            {"resource": target.model_dump(), **options}, extra="forbid", by_name=True, by_alias=False
        )
        migration = cls.named(name or str(target), api=api)
        migration.obj["spec"] = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return migration

    @property
    def spec(self) -> StorageMigrationSpec:
        """The spec as last read, with defaults."""
        return StorageMigrationSpec.model_validate(self.obj["spec"])

    @property
    def status(self) -> StorageMigrationStatus:
        """The status as last read."""
        return StorageMigrationStatus.model_validate(self.obj.get("status", {}))

    def _ended(self) -> bool:
        status = self.status
        return (
            status.completion_time is not None
            and status.observed_generation >= self.obj["metadata"]["generation"]
        )


class DefinitionPolicy(CrdkeeperObject):
    """A policy that selects the CRDs to manage."""

    endpoint = definitionpolicy.DefinitionPolicy.plural
    kind = "DefinitionPolicy"

    @property
    def spec(self) -> DefinitionPolicySpec:
        """The spec as last read, with defaults."""
        return DefinitionPolicySpec.model_validate(self.obj.get("spec", {}))

    @property
    def status(self) -> DefinitionPolicyStatus:
        """The status as last read."""
        return DefinitionPolicyStatus.model_validate(self.obj.get("status", {}))


class BuiltinPolicy(CrdkeeperObject):
    """Which built-in resources are migrated when they are stored differently."""

    endpoint = builtinpolicy.BuiltinPolicy.plural
    kind = "BuiltinPolicy"

    @property
    def spec(self) -> BuiltinPolicySpec:
        """The spec as last read, with defaults."""
        return BuiltinPolicySpec.model_validate(self.obj["spec"])

    @property
    def status(self) -> BuiltinPolicyStatus:
        """The status as last read."""
        return BuiltinPolicyStatus.model_validate(self.obj.get("status", {}))


class VersionConversion(CrdkeeperObject):
    """The conversion rules between the versions of a CRD."""

    endpoint = versionconversion.VersionConversion.plural
    kind = "VersionConversion"

    @property
    def spec(self) -> VersionConversionSpec:
        """The spec as last read, with defaults."""
        return VersionConversionSpec.model_validate(self.obj["spec"])

    @property
    def status(self) -> VersionConversionStatus:
        """The status as last read."""
        return VersionConversionStatus.model_validate(self.obj.get("status", {}))


class VersionRetirement(CrdkeeperObject):
    """The retirement of one version of a CRD."""

    endpoint = versionretirement.VersionRetirement.plural
    kind = "VersionRetirement"

    @property
    def spec(self) -> VersionRetirementSpec:
        """The spec as last read, with defaults."""
        return VersionRetirementSpec.model_validate(self.obj["spec"])

    @property
    def status(self) -> VersionRetirementStatus:
        """The status as last read."""
        return VersionRetirementStatus.model_validate(self.obj.get("status", {}))


class DefinitionReport(CrdkeeperObject):
    """The operator's report on a CRD."""

    endpoint = definitionreport.DefinitionReport.plural
    kind = "DefinitionReport"

    @property
    def status(self) -> DefinitionReportStatus:
        """The status as last read."""
        return DefinitionReportStatus.model_validate(self.obj.get("status", {}))

    def _stalled(self) -> Condition | None:
        """Always None: a report is not work that could stall, and its CRD may be fixed at any time."""
        return None


def report_of(
    crd: str, *, api: HTTPClient | None = None, generation: int = 1, timeout: float = WAIT_SECONDS
) -> DefinitionReport:
    """Wait for the report on a CRD for that `metadata.generation` of the CRD or a later one.

    `timeout` is in seconds. Raises TimedOut, Deleted, and HTTPError of pykube.
    """
    report = DefinitionReport.named(crd, api=api)
    return report.wait_until(lambda found: found.status.definition_generation >= generation, timeout=timeout)
