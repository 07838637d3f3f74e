"""Names of resources as people type them, and suggestions for names that do not exist."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from pydantic import ValidationError

from crdkeeper.api.storagemigration import GroupResource

_SIMILAR = 0.75


@dataclass(frozen=True, slots=True)
class ServedResource:
    """A resource with all its names, as in discovery."""

    group: str
    plural: str
    singular: str
    kind: str
    short_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def names(self) -> frozenset[str]:
        """The names that kubectl accepts for it, without the group."""
        return frozenset((self.plural, self.singular, self.kind.lower(), *self.short_names))


def parse_resource(text: str) -> GroupResource:
    """Parse `PLURAL.GROUP`, or `PLURAL` for the core group. Raises ValueError with the problem."""
    plural, _, group = text.lower().partition(".")
    try:
        return GroupResource(group=group, resource=plural)
    except ValidationError:
        raise ValueError(
            f"{text!r} is not the name of a resource: write PLURAL.GROUP as in certificates.cert-manager.io, "
            f"or PLURAL for the core group as in secrets."
        ) from None


def suggest(wanted: str, served: Iterable[ServedResource]) -> str | None:
    """The resource probably meant: one with this short, singular or kind name, else one spelled similarly."""
    name, _, group = wanted.lower().partition(".")
    by_name = {str(each): each for each in served}
    called_so = sorted(
        full for full, each in by_name.items() if name in each.names and each.group.startswith(group)
    )
    similar = get_close_matches(wanted.lower(), by_name, n=1, cutoff=_SIMILAR)
    return next(iter([*called_so, *similar]), None)
