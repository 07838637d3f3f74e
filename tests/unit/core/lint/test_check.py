"""The lists of checks are complete."""

from importlib import import_module
from inspect import isfunction
from pkgutil import iter_modules

from crdkeeper.core import lint
from crdkeeper.core.lint import check


def test_each_check_is_made() -> None:
    listed = {*check.OF_DEFINITION, *check.OF_VERSION, *check.OF_NODE, *check.OF_TYPE.values()}
    modules = [import_module(f"{lint.__name__}.{each.name}") for each in iter_modules(lint.__path__)]
    there = {
        value
        for module in modules
        for name, value in vars(module).items()
        if isfunction(value) and value.__module__ == module.__name__ and name.startswith("check_")
    }
    assert {each.__name__ for each in there - listed} == {"check_conventions", "check_forbidden"}
