"""Policies and views for the tests of decisions about built-in resources."""

from typing import Any

from crdkeeper.api.builtinpolicy import BuiltinPolicy
from crdkeeper.core.builtins.view import StoredAs, View


def builtin_policy(name: str = "p", **spec: Any) -> BuiltinPolicy:
    return BuiltinPolicy.model_validate(
        {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"resources": ["secrets"], **spec}}
    )


def view(*hashes: str, config: tuple[str, ...] | None = ("c",), resource: str = "secrets") -> View:
    """What API servers say of one resource: these hashes and configurations."""
    stored = {resource: [StoredAs("", resource, each, "v1") for each in hashes]}
    return View(stored, frozenset(), config, (), 1)
