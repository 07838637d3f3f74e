"""A place in a CRD: the API server's name for a field, and the path in the author's file.

The two differ. The server validates its internal form, where a schema that all versions share is at
`spec.validation` and a webhook's clientConfig at `webhookClientConfig`. A finding shows the server's name and
leads to the author's line, so each path contains both.
"""

from collections.abc import Iterable
from typing import Final, Self

Step = str | int

_LONGEST: Final = 4_000
"""Characters of a path that is printed. Nothing limits the names of fields."""
_KEPT: Final = _LONGEST + 1
"""Characters of a name that are kept: one more than is printed, so that `joined` sees that it is too long."""


class Path:
    """A path in the server's format (`str`) with the steps that lead there in the file (`steps`)."""

    __slots__ = ("_parent", "_steps", "_text")

    def __init__(self, text: str, steps: tuple[Step, ...], parent: Self | None = None) -> None:
        self._parent = parent
        self._text = text
        self._steps = steps

    def child(self, name: str, *steps: Step) -> "Path":
        """A field; `steps` if the file has it elsewhere than in a field with that name."""
        return Path(f".{name}"[:_KEPT], steps or (name,), self)

    def key(self, key: str) -> "Path":
        """An entry of a map."""
        return Path(f"[{key}]"[:_KEPT], (key,), self)

    def index(self, index: int) -> "Path":
        """An item of a list."""
        return Path(f"[{index}]", (index,), self)

    def __str__(self) -> str:
        """The path as the server prints it; an extremely long one is shortened in the middle."""
        texts: list[str] = []
        at: Path | None = self
        while at is not None:
            texts.append(at._text)
            at = at._parent
        return joined(reversed(texts)).removeprefix(".")

    @property
    def steps(self) -> tuple[Step, ...]:
        """The keys and indexes from the top of the document."""
        return tuple(step for each in self._from_top() for step in each._steps)

    def in_file(self) -> "Path":
        """The same place, named as in the file: for authors who never see the form that the server names."""
        found: Path | None = None
        for each in self._from_top():
            found = Path(each._text_in_file(), each._steps, found)
        return found or self

    def below(self, parent: "Path") -> "Path":
        """The same place in a part of another document."""
        found = parent
        for each in self._from_top():
            found = Path(each._text if each._parent is not None else f".{each._text}", each._steps, found)
        return found

    def _text_in_file(self) -> str:
        if not self._steps or self._text in _texts(self._steps):
            return self._text
        return joined(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self._steps)

    def _from_top(self) -> "list[Path]":
        found: list[Path] = []
        at: Path | None = self
        while at is not None:
            found.append(at)
            at = at._parent
        return found[::-1]


def _texts(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """How the server names a field, a key or an index that the file has at the same place."""
    (step, *more) = steps
    return () if more else (str(step)[:_KEPT], f".{step}"[:_KEPT], f"[{step}]"[:_KEPT])


def joined(parts: Iterable[str]) -> str:
    """A path to print; an extremely long one is shortened in the middle."""
    text = "".join([each if len(each) <= _LONGEST else f"{each[:_LONGEST]}…" for each in parts])
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"


def root(name: str) -> Path:
    """The path of a field at the top of the document."""
    return Path(name, (name,))
