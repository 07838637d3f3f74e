"""Counts variables and selections from them: a qualifier costs as much as a variable.

A chain such as `self.a[0].b` is one attribute with three qualifiers; it costs one, plus one for each
qualifier that is reached. For an attribute that is an index or a branch of `?:`, only the qualifiers count.
Follows cel-go: interpreter/attributes.go, and the observers of interpreter/interpretable.go.
"""

from crdkeeper.apiserver.cel.counting.tracker import UNSET, Tracker
from crdkeeper.apiserver.cel.run.qualifiers import checked_key, lookup, missing
from crdkeeper.apiserver.cel.syntax.nodes import ACCUMULATOR
from crdkeeper.apiserver.cel.values.containers import NONE, CelMap, OptionalValue
from crdkeeper.apiserver.cel.values.values import (
    MISSING,
    EvaluationError,
    Indeterminate,
    Value,
    no_overload,
)


class Instruction:
    """One instruction of the plan."""

    __slots__ = ()

    def run(self, tracker: Tracker) -> Value:
        """The value, or an EvaluationError if there is none; the tracker gets the cost.

        Raises Stopped, Aborted and Indeterminate.
        """
        raise NotImplementedError


class Qualifier:
    """A field, key or index that is known in advance. `test` says whether only its presence is requested."""

    __slots__ = ("optional", "test", "value")

    def __init__(self, value: Value, *, optional: bool, test: bool = False) -> None:
        self.value = value
        self.optional = optional
        self.test = test

    def find(self, tracker: Tracker, owner: Value) -> tuple[Value, Value]:
        """The key, and the value at it: MISSING if there is none, an EvaluationError."""
        return self.value, _looked_up(owner, self.value)

    def qualify(self, tracker: Tracker, owner: Value, *, if_present: bool) -> Value:
        """The value at the key; MISSING, where that is allowed, if there is none; an EvaluationError."""
        key, found = self.find(tracker, owner)
        failed = isinstance(found, EvaluationError)
        if if_present:
            if found is MISSING or failed:
                return found
        elif self.test and not failed:
            found = found is not MISSING
        elif found is MISSING:
            found = missing(owner, key)
        tracker.charge(1)
        return found


class ComputedQualifier(Qualifier):
    """A key that is computed."""

    __slots__ = ("_attribute",)

    def __init__(self, attribute: "Attribute", *, optional: bool) -> None:
        super().__init__(None, optional=optional)
        self._attribute = attribute

    def find(self, tracker: Tracker, owner: Value) -> tuple[Value, Value]:
        key = self._attribute.resolve(tracker)
        if isinstance(key, EvaluationError):
            return key, key
        try:
            return key, _looked_up(owner, checked_key(key))
        except EvaluationError as error:
            return key, error


def _looked_up(owner: Value, key: Value) -> Value:
    try:
        return lookup(owner, key)
    except EvaluationError as error:
        return error


class Attribute:
    """The source of a value, and the selections from it."""

    __slots__ = ()
    cost = 1
    """Its cost where a value is needed, without its qualifiers."""

    def add(self, qualifier: Qualifier) -> None:
        """Add a selection."""
        raise NotImplementedError

    def resolve(self, tracker: Tracker) -> Value:
        """The value, or an EvaluationError."""
        raise NotImplementedError


class _Qualified(Attribute):
    __slots__ = ("_qualifiers",)

    def __init__(self) -> None:
        self._qualifiers: list[Qualifier] = []

    def add(self, qualifier: Qualifier) -> None:
        self._qualifiers.append(qualifier)

    def origin(self, tracker: Tracker) -> Value:
        """What the qualifiers are applied to, or an EvaluationError."""
        raise NotImplementedError

    def resolve(self, tracker: Tracker) -> Value:
        value = self.origin(tracker)
        optional = type(value) is OptionalValue
        if optional:
            if value is NONE:
                return NONE
            value = value.value
        for each in self._qualifiers:
            if isinstance(value, EvaluationError):
                return value
            optional = optional or each.optional
            value = each.qualify(tracker, value, if_present=optional)
            if value is MISSING:
                return NONE
        return OptionalValue(value) if optional and not isinstance(value, EvaluationError) else value


class Variable(_Qualified):
    """A variable. An accumulator is initialized on first use."""

    __slots__ = ("_initial", "_name", "_slot", "accumulates")

    def __init__(self, name: str, slot: int, initial: Instruction | None) -> None:
        super().__init__()
        self._name = name
        self._slot = slot
        self._initial = initial
        self.accumulates = name == ACCUMULATOR

    def origin(self, tracker: Tracker) -> Value:
        value = tracker.slots[self._slot]
        if value is UNSET and self._initial is not None:
            value = self._initial.run(tracker)
            # A loop changes its result in place.
            if type(value) is list and not value:
                value = []
            elif type(value) is CelMap and not len(value):
                value = CelMap()
            tracker.slots[self._slot] = value
        if value is MISSING:
            return EvaluationError(f"no such attribute(s): {self._name}")
        if type(value) is Indeterminate:
            raise Indeterminate(*value.args)
        return value


class Computed(_Qualified):
    """The result of an expression."""

    __slots__ = ("_operand",)

    def __init__(self, operand: Instruction) -> None:
        super().__init__()
        self._operand = operand

    def origin(self, tracker: Tracker) -> Value:
        return self._operand.run(tracker)


class Choice(Attribute):
    """`condition ? yes : no`: selections apply to the chosen branch."""

    __slots__ = ("_condition", "_no", "_yes")
    cost = 0

    def __init__(self, condition: Instruction, yes: Attribute, no: Attribute) -> None:
        self._condition = condition
        self._yes = yes
        self._no = no

    def add(self, qualifier: Qualifier) -> None:
        self._yes.add(qualifier)
        self._no.add(qualifier)

    def resolve(self, tracker: Tracker) -> Value:
        value = self._condition.run(tracker)
        if value is True:
            return self._yes.resolve(tracker)
        if value is False:
            return self._no.resolve(tracker)
        return value if isinstance(value, EvaluationError) else no_overload()


class AttributeStep(Instruction):
    """An attribute where a value is needed."""

    __slots__ = ("attribute",)

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute

    def run(self, tracker: Tracker) -> Value:
        value = self.attribute.resolve(tracker)
        tracker.charge(self.attribute.cost)
        return value


class PresenceStep(AttributeStep):
    """`has(…)`, which costs what its qualifiers cost; of a conditional, one less."""

    __slots__ = ()

    def run(self, tracker: Tracker) -> Value:
        value = self.attribute.resolve(tracker)
        tracker.charge(self.attribute.cost - 1)
        return value is not NONE if type(value) is OptionalValue else value
