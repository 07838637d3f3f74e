"""Requests in the name of another user, as a kubeconfig asks for them.

https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from crdkeeper.core.kubeconfig.error import KubeconfigError

_IN_NAMES: Final = "!#$&'*+-.^_`|~"
"""What a header's name may have besides letters and digits, except for the sign that escapes the rest."""
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The headers for what a kubeconfig says of a user; several may have the same name.

    The libraries ignore these fields, and would have requests made with all rights of the account itself.
    Raises KubeconfigError.
    """
    groups, extra = user.get("as-groups") or [], user.get("as-user-extra") or {}
    if not isinstance(groups, list):
        raise _no_text("as-groups")
    if not isinstance(extra, dict) or not all(isinstance(each, list) for each in extra.values()):
        raise _no_text("as-user-extra")
    headers = (
        *(("Impersonate-User", _text("as", each)) for each in [user.get("as")] if each),
        *(("Impersonate-Uid", _text("as-uid", each)) for each in [user.get("as-uid")] if each),
        *(("Impersonate-Group", _text("as-groups", each)) for each in groups),
        *(
            (f"Impersonate-Extra-{quote(str(key), safe=_IN_NAMES)}", _text("as-user-extra", each))
            for key, values in extra.items()
            for each in values
        ),
    )
    if headers and not user.get("as"):
        raise KubeconfigError(
            "The kubeconfig's user has as-uid, as-groups or as-user-extra, but not as: whom to impersonate."
        )
    return headers


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str) or _FORBIDDEN.search(value):
        raise _no_text(field)
    return value


def _no_text(field: str) -> KubeconfigError:
    return KubeconfigError(
        f"The kubeconfig's user impersonates by a value of {field} that cannot be sent: "
        "write texts of one line, as https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/ has them."
    )
