"""Compiles a Composition: types, references and their order, before there is any composite."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from crdkeeper.api.composition import CompositionResource, CompositionSpec
from crdkeeper.api.compositionrevision import CompositionRevisionSpec, RevisionResource
from crdkeeper.apiserver.cel.expressions import unwrap_optional
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.composition.injected import STATUS_FIELDS
from crdkeeper.core.templates.compiled import (
    CompilationResult,
    CompiledComposition,
    CompiledResource,
    Unverified,
)
from crdkeeper.core.templates.environment import COMPOSITE, EACH, Environment
from crdkeeper.core.templates.expression import ExpressionAllowance, TemplateExpression, TemplateScope
from crdkeeper.core.templates.graph import cycle, waves
from crdkeeper.core.templates.kinds import KnownKinds, TargetKind, find_kind, group_of, not_composed
from crdkeeper.core.templates.namespaces import check_account, check_namespace
from crdkeeper.core.templates.problem import MOST_PROBLEMS, Problems, TemplateProblem
from crdkeeper.core.templates.statusgap import StatusGap, StatusGapKind
from crdkeeper.core.templates.template import OPEN, Make, TemplateCompiler, field_of
from crdkeeper.core.templates.variables import TemplateVariable, of_list, of_object

_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "namespace": _TEXT,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": _TEXT},
    },
}
"""What a template can set of metadata: the rest belongs to the API server, or to the composer."""


_NAMES: Final = ("name", "namespace", "uid", "labels")
_IDENTITY: Final[tuple[tuple[str, ...], ...]] = (
    ("apiVersion",),
    ("kind",),
    *(("metadata", each) for each in _NAMES),
)
"""What is no value of a Secret. An annotation may be a copy of all of it, as `kubectl apply` writes it."""


def compile_composition(
    spec: CompositionSpec | CompositionRevisionSpec, composite: TargetKind, kinds: KnownKinds
) -> CompilationResult:
    """Compile the spec of a Composition, which its CRD admits, for composites of a kind.

    A problem is the Composition's own if it is there whatever the schemas of the resources' kinds say. With
    others, which a change of such a schema can cause, the Composition compiles without the resources that
    have them.
    """
    checked = _Compilation(spec, composite, kinds)
    found = checked.problems
    if not found:
        return checked.result(checked.composition())
    if len(found) >= MOST_PROBLEMS:
        # There may be more than are known, in any resource.
        return checked.result(None, found)
    open_kinds = {key: TargetKind(None, each.namespaced) for key, each in kinds.items()}
    unchecked = _Compilation(spec, composite, open_kinds)
    own = unchecked.problems
    if own:
        return checked.result(None, own)
    held: dict[str, list[TemplateProblem]] = {}
    for each in found:
        held.setdefault(checked.resource_of(each), []).append(each)
    return checked.result(_holding(unchecked.composition(), checked, held), (), held)


def kinds_in(spec: CompositionSpec | CompositionRevisionSpec) -> frozenset[tuple[str, str]]:
    """The apiVersions and kinds of the resources."""
    resources: Sequence[CompositionResource | RevisionResource] = spec.resources
    return frozenset(_kind(each)[:2] for each in resources)


class _Compilation:
    """Compiles the resources and the status when it is made."""

    def __init__(
        self, spec: CompositionSpec | CompositionRevisionSpec, composite: TargetKind, kinds: KnownKinds
    ) -> None:
        self._spec = spec
        self._kinds = kinds
        self._schema = composite.schema if composite.schema is not None else OPEN
        self._namespaced = composite.namespaced is not False
        self._composite = of_object(COMPOSITE, composite.schema)
        self._problems = Problems()
        self._allowance = ExpressionAllowance()
        self._unverified: list[Unverified] = []
        self._targets: dict[str, TargetKind] = {}
        self._versions: dict[tuple[str, str], tuple[str, str]] = {}
        """By group and kind: the first resource, and its apiVersion."""
        self._single: dict[str, TemplateVariable] = {}
        self._variables: dict[str, TemplateVariable] = {COMPOSITE: self._composite}
        resources: Sequence[CompositionResource | RevisionResource] = spec.resources
        self._resources = resources
        at = root("spec").child("resources")
        for i, each in enumerate(resources):
            self._declare(each, at.index(i))
        self.made = {each.name: self._resource(each, at.index(i)) for i, each in enumerate(resources)}
        self._needs = {name: each.needs for name, each in self.made.items()}
        around = cycle(self._needs)
        if around is not None:
            message = f"the resources refer to each other in a circle: {' → '.join(around)}"
            hint = "Take the value from the composite instead."
            self._problems.add(self.made[around[0]].path, message, hint)
        self.status = self._mapping()
        check_account(
            spec.service_account_name, spec.service_account_namespace, composite.namespaced, self._problems
        )

    @property
    def problems(self) -> Sequence[TemplateProblem]:
        """Those that were found."""
        return self._problems.found

    def resource_of(self, problem: TemplateProblem) -> str:
        """The name of the resource that has a problem; empty if it is in the status."""
        steps = problem.path.steps
        if steps[1] != "resources" or not isinstance(steps[2], int):
            return ""
        return self._resources[steps[2]].name

    def composition(self) -> CompiledComposition:
        """The Composition, if there are no problems."""
        order = waves(self._needs)
        reference = self._spec.composite_type_ref
        return CompiledComposition(
            reference.api_version,
            reference.kind,
            tuple(self.made[name] for wave in order for name in wave),
            order,
            self._composite,
            self._namespaced,
            self.status,
        )

    def result(
        self,
        composition: CompiledComposition | None,
        own: Sequence[TemplateProblem] = (),
        held: Mapping[str, Sequence[TemplateProblem]] | None = None,
    ) -> CompilationResult:
        """The result with the problems that are the Composition's own, and those of resources."""
        known = {(str(each.path), each.column) for each in self.problems}
        more = [each for each in own if (str(each.path), each.column) not in known]
        missing = kinds_in(self._spec) - self._kinds.keys()
        problems = [*self.problems, *more]
        return CompilationResult(composition, problems, own, held or {}, self._unverified, missing)

    def _declare(self, resource: CompositionResource | RevisionResource, at: Path) -> None:
        api_version, kind, within = _kind(resource)
        first, version = self._versions.setdefault(
            (group_of(api_version), kind), (resource.name, api_version)
        )
        if version != api_version:
            # Objects are read and written by the version of their kind.
            message = f"{kind} is of {api_version} here, but of {version} in {first}"
            self._problems.add(at.child(within).child("apiVersion"), message, "Use one version of a kind.")
        target = self._targets[resource.name] = find_kind(self._kinds, api_version, kind)
        if target.schema is None:
            reason = f"no schema of {kind} ({api_version}) is given"
            self._unverified.append(Unverified(at.child(within), reason))
        one = self._single[resource.name] = of_object(resource.name, target.schema)
        self._variables[resource.name] = of_list(one) if resource.for_each else one

    def _compiler(
        self, variables: Mapping[str, TemplateVariable], because: str = "", *, decides: bool = False
    ) -> TemplateCompiler:
        hidden = frozenset(self._variables.keys() - variables.keys())
        scope = TemplateScope(variables, hidden, because, decides)
        return TemplateCompiler(scope, self._allowance, self._problems)

    def _resource(self, resource: CompositionResource | RevisionResource, at: Path) -> CompiledResource:
        name = resource.name
        others = {key: each for key, each in self._variables.items() if key != name}
        itself = f"A resource can refer to itself only in readyWhen: {name} does not exist before."
        conditions = self._compiler(others, itself, decides=True)
        include = self._conditions(conditions, resource.include_when, at.child("includeWhen"))
        lists = self._compiler(others, itself, decides=True)
        for_each: list[tuple[str, TemplateExpression]] = []
        items: dict[str, TemplateVariable] = {}
        for i, each in enumerate(resource.for_each):
            for variable, text in each.items():
                made = self._list(lists, text, at.child("forEach").index(i).child(variable))
                if made is not None:
                    for_each.append((variable, made[0]))
                    items[variable] = made[1]
        names = self._compiler({**others, **items}, itself, decides=True)
        template = self._compiler({**others, **items}, itself)
        make = self._template(template, names, resource, at)
        read = [*lists.expressions, *names.expressions, *template.expressions]
        own = {COMPOSITE: self._composite, EACH if resource.for_each else name: self._single[name]}
        ready = self._conditions(
            self._compiler(own, f"readyWhen can use {' and '.join(own)} only."),
            resource.ready_when,
            at.child("readyWhen"),
        )
        api_version, kind, _ = _kind(resource)
        return CompiledResource(
            name,
            at,
            api_version,
            kind,
            self._targets[name],
            resource.external_ref is not None,
            make,
            self._variables[name],
            self._single[name],
            include,
            tuple(for_each),
            ready,
            self._names([*conditions.expressions, *read], name),
            self._names(read, name, required=True),
            resource.conflicts,
            resource.deletion,
            resource.recreate,
            reads=self._names(read, name, beyond=_IDENTITY),
        )

    def _names(
        self,
        expressions: Sequence[TemplateExpression],
        own: str,
        *,
        required: bool = False,
        beyond: Collection[tuple[str, ...]] = (),
    ) -> frozenset[str]:
        return frozenset(
            each.name
            for expression in expressions
            for each in expression.readings
            if each.name in self._single
            and each.name != own
            and not (required and each.optional)
            and not any(each.fields[: len(some)] == some for some in beyond)
        )

    def _conditions(
        self, compiler: TemplateCompiler, texts: Sequence[str], at: Path
    ) -> tuple[TemplateExpression, ...]:
        found = []
        for i, text in enumerate(texts):
            made = compiler.expression(text, at.index(i))
            if made is not None and made.type.kind not in ("bool", "dyn", "any"):
                message = f"gives a value of type {made.type.text}, but a condition is true or false"
                inner, optional = unwrap_optional(made.type)
                hint = "Compare the value with something."
                if optional:
                    hint = (
                        "Append .orValue(false)." if inner.kind == "bool" else f"Append .orValue(…). {hint}"
                    )
                self._problems.add(at.index(i), message, hint, made.column)
            if made is not None:
                found.append(made)
        return tuple(found)

    def _list(
        self, compiler: TemplateCompiler, text: str, at: Path
    ) -> tuple[TemplateExpression, TemplateVariable] | None:
        made = compiler.expression(text, at)
        if made is None:
            return None
        type_, _ = unwrap_optional(made.type)
        if type_.kind == "list":
            return made, TemplateVariable(type_.parameters[0], None, _itself)
        if type_.kind in ("dyn", "any"):
            return made, TemplateVariable(type_, None, _itself)
        message = f"gives a value of type {type_.text}, but forEach needs a list"
        self._problems.add(at, message, "Of a map, .map(key, key) makes the list of its keys.", made.column)
        return None

    def _template(
        self,
        compiler: TemplateCompiler,
        names: TemplateCompiler,
        resource: CompositionResource | RevisionResource,
        at: Path,
    ) -> Make:
        """The function for the object of a resource; `names` compiles what identifies it."""
        target = self._targets[resource.name]
        reference = resource.external_ref
        if reference is not None:
            at = at.child("externalRef")
            metadata = {"name": reference.name}
            if reference.namespace is not None:
                metadata["namespace"] = reference.namespace
            if target.namespaced is False and reference.namespace is not None:
                self._problems.add(at.child("namespace"), f"{reference.kind} is cluster-scoped", "Remove it.")
            elif target.namespaced and reference.namespace is None and not self._namespaced:
                message = f"{reference.kind} needs a namespace, and composites have none"
                self._problems.add(at, message, "Set externalRef.namespace.")
            fields = {key: compiler.compile(each, _TEXT, at.child(key)) for key, each in metadata.items()}
            constant = {"apiVersion": reference.api_version, "kind": reference.kind}
            return lambda environment: {
                **constant,
                "metadata": {key: each(environment) for key, each in fields.items()},
            }
        at = at.child("template")
        template: Any = resource.template
        if not isinstance(template, dict) or not isinstance(template.get("metadata"), dict):
            self._problems.add(at, "must be an object with apiVersion, kind and metadata")
            return lambda _: None
        refused = not_composed(*_kind(resource)[:2], self._spec.composite_type_ref)
        if refused is not None:
            self._problems.add(at.child("kind"), *refused)
        check_namespace(
            template,
            at.child("metadata"),
            target,
            composite_in_namespace=self._namespaced,
            problems=self._problems,
        )
        metadata = template["metadata"]
        identity = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
        rest = {key: each for key, each in metadata.items() if key not in identity}
        identify = names.compile(identity, _METADATA, at.child("metadata"))
        make = compiler.compile({**template, "metadata": rest}, _to_apply(target.schema), at)

        def made(environment: Environment) -> Any:
            named = identify(environment)
            value = make(environment)
            return {**value, "metadata": {**named, **value["metadata"]}}

        return made

    def _mapping(self) -> Make | None:
        if self._spec.status is None:
            return None
        at = root("spec").child("status")
        if not isinstance(self._spec.status, dict):
            self._problems.add(at, "must be an object")
            return None
        for name in STATUS_FIELDS:
            if name in self._spec.status:
                self._problems.add(at.child(name), "crdkeeper itself writes this field", "Remove it.")
        schema = field_of(self._schema, "status")
        return self._compiler(self._variables).compile(self._spec.status, schema or OPEN, at)


