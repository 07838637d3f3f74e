"""Renders a compiled Composition for one composite: always the same for the same objects.

What expressions see of a resource is the object in the cluster. If there is none yet, it is the one that is
rendered, so that what a template sets itself is known before the object exists.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final

from crdkeeper.apiserver.cel.expressions import BoundMap
from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.values import (
    EvaluationError,
    Indeterminate,
    Value,
    elements_of,
    is_list,
    read,
)
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.core.conversion.expressions import essence
from crdkeeper.core.templates.compiled import CompiledComposition, CompiledResource
from crdkeeper.core.templates.environment import (
    COMPOSITE,
    EACH,
    Environment,
    Excluded,
    NotYet,
    NoValue,
)
from crdkeeper.core.templates.expression import TemplateExpression
from crdkeeper.core.templates.namespaces import Identity, placed
from crdkeeper.core.templates.rendered import RenderedResource, Rendering, ResourceState
from crdkeeper.core.templates.sizes import SizeExceeded
from crdkeeper.core.templates.template import why

MOST_OBJECTS: Final = 1_000
"""Of one composite: its status lists all of them."""


def render(
    composition: CompiledComposition,
    composite: Mapping[str, Any],
    observed: Mapping[Identity, Mapping[str, Any]],
) -> Rendering:
    """The objects of a composite, which is at the version of compositeTypeRef, by the objects that exist.

    Evaluations and sizes are limited in total, so that no Composition and no composite takes long.
    """
    return _Rendering(composition, composite, observed).result()


class _Rendering:
    def __init__(
        self,
        composition: CompiledComposition,
        composite: Mapping[str, Any],
        observed: Mapping[Identity, Mapping[str, Any]],
    ) -> None:
        self._composition = composition
        self._observed = observed
        self._namespace = composite["metadata"].get("namespace") if composition.namespaced else None
        self._environment = Environment()
        self._environment.resources = {each.name for each in composition.resources}
        self._environment.values[COMPOSITE] = composition.composite.convert(composite)
        self._environment.data[COMPOSITE] = composite
        self._owners: dict[Identity, str] = {}
        """Which resource renders an object."""

    def result(self) -> Rendering:
        found = []
        for resource in self._composition.resources:
            try:
                made = self._resource(resource)
            except (NotYet, Excluded, NoValue) as error:
                made = _without(resource, error)
            self._remember(resource, made)
            found.append(made)
        status, gaps = self._status()
        return Rendering(found, status, gaps)

    def _remember(self, resource: CompiledResource, made: RenderedResource) -> None:
        """Make the resource known to those that refer to it."""
        environment = self._environment
        name = resource.name
        if made.state in (ResourceState.RENDERED, ResourceState.READ):
            objects = [self._observed.get(key) for key in made.identities]
            seen = [made.objects[i] if there is None else there for i, there in enumerate(objects)]
            value: Any = seen if resource.collection else seen[0]
            environment.data[name] = value
            environment.values[name] = resource.variable.convert(value)
        elif made.state is ResourceState.EXCLUDED:
            environment.excluded.add(name)
            environment.values[name] = [] if resource.collection else BoundMap({}, _no_field, None)
        else:
            environment.waiting[name] = name

    def _resource(self, resource: CompiledResource) -> RenderedResource:
        excluded = self._condition_against(resource)
        if excluded is not None:
            return excluded
        for name in sorted(resource.required & self._environment.excluded):
            raise Excluded(name)
        for absent in (self._environment.waiting, self._environment.unready):
            for name in sorted(resource.needs & absent.keys()):
                raise NotYet(absent[name], resource.path)
        state = ResourceState.READ if resource.external else ResourceState.RENDERED
        made = RenderedResource(resource.name, state, path=resource.path)
        for variables in self._items(resource):
            self._environment.with_variables(variables)
            try:
                self._object(resource, made)
            finally:
                self._environment.without_variables(variables)
        if resource.external:
            (identity,) = made.identities
            if identity not in self._observed:
                raise NotYet(str(identity), resource.path)
            return made
        made.unready = self._unready(resource, made)
        if made.unready is not None:
            self._environment.unready[resource.name] = f"{resource.name} to be ready: {made.unready}"
        return made

    def _condition_against(self, resource: CompiledResource) -> RenderedResource | None:
        """The result if the resource is not included, or if that cannot be computed."""
        found: RenderedResource | None = None
        for each in resource.include_when:
            try:
                if self._holds(each):
                    continue
            except NotYet as error:
                state, reason = ResourceState.PENDING, error.what
            except NoValue as error:
                state, reason = ResourceState.FAILED, error.message
            except Excluded as error:
                return _without(resource, error)
            else:
                state, reason = ResourceState.EXCLUDED, "includeWhen is false"
            made = RenderedResource(resource.name, state, path=each.path, column=each.column, why=reason)
            if state is ResourceState.EXCLUDED:
                # Whatever the others say.
                return made
            found = found or made
        return found

    def _holds(self, condition: TemplateExpression) -> bool:
        value = condition.evaluate(self._environment)
        if type(value) is not bool:
            raise NoValue(condition.path, condition.column, "the condition is neither true nor false")
        return value

    def _items(self, resource: CompiledResource) -> Iterator[Mapping[str, Value]]:
        """The variables of each object: none, if there is no forEach."""
        lists = [self._elements(each) for _, each in resource.for_each]
        number = prod(map(len, lists))
        if len(self._owners) + number > MOST_OBJECTS:
            at = resource.for_each[0][1].path if resource.for_each else resource.path
            message = f"{number:,} objects: a composite has at most {MOST_OBJECTS:,} in total"
            raise NoValue(at, None, message, "Let lists be shorter, with maxItems in the schema.")
        for values in product(*lists):
            yield {name: value for (name, _), value in zip(resource.for_each, values, strict=True)}

    def _elements(self, expression: TemplateExpression) -> Sequence[Value]:
        value = expression.evaluate(self._environment)
        if type(value) is OptionalValue:
            value = [] if value is NONE else value.value
        if not is_list(value):
            raise NoValue(expression.path, expression.column, "the value is no list")
        try:
            return [read(each) for each in elements_of(value)]
        except (EvaluationError, Indeterminate) as error:
            raise NoValue(expression.path, expression.column, essence(str(error))) from None

    def _object(self, resource: CompiledResource, made: RenderedResource) -> None:
        self._environment.begin_object()
        at = resource.path.child("externalRef" if resource.external else "template")
        value, identity = placed(
            resource.make(self._environment),
            at if resource.external else at.child("metadata"),
            resource.target,
            self._namespace,
            foreign=resource.external,
        )
        made.identities.append(identity)
        if resource.external:
            return
        owner = self._owners.setdefault(identity, resource.name)
        if owner != resource.name or identity in made.identities[:-1]:
            what = "two of its items are" if owner == resource.name else f"{owner} is also"
            hint = "Give each a name of its own" + (
                ", with the variables of forEach." if resource.for_each else "."
            )
            raise NoValue(at.child("metadata").child("name"), None, f"{what} {identity}", hint)
        try:
            self._environment.spend_object(value)
        except SizeExceeded as error:
            raise NoValue(at, None, str(error), "Split the object.") from None
        made.objects.append(value)

    def _unready(self, resource: CompiledResource, made: RenderedResource) -> str | None:
        """Why readyWhen does not hold for an object of the resource; None if it does."""
        if not resource.ready_when:
            return None
        environment = self._environment
        variable = EACH if resource.collection else resource.name
        for identity in made.identities:
            there = self._observed.get(identity)
            if there is None:
                return f"{identity} does not exist yet"
            values = {variable: resource.one.convert(there)}
            environment.with_variables(values)
            environment.data[variable] = there
            try:
                for i, each in enumerate(resource.ready_when):
                    if not self._holds(each):
                        return f"readyWhen[{i}] is false for {identity}"
            except (NotYet, NoValue, Excluded) as error:
                return f"{identity} {why(error)}" if isinstance(error, NotYet) else why(error)
            finally:
                environment.without_variables(values)
        return None

    def _status(self) -> tuple[dict[str, Any], Sequence[tuple[Path, str]]]:
        if self._composition.status is None:
            return {}, ()
        environment = self._environment
        gaps: list[tuple[Path, str]] = []
        environment.gaps = gaps
        environment.begin_object()
        try:
            made = self._composition.status(environment)
            environment.spend_object(made)
        except SizeExceeded as error:
            return {}, [(root("spec").child("status"), str(error))]
        return made, gaps


def _without(resource: CompiledResource, error: NotYet | Excluded | NoValue) -> RenderedResource:
    """The result for a resource that has no objects."""
    if isinstance(error, NoValue):
        return RenderedResource(
            resource.name,
            ResourceState.FAILED,
            path=error.path,
            column=error.column,
            why=error.message,
            hint=error.hint,
        )
    if isinstance(error, Excluded):
        reason = f"it refers to {error.name}, which is excluded"
        return RenderedResource(resource.name, ResourceState.EXCLUDED, path=resource.path, why=reason)
    at = error.path if error.path.steps else resource.path
    return RenderedResource(resource.name, ResourceState.WAITING, path=at, why=error.what)


def _no_field(_: str) -> None:
    return None
