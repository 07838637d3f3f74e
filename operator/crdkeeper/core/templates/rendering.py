"""Renders a compiled Composition for one composite: always the same for the same objects.

What expressions see of a resource is the object in the cluster. If there is none yet, it is the one that is
rendered, so that what a template sets itself is known before the object exists. But what decides whether
objects are there, includeWhen and forEach, waits for those that exist: otherwise the loss of one object would
remove others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
from crdkeeper.core.templates.compiled import CompiledComposition, CompiledResource
from crdkeeper.core.templates.environment import (
    COMPOSITE,
    EACH,
    Environment,
    Excluded,
    NotYet,
    NoValue,
)
from crdkeeper.core.templates.expression import TemplateExpression, no_value
from crdkeeper.core.templates.namespaces import Identity, placed
from crdkeeper.core.templates.observed import Observed
from crdkeeper.core.templates.rendered import (
    ObjectReadiness,
    ReadinessState,
    RenderedObject,
    RenderedResource,
    Rendering,
    ResourceState,
)
from crdkeeper.core.templates.sizes import SizeExceeded
from crdkeeper.core.templates.statusgap import StatusGap, StatusGapKind
from crdkeeper.core.templates.template import why

MOST_OBJECTS: Final = 1_000
"""Of one composite: its status lists all of them."""


def render(composition: CompiledComposition, composite: Mapping[str, Any], observed: Observed) -> Rendering:
    """The objects of a composite, which is at the version of compositeTypeRef, by the objects that exist.

    Evaluations and sizes are limited in total, so that no composite takes long. Raises ValueError for a
    composite of another kind or version, which expressions would read by the wrong schema.
    """
    found = composite.get("apiVersion"), composite.get("kind")
    if found != (composition.api_version, composition.kind):
        raise ValueError(f"the Composition is for {composition.kind} at {composition.api_version}")
    return _Rendering(composition, composite, observed).result()


class _Rendering:
    def __init__(
        self, composition: CompiledComposition, composite: Mapping[str, Any], observed: Observed
    ) -> None:
        self._composition = composition
        self._observed = observed
        self._namespace = composite["metadata"].get("namespace") if composition.namespaced else None
        self._waves = {name: at for at, wave in enumerate(composition.waves) for name in wave}
        self._environment = Environment()
        self._environment.resources = {each.name for each in composition.resources}
        self._environment.values[COMPOSITE] = composition.composite.convert(composite)
        self._owners: dict[Identity, str] = {}
        """Which resource renders an object."""
        self._disputed: set[Identity] = set()
        self._number = 0
        """How many objects are rendered or read."""

    def result(self) -> Rendering:
        found = []
        for resource in self._composition.resources:
            try:
                made = self._resource(resource)
            except (NotYet, Excluded, NoValue) as error:
                made = self._without(resource, error)
            self._remember(resource, made)
            found.append(made)
        for resource in self._composition.resources:
            self._show_waiting(resource)
        status, gaps = self._status()
        return Rendering(found, status, gaps, frozenset(self._disputed))

    def _remember(self, resource: CompiledResource, made: RenderedResource) -> None:
        """Make the resource known to those that refer to it."""
        environment = self._environment
        name = resource.name
        if made.state is ResourceState.EXCLUDED:
            environment.excluded.add(name)
            environment.values[name] = [] if resource.collection else BoundMap({}, _no_field, None)
            return
        if made.state not in (ResourceState.RENDERED, ResourceState.READ):
            failed = made.state is ResourceState.FAILED
            environment.waiting[name] = f"{name}, which has an error" if failed else name
            return
        seen: list[Any] = []
        for each in made.objects:
            try:
                there = self._there(resource, each.identity)
            except NotYet as error:
                environment.waiting[name] = error.what
                return
            if there is None:
                environment.absent.setdefault(name, str(each.identity))
            seen.append(each.value if there is None else there)
        self._show(resource, seen if resource.collection else seen[0])

    def _show(self, resource: CompiledResource, data: Any) -> None:
        self._environment.values[resource.name] = resource.variable.convert(data)

    def _show_waiting(self, resource: CompiledResource) -> None:
        """Let the status see an object that exists although nothing can be rendered for it now."""
        if resource.name not in self._environment.waiting or resource.collection:
            return
        there = self._observed.only_own(resource.name)
        if there is not None and there.get("apiVersion") == resource.api_version:
            del self._environment.waiting[resource.name]
            self._show(resource, there)

    def _there(self, resource: CompiledResource, identity: Identity) -> Mapping[str, Any] | None:
        """The object, if it exists. Raises NotYet if that is not known, or if it has another version."""
        observed = self._observed
        if resource.external:
            there = observed.external.get(identity)
        else:
            there = observed.find_own(resource.name, identity)
        if there is None:
            if (identity.group, identity.kind) in observed.unknown or identity in observed.unread:
                raise NotYet(f"{identity}, which cannot be read", resource.path)
        elif there.get("apiVersion") != resource.api_version:
            raise NotYet(f"{identity} at {resource.api_version}", resource.path)
        return there

    def _resource(self, resource: CompiledResource) -> RenderedResource:
        held = resource.problem
        if held is not None:
            raise NoValue(held.path, held.column, held.message, held.hint)
        excluded = self._condition_against(resource)
        if excluded is not None:
            return excluded
        for name in sorted(resource.required & self._environment.excluded):
            raise Excluded(name)
        for absent in (self._environment.waiting, self._environment.unready):
            for name in sorted(resource.needs & absent.keys()):
                raise NotYet(absent[name], resource.path)
        objects: list[RenderedObject] = []
        for variables in self._items(resource):
            self._environment.with_variables(variables)
            try:
                objects.append(self._object(resource))
            finally:
                self._environment.without_variables(variables)
        if resource.external:
            for each in objects:
                try:
                    there = self._there(resource, each.identity)
                except NotYet as error:
                    return self._made(resource, ResourceState.WAITING, objects, error.what)
                if there is None:
                    return self._made(resource, ResourceState.WAITING, objects, str(each.identity))
        objects = [replace(each, readiness=self._readiness(resource, each.identity)) for each in objects]
        state = ResourceState.READ if resource.external else ResourceState.RENDERED
        made = self._made(resource, state, objects)
        if made.unready is not None:
            self._environment.unready[resource.name] = f"{resource.name} to be ready: {made.unready}"
        return made

    def _made(
        self,
        resource: CompiledResource,
        state: ResourceState,
        objects: Sequence[RenderedObject] = (),
        reason: str = "",
        hint: str = "",
        at: tuple[Path, int | None] | None = None,
    ) -> RenderedResource:
        path, column = at if at is not None else (resource.path, None)
        wave = self._waves[resource.name]
        return RenderedResource(
            resource.name, resource.api_version, state, wave, objects, path, column, reason, hint
        )

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
                return self._without(resource, error)
            else:
                state, reason = ResourceState.EXCLUDED, "includeWhen is false"
            made = self._made(resource, state, (), reason, at=(each.path, each.column))
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
        if self._number + number > MOST_OBJECTS:
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
            raise no_value(expression.path, expression.column, str(error)) from None

    def _object(self, resource: CompiledResource) -> RenderedObject:
        self._environment.begin_object()
        at = resource.path.child("externalRef" if resource.external else "template")
        value, identity = placed(
            resource.make(self._environment),
            at if resource.external else at.child("metadata"),
            resource.target,
            self._namespace,
            foreign=resource.external,
        )
        self._number += 1
        if resource.external:
            return RenderedObject(identity, None)
        owner = self._owners.get(identity)
        if owner is not None:
            self._disputed.add(identity)
            what = "two of its items are" if owner == resource.name else f"{owner} is also"
            hint = "Give each a name of its own" + (
                ", with the variables of forEach." if resource.for_each else "."
            )
            raise NoValue(at.child("metadata").child("name"), None, f"{what} {identity}", hint)
        self._owners[identity] = resource.name
        try:
            self._environment.spend_object(value)
        except SizeExceeded as error:
            raise NoValue(at, None, str(error), "Split the object.") from None
        return RenderedObject(identity, value)

    def _readiness(self, resource: CompiledResource, identity: Identity) -> ObjectReadiness | None:
        """Whether readyWhen holds for an object of the resource; None if there is none."""
        if not resource.ready_when:
            return None
        try:
            there = self._there(resource, identity)
        except NotYet:
            return ObjectReadiness(ReadinessState.UNKNOWN, f"{identity} cannot be read")
        if there is None:
            return ObjectReadiness(ReadinessState.ABSENT, f"{identity} does not exist yet")
        environment = self._environment
        variable = EACH if resource.collection else resource.name
        values = {variable: resource.one.convert(there)}
        environment.with_variables(values)
        try:
            for i, each in enumerate(resource.ready_when):
                if not self._holds(each):
                    message = f"readyWhen[{i}] is false for {identity}"
                    return ObjectReadiness(ReadinessState.NOT_READY, message)
        except NotYet as error:
            return ObjectReadiness(ReadinessState.NOT_READY, f"{identity} {why(error)}")
        except (NoValue, Excluded) as error:
            return ObjectReadiness(ReadinessState.FAILED, why(error))
        finally:
            environment.without_variables(values)
        return ObjectReadiness(ReadinessState.READY)

    def _status(self) -> tuple[dict[str, Any], Sequence[StatusGap]]:
        if self._composition.status is None:
            return {}, ()
        environment = self._environment
        gaps: list[StatusGap] = []
        environment.gaps = gaps
        environment.begin_object()
        try:
            made = self._composition.status(environment)
            environment.spend_object(made)
        except SizeExceeded as error:
            path = root("spec").child("status")
            return {}, [StatusGap(path, StatusGapKind.FAILED, str(error))]
        return made, gaps

    def _without(self, resource: CompiledResource, error: NotYet | Excluded | NoValue) -> RenderedResource:
        """The result for a resource that has no objects."""
        if isinstance(error, NoValue):
            at = error.path, error.column
            return self._made(resource, ResourceState.FAILED, (), error.message, error.hint, at)
        if isinstance(error, Excluded):
            reason = f"it refers to {error.name}, which is excluded"
            return self._made(resource, ResourceState.EXCLUDED, (), reason)
        path = error.path if error.path.steps else resource.path
        return self._made(resource, ResourceState.WAITING, (), error.what, at=(path, None))


def _no_field(_: str) -> None:
    return None
