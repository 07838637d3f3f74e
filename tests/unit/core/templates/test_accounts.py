"""Where the ServiceAccount of a Composition may be."""

from typing import Any

import pytest

from crdkeeper.core.templates.kinds import TargetKind
from tests.unit.core.templates.compositions import COMPOSITE, problems


@pytest.mark.parametrize(
    ("namespaced", "account", "problem"),
    [
        (True, {"serviceAccountName": "a"}, ""),
        (
            True,
            {"serviceAccountName": "a", "serviceAccountNamespace": "b"},
            "spec.serviceAccountNamespace: composites are in namespaces, and the ServiceAccount of each is "
            "in its own one | Remove the field, and create the ServiceAccount in each namespace.",
        ),
        (False, {"serviceAccountName": "a", "serviceAccountNamespace": "b"}, ""),
        (
            False,
            {"serviceAccountName": "a"},
            "spec.serviceAccountName: composites are cluster-scoped, so there is no namespace for the "
            "ServiceAccount | Set spec.serviceAccountNamespace.",
        ),
        (None, {"serviceAccountName": "a"}, ""),
    ],
)
def test_where_a_service_account_is(namespaced: bool | None, account: Any, problem: str) -> None:
    external = {"apiVersion": "example.com/v1", "kind": "Server", "name": "z", "namespace": "x"}
    resource = {"name": "a", "externalRef": external}
    found = problems(resource, composite=TargetKind(COMPOSITE, namespaced), **account)
    assert found == ([problem] if problem else [])
