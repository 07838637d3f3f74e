"""Composition: the resources of composites of one kind, as templates with expressions.

`${…}` in a template is CEL. What the API server can check without the schemas of the templates' kinds is in
the CRD's rules; the rest is checked when a Composition is compiled.
"""

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, WithJsonSchema

from crdkeeper.api.meta import UNSEEN, ApiModel, Column, Condition, Kind, immutable, rules

_INT64: dict[str, Any] = {"format": "int64"}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
_MAP_BY_NAME: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}

MOST_TEMPLATES: Final = 100
"""The most resources of a Composition; with forEach, each can be several objects."""
MOST_CONDITIONS: Final = 16
MOST_DIMENSIONS: Final = 10

WORDS: Final = (
    *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let"),
    *("loop", "namespace", "null", "package", "return", "true", "var", "void", "while"),
)
"""The words of CEL, which cannot be identifiers (https://github.com/google/cel-spec/blob/master/doc/langdef.md)."""
TYPE_NAMES: Final = (
    *("bool", "bytes", "double", "int", "list", "map", "null_type", "optional_type", "string", "type"),
    "uint",
)
"""Identifiers that CEL itself defines: its types."""
VARIABLES: Final = ("composite", "each")
"""What expressions call the composite and, in conditions of a resource with forEach, one of its objects."""

_IDENTIFIER: Final = "^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$"
"""Identifiers of CEL that are also values of labels."""
_TAKEN: Final = f"[{', '.join(repr(each) for each in (*VARIABLES, *WORDS, *TYPE_NAMES))}]"


def _must(*validations: tuple[str, str]) -> dict[str, Any]:
    """CEL rules of a field, with their messages."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in validations]}


def _literal(field: str) -> tuple[str, str]:
    message = f"{field} cannot contain expressions: it decides which schema applies"
    return f"!self.{field}.contains('${{')", message


_MUST_BE_EXPRESSIONS = (
    "self.all(each, each.startsWith('${') && each.endsWith('}'))",
    "each condition must be one expression in ${…}",
)
_GROUP_AND_VERSION = (
    "self.split('/').size() == 2 && self.split('/').all(each, each != '')",
    "must be <group>/<version>, such as platform.example.com/v1",
)
_NAME_RULES = (
    (f"self.matches('{_IDENTIFIER}')", "must consist of letters, digits and _, and begin with a letter"),
    (f"!(self in {_TAKEN})", "composite, each, and the words and types of CEL are reserved"),
)

ResourceName = Annotated[str, Field(min_length=1, max_length=63, json_schema_extra=_must(*_NAME_RULES))]
ApiVersionText = Annotated[str, Field(min_length=1, max_length=317)]
KindText = Annotated[str, Field(min_length=1, max_length=63)]
Expression = Annotated[str, Field(min_length=1, max_length=8192)]
NameText = Annotated[str, Field(min_length=1, max_length=1024)]
"""A name, or text with expressions that gives one."""
Conditions = Annotated[
    list[Expression],
    Field(
        default_factory=list,
        max_length=MOST_CONDITIONS,
        json_schema_extra={**_ATOMIC, **_must(_MUST_BE_EXPRESSIONS)},
    ),
]
_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
Template = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "required": ["apiVersion", "kind", "metadata"],
            "properties": {
                "apiVersion": {**_TEXT, "maxLength": 317},
                "kind": {**_TEXT, "maxLength": 63},
                "metadata": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {**_TEXT, "maxLength": 1024}},
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            },
            "x-kubernetes-preserve-unknown-fields": True,
            **_must(_literal("apiVersion"), _literal("kind")),
        }
    ),
]
Mapping = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
]


class CompositeType(ApiModel):
    """A version and kind of composites."""

    api_version: Annotated[ApiVersionText, Field(json_schema_extra=_must(_GROUP_AND_VERSION))]
    """Group and version, such as platform.example.com/v1. It can be any served version. Expressions
    see the composite at this version."""
    kind: KindText
    """The kind, such as Database."""


class ExternalReference(ApiModel):
    """An object that the composite does not own and that expressions can read."""

    model_config = rules(_literal("apiVersion"), _literal("kind"))

    api_version: ApiVersionText
    kind: KindText
    name: NameText
    """The object's name, which can contain expressions."""
    namespace: NameText | None = None
    """The object's namespace. If unset, that of the composite. Expressions are allowed only with
    serviceAccountName."""


class ResourceFields(ApiModel):
    """The fields of a resource besides its template."""

    include_when: Conditions
    """The resource exists only while all of these expressions are true."""
    for_each: Annotated[
        list[Annotated[dict[str, Expression], Field(min_length=1, max_length=1)]],
        Field(default_factory=list, max_length=MOST_DIMENSIONS, json_schema_extra=_ATOMIC),
    ]
    """Makes an object for each item of a list: {schedule: "${composite.spec.schedules}"} makes one for each
    schedule, which expressions call schedule. With several lists, makes one for each combination."""
    ready_when: Conditions
    """The resource is ready once all of these expressions are true. If unset, once kstatus says so."""
    external_ref: ExternalReference | None = None
    """An object that is only read."""
    conflicts: Literal["Refuse", "Force"] = "Refuse"
    """What to do about fields that another client owns. Refuse reports a conflict. Force takes them over."""
    deletion: Literal["Delete", "Orphan"] = "Delete"
    """What happens to the object when the composite no longer has it. Orphan keeps it."""
    recreate: bool = False
    """Whether the object may be deleted and created again if an immutable field changes."""


