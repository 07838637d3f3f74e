"""What can go wrong in a script, as types: why a wait ended without its condition, or no connection."""

from crdkeeper.api.meta import Condition
from crdkeeper.core.text import visible


class ConnectError(Exception):
    """There is no usable kubeconfig, and this is not a pod with a ServiceAccount."""

    def __init__(self, text: str) -> None:
        super().__init__(visible(text))


class WaitError(Exception):
    """A wait that ended without its condition.

    `condition` is the decisive condition, as last seen, or None if the object had none. `reason` and
    `message` are its own, or empty; like the error's text, they are one line, and contain no control
    characters that another user could direct at a terminal.
    """

    def __init__(self, text: str, condition: Condition | None = None) -> None:
        super().__init__(visible(text))
        self.condition = condition
        self.reason = visible(condition.reason) if condition is not None else ""
        self.message = visible(condition.message) if condition is not None else ""


class ConditionFailed(WaitError):
    """The condition will not become true unless someone acts: `reason` and `message` say what is wrong."""


class TimedOut(WaitError, TimeoutError):
    """The time ran out first; `reason` and `message` say what delayed the condition."""


class Deleted(WaitError):
    """The object was deleted meanwhile, or replaced by another one with its name."""
