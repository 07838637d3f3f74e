"""What a new CRD does to an object: the kinds of effects, and which of them are losses."""

from dataclasses import dataclass
from enum import Enum


class EffectKind(Enum):
    """Kinds of effects, in the order of a report: name and meaning."""

    UNREADABLE = ("Unreadable", "cannot be read any more")
    NOT_SERVED = ("NotServed", "cannot be read or written any more at a version that was served")
    APPLY_FAILS = (
        "ApplyFails",
        "every server-side apply fails, because managedFields name a version that goes",
    )
    UNCONVERTIBLE = ("Unconvertible", "cannot be converted by the rules")
    PRUNED = ("Pruned", "a field is lost for all who read it")
    LOST_ON_WRITE = ("LostOnWrite", "a field is lost with the next write")
    CHANGED = ("Changed", "a field is read with another value")
    CONVERTED_DIFFERENTLY = ("ConvertedDifferently", "a field is converted differently than before")
    WRITE_REFUSED = ("WriteRefused", "every write is refused, even if it changes nothing")
    REFUSED = ("Refused", "refused if it is created again, or if the field changes")
    STATUS_REFUSED = ("StatusRefused", "a status is refused if the field changes")
    INDETERMINATE = ("Indeterminate", "not predicted, or not wholly")
    DEFAULTED = ("Defaulted", "a field that was absent gets a value, such as a default")

    def __init__(self, label: str, meaning: str) -> None:
        self.label = label
        self.meaning = meaning

    @property
    def is_harm(self) -> bool:
        """Whether something is lost or rejected."""
        return self not in (EffectKind.DEFAULTED, EffectKind.INDETERMINATE)

    @property
    def is_refusal(self) -> bool:
        """Whether a write of the object is refused, now or once something changes."""
        return self in (EffectKind.WRITE_REFUSED, EffectKind.REFUSED, EffectKind.STATUS_REFUSED)


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect on one object."""

    kind: EffectKind
    field: str
    """The path, with [*] for any item or entry; empty if it is about the whole object."""
    version: str
    """The version of the CRD; empty if that does not matter."""
    message: str = ""
    """The API server's message, if there is one."""
    cause: str = ""
    """The message without the parts that vary between objects, by which objects are grouped."""
    exact: str = ""
    """The field in this object."""
    at_new_version: bool = False
    """Whether it affects only users of a version that is not served today."""
    by_server: bool = False
    """Whether the API server reported it, not just the engine."""

    @property
    def key(self) -> tuple[EffectKind, str, str]:
        """What is counted as one finding; its versions are listed together."""
        return self.kind, self.field, self.cause
