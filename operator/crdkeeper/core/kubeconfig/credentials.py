"""What a kubeconfig's user authenticates with."""

from collections.abc import Iterable, Mapping
from typing import Any

from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.core.kubeconfig.error import KubeconfigError
from crdkeeper.core.text import visible


def check_plugin(
    user: Mapping[str, Any], token: str | None, certificate: str | None, said: Iterable[str] = ()
) -> None:
    """Raise KubeconfigError if the user has an exec plugin, and there are no credentials.

    The libraries only log what was `said`, and go on as system:anonymous.
    """
    plugin = user.get("exec")
    # The libraries put the scheme before whatever they have.
    if not plugin or certificate or (token or "").removeprefix("Bearer").strip():
        return
    text = ": ".join((f"The exec plugin {plugin.get('command')!r} gave no credentials", *said))
    raise KubeconfigError(bounded(visible(text), LINE_BYTES))
