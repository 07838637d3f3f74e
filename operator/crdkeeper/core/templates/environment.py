"""The values that expressions see in one rendering, why others are not there, and what all of it may cost."""

from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.apiserver.cel.expressions import OBJECT_LIMIT, Account
from crdkeeper.apiserver.cel.values.values import Value
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.core.templates.sizes import MOST_OF_ALL, MOST_OF_OBJECT, SizeExceeded, measure
from crdkeeper.core.templates.statusgap import StatusGap

COMPOSITE: Final = "composite"
EACH: Final = "each"


class NotYet(Exception):
    """A value that an expression needs is not there yet."""

    def __init__(self, what: str, path: Path) -> None:
        super().__init__(what)
        self.what = what
        self.path = path


class Excluded(Exception):
    """An expression needs a resource that is excluded."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class NoValue(Exception):
    """An expression has no value for this composite, and waiting does not help."""

    def __init__(self, path: Path, column: int | None, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.column = column
        self.message = message
        self.hint = hint


class Environment:
    """The state of one rendering."""

    def __init__(self) -> None:
        self.account = Account(OBJECT_LIMIT)
        """The cost of all evaluations."""
        self.values: dict[str, Value] = {}
        self.resources: set[str] = set()
        self.waiting: dict[str, str] = {}
        """Resources that are not there, with the words for what is waited for."""
        self.absent: dict[str, str] = {}
        """Resources that are rendered, but of whose objects one does not exist, with its identity."""
        self.unready: dict[str, str] = {}
        """Resources that are there, but whose readyWhen does not hold."""
        self.excluded: set[str] = set()
        self.gaps: list[StatusGap] | None = None
        """If not None: fields without a value are left out and recorded here, instead of raising."""
        self._left = MOST_OF_OBJECT
        self._left_of_all = MOST_OF_ALL

    def demand(self, name: str, path: Path, *, optional: bool, exists: bool) -> None:
        """Raises NotYet or Excluded if a resource is not there; one that is excluded may be optional.

        `exists`: it has to be in the cluster, and it is not enough that it is rendered. `path` is that of the
        expression.
        """
        if name in self.waiting:
            raise NotYet(self.waiting[name], Path("", ()))
        if exists and name in self.absent:
            raise NotYet(self.absent[name], path)
        if name in self.excluded and not optional:
            raise Excluded(name)

    def is_object(self, name: str) -> bool:
        """Whether a variable is the composite or a resource, and not of forEach."""
        return name in (COMPOSITE, EACH) or name in self.resources

    def with_variables(self, variables: Mapping[str, Value]) -> None:
        """Set variables for what comes next, such as those of forEach."""
        self.values |= variables

    def without_variables(self, names: Mapping[str, Value]) -> None:
        """Remove variables again."""
        for name in names:
            self.values.pop(name, None)

    def begin_object(self) -> None:
        """Count the size of an object from here on."""
        self._left = MOST_OF_OBJECT

    def spend(self, value: Any) -> None:
        """Count a computed part of an object. Raises SizeExceeded, from then on for every other part, too."""
        left, self._left = self._left, 0
        self._left = left - measure(value, left)

    def spend_object(self, value: Any) -> None:
        """Count a whole object. Raises SizeExceeded."""
        size = measure(value, MOST_OF_OBJECT)
        self._left_of_all -= size
        if self._left_of_all < 0:
            raise SizeExceeded(f"more than {MOST_OF_ALL:,} bytes in all objects")
