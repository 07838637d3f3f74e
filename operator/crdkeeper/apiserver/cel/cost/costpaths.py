"""The path in the schema of an expression's value, for the cost estimate.

cel-go keeps such a path as a Go slice and appends to it without a copy. Two expressions that extend one path
can therefore share its memory, and the later one overwrites the last step of the earlier. That changes
estimates (`self.l.all(x, x.a.all(y, x.b == y))` uses the size of `x.b` for that of `x.a`), so this module
does the same.
"""

from crdkeeper.apiserver.cel.cost.estimates import Range
from crdkeeper.apiserver.cel.types.declared import KEY, Declared


class CostPath:
    """A path with the memory of a Go slice: steps that other paths can see and overwrite."""

    __slots__ = ("_capacity", "_length", "_steps")

    def __init__(self, steps: list[str], length: int, capacity: int) -> None:
        self._steps = steps
        self._length = length
        self._capacity = capacity

    @classmethod
    def of(cls, name: str) -> "CostPath":
        """The path of a variable."""
        return cls([name], 1, 1)

    @classmethod
    def append(cls, base: "CostPath | None", step: str) -> "CostPath":
        """A path with one more step; only the step if there is no base."""
        if base is None:
            return cls.of(step)
        if base._length < base._capacity:
            if len(base._steps) == base._length:
                base._steps.append(step)
            else:
                base._steps[base._length] = step
            return cls(base._steps, base._length + 1, base._capacity)
        # Go doubles the capacity of a small slice.
        return cls([*base._steps[: base._length], step], base._length + 1, 2 * base._capacity)

    @property
    def first(self) -> str:
        """The variable."""
        return self._steps[0]

    def steps(self) -> list[str]:
        """All steps, in their current state."""
        return self._steps[: self._length]


def declared_size(root: Declared, path: CostPath | None, *more: str) -> Range | None:
    """The size that the schema allows at a path with some more steps; None if nothing is declared there."""
    if path is None:
        return None
    at: Declared | None = root
    for step in (*path.steps()[1:], *more):
        assert at is not None
        if step == "@items" or step == "@values":
            at = at.element
        elif step == "@keys":
            at = KEY if at.kind == "map" else None
        else:
            at = at.fields.get(step) if at.kind == "object" else None
        if at is None:
            return None
    assert at is not None
    return 0, at.max_elements
