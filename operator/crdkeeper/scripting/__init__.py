"""For scripts: crdkeeper's kinds as typed objects of pykube-ng, with conditions and waiting.

It is an ordinary client, so nothing of the operator imports it, and it imports only the kinds. It is
synchronous, as scripts are. docs/scripting.md shows how to use it.
"""

try:
    import pykube as _pykube  # noqa: F401
except ModuleNotFoundError as _error:
    raise ModuleNotFoundError(
        "crdkeeper.scripting needs pykube-ng: pip install 'crdkeeper[pykube]'", name=_error.name
    ) from _error

from crdkeeper.scripting.connecting import connect
from crdkeeper.scripting.errors import ConditionFailed, ConnectError, Deleted, TimedOut, WaitError
from crdkeeper.scripting.kinds import (
    BuiltinPolicy,
    DefinitionPolicy,
    DefinitionReport,
    StorageMigration,
    VersionConversion,
    VersionRetirement,
    report_of,
)

__all__ = [
    "BuiltinPolicy",
    "ConditionFailed",
    "ConnectError",
    "DefinitionPolicy",
    "DefinitionReport",
    "Deleted",
    "StorageMigration",
    "TimedOut",
    "VersionConversion",
    "VersionRetirement",
    "WaitError",
    "connect",
    "report_of",
]