def _kind(resource: CompositionResource | RevisionResource) -> tuple[str, str, str]:
    """The apiVersion, the kind, and the field that has them."""
    if resource.external_ref is not None:
        return resource.external_ref.api_version, resource.external_ref.kind, "externalRef"
    template: Any = resource.template
    found = template if isinstance(template, dict) else {}
    return str(found.get("apiVersion", "")), str(found.get("kind", "")), "template"


def _to_apply(schema: Schema | None) -> Schema:
    """The schema of a template for objects of a schema."""
    base: Schema = schema if schema is not None else OPEN
    properties = {**(base.get("properties") or {}), "apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}
    return {**base, "type": "object", "properties": properties}


def _holding(
    unchecked: CompiledComposition, checked: _Compilation, held: Mapping[str, Sequence[TemplateProblem]]
) -> CompiledComposition:
    """The Composition as it was checked, without the resources that do not compile then."""
    resources = []
    for each in unchecked.resources:
        typed = checked.made[each.name]
        if each.name in held:
            problem = held[each.name][0]
            typed = replace(
                each, target=typed.target, variable=typed.variable, one=typed.one, problem=problem
            )
        resources.append(typed)
    status = _failing(held[""][0]) if "" in held else checked.status
    return replace(unchecked, resources=tuple(resources), status=status)


def _failing(problem: TemplateProblem) -> Make:
    """The function for a status that does not compile: it is a gap as a whole."""

    def make(environment: Environment) -> Any:
        if environment.gaps is not None:
            at = root("spec").child("status")
            environment.gaps.append(StatusGap(at, StatusGapKind.FAILED, f"{problem}"))
        return {}

    return make


def _itself(value: Any) -> Any:
    return value
