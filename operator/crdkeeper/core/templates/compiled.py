"""A Composition that compiles: what rendering needs of each resource."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.core.templates.expression import TemplateExpression
from crdkeeper.core.templates.kinds import TargetKind, group_of
from crdkeeper.core.templates.problem import TemplateProblem
from crdkeeper.core.templates.template import Make
from crdkeeper.core.templates.variables import TemplateVariable


@dataclass(frozen=True, slots=True)
class CompiledResource:
    """A resource of a Composition."""

    name: str
    path: Path
    api_version: str
    kind: str
    target: TargetKind
    external: bool
    """Whether it is only read: then `make` gives apiVersion, kind and metadata with the object's identity."""
    make: Make
    variable: TemplateVariable
    """What expressions of others see of it: an object, or the list of objects of a collection."""
    one: TemplateVariable
    """What its own readyWhen sees: one object."""
    include_when: tuple[TemplateExpression, ...]
    for_each: tuple[tuple[str, TemplateExpression], ...]
    ready_when: tuple[TemplateExpression, ...]
    needs: frozenset[str]
    """The resources that it refers to: they come first."""
    required: frozenset[str]
    """Those of them that it refers to without `?`, includeWhen aside: without them it is excluded."""
    conflicts: Literal["Refuse", "Force"]
    deletion: Literal["Delete", "Orphan"]
    recreate: bool
    problem: TemplateProblem | None = None
    """Why it is held: a schema that it was compiled by does not fit. Nothing of it changes."""
    reads: frozenset[str] = frozenset()
    """Those of the resources that it refers to of which it reads more than names, uids and labels."""

    @property
    def collection(self) -> bool:
        """Whether it is a list of objects."""
        return bool(self.for_each)


@dataclass(frozen=True, slots=True)
class CompiledComposition:
    """All resources, each after those that it refers to."""

    api_version: str
    """Of the composites."""
    kind: str
    resources: tuple[CompiledResource, ...]
    waves: tuple[tuple[str, ...], ...]
    """Their names: what is in one wave can be created at the same time."""
    composite: TemplateVariable
    namespaced: bool
    """Whether the composite is in a namespace."""
    status: Make | None

    @property
    def order(self) -> dict[str, int]:
        """By the name of a resource: its wave."""
        return {name: at for at, wave in enumerate(self.waves) for name in wave}

    @property
    def keeps(self) -> dict[str, bool]:
        """By the name of a resource that makes objects: whether these stay."""
        return {each.name: each.deletion == "Orphan" for each in self.resources if not each.external}


def with_secrets(resources: Sequence[CompiledResource]) -> frozenset[str]:
    """The names of those whose objects may have values of Secrets: directly, or from one that does."""
    found: set[str] = set()
    for each in resources:
        if (group_of(each.api_version), each.kind) == ("", "Secret") or each.reads & found:
            found.add(each.name)
    return frozenset(found)


def copying_secrets(resources: Sequence[CompiledResource]) -> frozenset[str]:
    """The names of those whose expressions read values that may be of Secrets."""
    known = with_secrets(resources)
    return frozenset(each.name for each in resources if each.reads & known)


@dataclass(frozen=True, slots=True)
class Unverified:
    """A part of a Composition that is not checked, with the reason."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class CompilationResult:
    """The result for a Composition."""

    composition: CompiledComposition | None
    """None if there are problems of its own."""
    problems: Sequence[TemplateProblem]
    """All, because of which a Composition that is new is not valid."""
    own_problems: Sequence[TemplateProblem]
    """Those that it has whatever the schemas of its resources are."""
    target_problems: Mapping[str, Sequence[TemplateProblem]]
    """The others, by the names of resources; those of the status by an empty one. Empty if it has its own."""
    unverified: Sequence[Unverified]
    missing: frozenset[tuple[str, str]]
    """The apiVersions and kinds of resources of which nothing is known: they may not exist yet."""