def _of_each_variable(holds: str) -> str:
    """A rule about each variable of forEach, `name`, in its entry `each`."""
    return f"!has(self.forEach) || self.forEach.all(each, each.all(name, {holds}))"


_RESOURCE_RULES = (
    ("has(self.template) != has(self.externalRef)", "set either template or externalRef"),
    (
        "!has(self.externalRef) || self.conflicts == 'Refuse' && self.deletion == 'Delete' && !self.recreate",
        "an externalRef is only read: conflicts, deletion and recreate do not apply",
    ),
    (
        "!self.recreate || self.deletion != 'Orphan'",
        "recreate deletes the object, which deletion: Orphan forbids: set only one of them",
    ),
    (
        _of_each_variable(f"name.matches('{_IDENTIFIER}') && !(name in {_TAKEN})"),
        "variables of forEach must consist of letters, digits and _, and begin with a letter; composite, "
        "each, and the words and types of CEL are reserved",
    ),
    (
        _of_each_variable("each[name].startsWith('${') && each[name].endsWith('}')"),
        "each list of forEach must be one expression in ${…}",
    ),
    (
        _of_each_variable("self.forEach.exists_one(other, name in other)"),
        "each variable of forEach needs a name of its own",
    ),
)


class CompositionResource(ResourceFields):
    """An object of the composite, or one that it reads."""

    model_config = rules(*_RESOURCE_RULES)

    name: ResourceName
    """The name by which expressions of other resources refer to it."""
    template: Template | None = None
    """The object, with expressions in ${…}. A string that is one expression takes the type of its value; in
    others, values become text. $${ stands for ${."""


class CompositionFields(ApiModel):
    """The fields of a Composition besides its resources and status."""

    composite_type_ref: Annotated[CompositeType, Field(json_schema_extra=immutable("compositeTypeRef"))]
    """The composites that can use it."""
    service_account_name: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=253,
                pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            ),
        ]
        | None
    ) = None
    """The ServiceAccount, in the composite's namespace, whose permissions apply to the resources. If unset,
    those of the composer apply."""
    service_account_namespace: (
        Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] | None
    ) = None
    """The namespace of the ServiceAccount if composites are cluster-scoped."""
    revision_history_limit: Annotated[int, Field(ge=0, le=1000)] = 10
    """How many CompositionRevisions to keep besides those in use."""


class CompositionSpec(CompositionFields):
    """The resources of a composite."""

    model_config = rules(
        (
            # `namespace` is a word of CEL: a field of this name is escaped.
            "self.resources.all(each, !has(each.externalRef) || !has(each.externalRef.__namespace__) || "
            "!each.externalRef.__namespace__.contains('${') || has(self.serviceAccountName))",
            "an expression in externalRef.namespace needs serviceAccountName: otherwise whoever writes "
            "composites could read other namespaces with the composer's permissions",
        ),
        (
            "!has(self.serviceAccountNamespace) || has(self.serviceAccountName)",
            "serviceAccountNamespace needs serviceAccountName",
        ),
        (
            # With `in`, which costs 1 whatever the length of the key.
            "self.resources.all(other, self.resources.all(each, !has(each.forEach) || "
            "each.forEach.all(variable, !(other.name in variable))))",
            "a variable of forEach must not have the name of a resource",
        ),
    )

    resources: Annotated[
        list[CompositionResource],
        Field(min_length=1, max_length=MOST_TEMPLATES, json_schema_extra=_MAP_BY_NAME),
    ]
    """The resources. Their references to each other determine the order of their creation."""
    status: Mapping | None = None
    """Fields of the composite's status, with expressions as in templates."""


class CompositionStatus(ApiModel):
    """The state of the newest spec."""

    observed_generation: Annotated[int, Field(json_schema_extra=_INT64)] = UNSEEN
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    revision: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """The highest number of a CompositionRevision so far, also if that is deleted. 0 if there was none."""


def _ready(path: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{path}'


class Composition(Kind):
    """Describes the resources of composites of one kind."""

    plural: ClassVar[str] = "compositions"
    short_names: ClassVar[tuple[str, ...]] = ("comp",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="Composite", type="string", json_path=".spec.compositeTypeRef.kind"),
        Column(name="Version", type="string", json_path=".spec.compositeTypeRef.apiVersion", priority=1),
        Column(name="Ready", type="string", json_path=_ready("status")),
        Column(name="Reason", type="string", json_path=_ready("reason")),
        Column(name="Revision", type="integer", json_path=".status.revision"),
        Column(name="Message", type="string", json_path=_ready("message"), priority=1),
        Column(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    )

    kind: Literal["Composition"] = "Composition"
    spec: CompositionSpec
    status: Annotated[CompositionStatus, Field(default_factory=CompositionStatus)]
