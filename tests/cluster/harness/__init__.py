"""Shared by tests on a real control plane: a CRD to migrate, an admin, operators as processes."""

from tests.cluster.harness.admin import Admin, condition, each_of
from tests.cluster.harness.customkind import CustomKind, Version
from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT, install
from tests.cluster.harness.operator import Operator
from tests.cluster.harness.scenes import outdated, time_passes, until_storing
from tests.cluster.harness.trimguard import TrimGuard, assert_trim_is_true
from tests.cluster.harness.waiting import eventually

__all__ = [
    "NAMESPACE",
    "SERVICE_ACCOUNT",
    "Admin",
    "CustomKind",
    "Operator",
    "TrimGuard",
    "Version",
    "assert_trim_is_true",
    "condition",
    "each_of",
    "eventually",
    "install",
    "outdated",
    "time_passes",
    "until_storing",
]
