"""Names and namespaces of objects: a composite in a namespace composes only there."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.core.templates.environment import NoValue
from crdkeeper.core.templates.kinds import TargetKind, group_of
from crdkeeper.core.templates.problem import Problems

_LONGEST: Final = 253


class Identity(NamedTuple):
    """What tells an object from all others: the version by which it is read does not."""

    group: str
    kind: str
    namespace: str
    """Empty for one that is in none."""
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {where}"


def identity_of(value: Mapping[str, Any]) -> Identity | None:
    """The identity of an object; None of what is none."""
    metadata = value.get("metadata")
    if not isinstance(metadata, Mapping):
        return None
    found = (value.get("apiVersion"), value.get("kind"), metadata.get("namespace", ""), metadata.get("name"))
    api_version, kind, namespace, name = (each if isinstance(each, str) else None for each in found)
    if api_version is None or kind is None or namespace is None or not name:
        return None
    return Identity(group_of(api_version), kind, namespace, name)


def check_namespace(
    template: Mapping[str, Any],
    at: Path,
    target: TargetKind,
    *,
    composite_in_namespace: bool,
    problems: Problems,
) -> None:
    """Report a namespace that no composite can compose in, as far as that is known without one."""
    kind, namespace = template.get("kind"), template["metadata"].get("namespace")
    literal = isinstance(namespace, str) and "${" not in namespace
    if composite_in_namespace:
        if target.namespaced is False:
            problems.add(
                at,
                f"{kind} is cluster-scoped, but composites are in namespaces",
                "Compose it in a cluster-scoped composite (scope: Cluster).",
            )
        elif literal:
            problems.add(
                at.child("namespace"),
                "a composite composes only in its own namespace",
                "Remove the field: the composite's namespace is filled in.",
            )
    elif target.namespaced is False and namespace is not None:
        problems.add(at.child("namespace"), f"{kind} is cluster-scoped", "Remove the field.")
    elif target.namespaced and namespace is None:
        problems.add(at, f"{kind} needs a namespace, and composites have none", "Set metadata.namespace.")


def check_account(
    name: str | None, namespace: str | None, namespaced: bool | None, problems: Problems
) -> None:
    """Report a ServiceAccount that no composite can have: it is in the namespace of the composite, if any.

    `namespaced` is None if the scope of composites is not known.
    """
    at = root("spec")
    if namespaced and namespace is not None:
        problems.add(
            at.child("serviceAccountNamespace"),
            "composites are in namespaces, and the ServiceAccount of each is in its own one",
            "Remove the field, and create the ServiceAccount in each namespace.",
        )
    elif namespaced is False and name is not None and namespace is None:
        problems.add(
            at.child("serviceAccountName"),
            "composites are cluster-scoped, so there is no namespace for the ServiceAccount",
            "Set spec.serviceAccountNamespace.",
        )


def is_name(text: str) -> bool:
    """Whether it can be the name of an object, and so the last part of its path."""
    return 0 < len(text) <= _LONGEST and "/" not in text and "%" not in text and text not in (".", "..")


def placed(
    value: dict[str, Any], at: Path, target: TargetKind, namespace: str | None, *, foreign: bool
) -> tuple[dict[str, Any], Identity]:
    """The rendered object in its namespace, which is that of the composite if it names none.

    `namespace` is the composite's; None if it has none. `foreign` allows others. Raises NoValue.
    """
    metadata = value["metadata"]
    name, own = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        raise NoValue(at.child("name"), None, "the object has no name")
    if not is_name(name):
        message = f"{name[:_LONGEST]!r} is not the name of an object"
        raise NoValue(
            at.child("name"), None, message, f"Names have at most {_LONGEST} characters, and no / or %."
        )
    if own is not None and not own:
        raise NoValue(at.child("namespace"), None, "the namespace is empty", "Remove the field.")
    if own is None and namespace is not None and target.namespaced is not False:
        value = {**value, "metadata": {"name": name, "namespace": namespace, **metadata}}
        own = namespace
    elif own is not None and namespace is not None and own != namespace and not foreign:
        message = f"the namespace is {own}, but a composite composes only in its own, {namespace}"
        raise NoValue(at.child("namespace"), None, message, "Remove the field.")
    return value, Identity(group_of(value["apiVersion"]), value["kind"], own or "", name)
