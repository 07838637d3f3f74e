"""How to declare kinds of changes: each once, with an id that never changes by accident."""

from typing import Final

from crdkeeper.core.compatibility.change import Audience, ChangeKind, Effects, Impact

_ALL: dict[str, ChangeKind] = {}

NOBODY: Final[Effects] = {}


def breaks(*audiences: Audience) -> Effects:
    """It breaks these audiences."""
    return dict.fromkeys(audiences, Impact.BREAKING)


def risks(*audiences: Audience) -> Effects:
    """It is risky for these audiences."""
    return dict.fromkeys(audiences, Impact.RISKY)


def kind(
    id: str,
    effects: Effects,
    *,
    why: str,
    remedy: str,
    in_status: Effects | None = None,
    reinterprets: bool = False,
    fixed: bool = False,
) -> ChangeKind:
    """Declare a kind of change."""
    made = ChangeKind(
        id=id,
        why=why,
        remedy=remedy,
        effects=effects,
        in_status=in_status,
        reinterprets=reinterprets,
        fixed=fixed,
    )
    assert id not in _ALL, id
    _ALL[id] = made
    return made


def declared() -> tuple[ChangeKind, ...]:
    """The kinds declared so far, by id."""
    return tuple(_ALL[id] for id in sorted(_ALL))
