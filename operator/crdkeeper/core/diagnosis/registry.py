"""All reasons that a report can show, for its documentation and for the tests that hold the two together."""

from types import ModuleType

from crdkeeper.core.diagnosis import (
    approval,
    conversion,
    established,
    namesaccepted,
    ready,
    storage,
    structural,
    subresources,
    terminating,
    versions,
)
from crdkeeper.core.diagnosis.verdict import Reason

CONDITIONS: tuple[tuple[str, ModuleType], ...] = (
    ("Ready", ready),
    ("Terminating", terminating),
    ("NamesAccepted", namesaccepted),
    ("Established", established),
    ("NonStructuralSchema", structural),
    ("ConversionReady", conversion),
    ("StorageCurrent", storage),
    ("SubresourcesReady", subresources),
    ("VersionsCurrent", versions),
    ("KubernetesAPIApprovalPolicyConformant", approval),
)
"""The conditions in the order of a report, each with the module that judges it."""


def reasons(condition: str) -> tuple[Reason, ...]:
    """The reasons of a condition, in the order in which its module defines them.

    Ready shows the unhealthy ones of all other conditions besides.
    """
    module = dict(CONDITIONS)[condition]
    found: dict[str, Reason] = {}
    for value in vars(module).values():
        for each in value if isinstance(value, tuple | list) else (value,):
            if isinstance(each, Reason) and each.condition == condition:
                found.setdefault(each.name, each)
    return tuple(found.values())
