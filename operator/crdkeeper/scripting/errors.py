"""What can go wrong in a script, as types: why a wait ended without what it waited for, or no connection."""

from crdkeeper.api.meta import Condition
from crdkeeper.core.text import visible


class ConnectError(Exception):
    """There is no usable kubeconfig, and this is no pod with a ServiceAccount."""

    def __init__(self, text: str) -> None:
        super().__init__(visible(text))


class WaitError(Exception):
    """A wait that ended without what it waited for.

    `condition` is the condition that was decisive, as last seen, or None if the object had none. `reason` and
    `message` are its own, or empty; like the text of the error they are one line, in which no character of
    a stranger commands a terminal.
    """

    def __init__(self, text: str, condition: Condition | None = None) -> None:
        super().__init__(visible(text))
        self.condition = condition
        self.reason = visible(condition.reason) if condition is not None else ""
        self.message = visible(condition.message) if condition is not None else ""


class ConditionFailed(WaitError):
    """The condition will not come true unless somebody changes something: `reason` and `message` say what."""


class TimedOut(WaitError, TimeoutError):
    """The time was over first; `reason` and `message` say what held the condition up."""


class Deleted(WaitError):
    """The object was deleted meanwhile, or replaced by another one of its name."""
