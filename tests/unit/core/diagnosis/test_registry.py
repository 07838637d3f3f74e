"""The registry of conditions: complete, and consistent with what each condition reads and returns."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import pytest

from crdkeeper.core.diagnosis import conditions, registry
from crdkeeper.core.diagnosis.conditions import ready
from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.facts import LiveFacts
from crdkeeper.core.diagnosis.verdict import Reason
from tests.unit.core.diagnosis.builders import facts

MODULES = [import_module(f"{conditions.__name__}.{each.name}") for each in iter_modules(conditions.__path__)]
EVERY_MODULE = pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__.rpartition(".")[2])
EVERY_CONDITION = pytest.mark.parametrize("condition", registry.CONDITIONS, ids=lambda each: each.type)


def test_each_file_is_in_the_registry_once() -> None:
    judged = [module.CONDITION for module in MODULES if module is not ready]
    assert sorted(each.type for each in judged) == sorted(each.type for each in registry.CONDITIONS)
    assert all(each in registry.CONDITIONS for each in judged)
    assert len({each.type for each in registry.CONDITIONS}) == len(registry.CONDITIONS)


@EVERY_MODULE
def test_each_reason_of_a_file_is_in_its_list_in_order(module: ModuleType) -> None:
    listed = module.REASONS if module is ready else module.CONDITION.reasons
    assert tuple(value for value in vars(module).values() if isinstance(value, Reason)) == listed
    (type_,) = {each.condition for each in listed}
    assert registry.REASONS[type_] is listed
    assert len({each.name for each in listed}) == len(listed)


def names_in_code(module: ModuleType) -> Iterator[str]:
    """The names that a module reads, except the list of its reasons."""
    for statement in ast.parse(inspect.getsource(module)).body:
        if not (isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) in _LISTS):
            for each in ast.walk(statement):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                    yield each.id


_LISTS = ("CONDITION", "REASONS")


@EVERY_MODULE
def test_each_reason_can_be_given(module: ModuleType) -> None:
    constants = {name for name, value in vars(module).items() if isinstance(value, Reason)}
    assert constants - set(names_in_code(module)) == set()


class Recorder:
    """Wraps facts, and records which of them are read."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.read.add(name)
        return getattr(self._real, name)


@EVERY_CONDITION
def test_a_condition_says_what_it_depends_on(condition: ConditionType) -> None:
    known = facts()
    assessment, live = Recorder(known.assessment), Recorder(known.live)
    verdict = condition.judge(replace(known, assessment=assessment, live=live))  # type: ignore[arg-type]
    assert verdict.reason in condition.reasons
    assert bool(assessment.read) == condition.assessed
    assert live.read == ({condition.fact} if condition.fact else set())


def test_each_fact_of_a_probe_belongs_to_one_condition() -> None:
    needed = [each.fact for each in registry.CONDITIONS if each.fact]
    assert sorted(needed) == sorted(each.name for each in fields(LiveFacts))
