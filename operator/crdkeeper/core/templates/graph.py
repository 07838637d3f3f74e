"""The order of resources: each after those that it refers to."""

from collections.abc import Collection, Mapping, Sequence


def waves(needs: Mapping[str, Collection[str]]) -> tuple[tuple[str, ...], ...]:
    """The names, each in the first wave after all that it needs; in a wave in the order of the mapping.

    Those in a cycle, and what needs them, are left out: see `cycle`. What is no key of the mapping is not
    waited for.
    """
    open_ = {name: {each for each in needed if each in needs} for name, needed in needs.items()}
    dependents: dict[str, list[str]] = {name: [] for name in needs}
    for name, needed in open_.items():
        for each in needed:
            dependents[each].append(name)
    position = {name: at for at, name in enumerate(needs)}
    found: list[tuple[str, ...]] = []
    wave = [name for name, needed in open_.items() if not needed]
    while wave:
        found.append(tuple(wave))
        following: list[str] = []
        for name in wave:
            for each in dependents[name]:
                open_[each].discard(name)
                if not open_[each]:
                    following.append(each)
        wave = sorted(following, key=position.__getitem__)
    return tuple(found)


def cycle(needs: Mapping[str, Collection[str]]) -> Sequence[str] | None:
    """A cycle, from its first name in the mapping around to that name again; None if there is none."""
    done = {name for wave in waves(needs) for name in wave}
    position = {name: at for at, name in enumerate(needs)}
    left = [name for name in needs if name not in done]
    if not left:
        return None
    # What is left needs something that is left, too, so the walk comes back to where it was.
    walk: dict[str, int] = {}
    name = left[0]
    while name not in walk:
        walk[name] = len(walk)
        name = min(
            (each for each in needs[name] if each in position and each not in done), key=position.__getitem__
        )
    around = list(walk)[walk[name] :]
    first = min(range(len(around)), key=lambda at: position[around[at]])
    return [*around[first:], *around[:first], around[first]]
