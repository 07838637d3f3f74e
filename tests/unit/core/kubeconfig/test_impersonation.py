"""Whom a kubeconfig's user impersonates, or why nobody."""

from typing import Any

import pytest

from crdkeeper.core.kubeconfig.error import KubeconfigError
from crdkeeper.core.kubeconfig.impersonation import impersonation


@pytest.mark.parametrize(
    "user",
    [{}, {"token": "t"}, {"as": ""}, {"as": None, "as-uid": None, "as-groups": None, "as-user-extra": None}],
)
def test_nobody(user: dict[str, Any]) -> None:
    assert impersonation(user) == ()


def test_names_of_extra_fields_are_escaped() -> None:
    every = "".join(map(chr, range(33, 127)))
    ((_, _), (name, _)) = impersonation({"as": "a", "as-user-extra": {every: ["x"]}})
    # What is left may be in a header's name: https://www.rfc-editor.org/rfc/rfc9110#name-tokens
    left = "!#$&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~"
    assert name == "Impersonate-Extra-" + "".join(
        each if each in left else f"%{ord(each):02X}" for each in every
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("as", 5),
        ("as", ["a"]),
        ("as", "a\nb"),
        ("as-uid", 5),
        ("as-uid", "\x00"),
        ("as-groups", "a"),
        ("as-groups", [5]),
        ("as-groups", ["a\r"]),
        ("as-user-extra", "a"),
        ("as-user-extra", {"a": "b"}),
        ("as-user-extra", {"a": ["b\x7f"]}),
        ("as-user-extra", {"a": [True]}),
    ],
)
def test_what_cannot_be_sent_is_refused(field: str, value: Any) -> None:
    with pytest.raises(KubeconfigError, match=f"a value of {field} that cannot be sent"):
        impersonation({"as": "a", field: value})


@pytest.mark.parametrize("field", [{"as-uid": "1"}, {"as-groups": ["a"]}, {"as-user-extra": {"a": ["b"]}}])
def test_somebody_must_be_impersonated(field: dict[str, Any]) -> None:
    with pytest.raises(KubeconfigError, match="but not as: whom to impersonate"):
        impersonation(field)
