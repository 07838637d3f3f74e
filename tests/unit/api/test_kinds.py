"""The registry of kinds: every model is registered, and no name occurs twice."""

from importlib import import_module
from pkgutil import iter_modules

import crdkeeper.api
from crdkeeper.api.compositekinds import COMPOSITE_KINDS
from crdkeeper.api.kinds import KINDS
from crdkeeper.api.meta import Kind

EVERY = (*KINDS, *COMPOSITE_KINDS)


def test_each_model_of_a_kind_is_in_the_registry() -> None:
    modules = [import_module(f"crdkeeper.api.{each.name}") for each in iter_modules(crdkeeper.api.__path__)]
    models = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Kind) and value is not Kind
    }
    assert models == set(EVERY)
    assert len(models) == len(EVERY)


def test_names_are_unique() -> None:
    for names in ([each.plural for each in EVERY], [name for each in EVERY for name in each.short_names]):
        assert len(set(names)) == len(names)
