"""The conventions that a finding can name: id, how bad a breach is, why it matters, and what to do.

Most follow the Kubernetes API conventions
(https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md);
the others are traps that the API server sets by accepting what can't work.
"""

# Long because it is one table.

from dataclasses import dataclass

from crdkeeper.apiserver.schema.rules import Rule, all_rules
from crdkeeper.core.composition import problem
from crdkeeper.core.lint.severity import Severity


@dataclass(frozen=True, slots=True)
class Convention(Rule):
    """A rule that is not the API server's."""

    severity: Severity
    renames: bool = False
    """Whether it is followed by renaming a field, which a stable version's users would not survive."""

    def severity_in(self, *, stable: bool) -> Severity:
        """How bad a breach is in a version that may still change, or may not."""
        return Severity.INFO if stable and self.renames else self.severity


_ALL: dict[str, Convention] = {}


def all_conventions() -> tuple[Convention, ...]:
    """Every convention, by id."""
    return tuple(_ALL[id] for id in sorted(_ALL))


def _make(severity: Severity, id: str, why: str, remedy: str, *, renames: bool = False) -> Convention:
    made = Convention(id, why, remedy, severity, renames)
    assert id not in _ALL, id
    _ALL[id] = made
    return made


def _error(id: str, why: str, remedy: str) -> Convention:
    return _make(Severity.ERROR, id, why, remedy)


def _warning(id: str, why: str, remedy: str, *, renames: bool = False) -> Convention:
    return _make(Severity.WARNING, id, why, remedy, renames=renames)


def _info(id: str, why: str, remedy: str) -> Convention:
    return _make(Severity.INFO, id, why, remedy)


# Names, versions and the definition as a whole

RESOURCE_NAMES = _warning(
    "resource-names",
    "Tools derive one name of a resource from the other, and people guess them.",
    "Use UpperCamelCase for kind, its lowercase plural without '-' for plural, its lowercase for "
    "singular, and kind with the suffix List for listKind.",
)
SHORT_NAME = _warning(
    "short-name",
    "kubectl resolves the name to the built-in resource that has it, never to this one.",
    "Choose another short name, or prefix it.",
)
NAMES_CONFLICT = _error(
    "names-conflict",
    "If two CRDs in a group claim the same name, the second never becomes established (NamesAccepted=False).",
    "Give one of them another name.",
)
CATEGORY_ALL = _warning(
    "category-all",
    "`kubectl delete all --all` also deletes these objects.",
    "Remove `all` from spec.names.categories. Use your own category.",
)
VERSION_STYLE = _warning(
    "version-style",
    "Clients prefer v2 to v1 and v1 to v1beta1. Versions in any other form sort alphabetically after these.",
    "Name versions v1, v1beta1 or v1alpha1.",
)
STORAGE_STABILITY = _info(
    "storage-stability",
    "Objects stored at an alpha or beta version must be migrated before that version can be removed.",
    "Mark the stable version with storage: true, then migrate the objects (crdkeeper migrate).",
)
STORAGE_DEPRECATED = _warning(
    "storage-deprecated",
    "New objects are stored at a version that is about to be removed.",
    "Mark the version that replaces it with storage: true, then migrate the objects (crdkeeper migrate).",
)
DEPRECATION_TEXT = _warning(
    "deprecation-text",
    "No newer version is served without being deprecated, so the automatic warning does not say what to "
    "use instead.",
    "Set deprecationWarning to a sentence that says what to use instead, and by when.",
)
CONVERSION_LOSS = _warning(
    "conversion-loss",
    "With conversion strategy None, only apiVersion changes. A field that the other version lacks is "
    "pruned without an error.",
    "Add the field to both versions, or convert with a webhook. The severity is info if the versions "
    "differ in both directions and the file does not mention conversion, because another tool "
    "probably adds the webhook.",
)
CONVERSION_CA = _info(
    "conversion-ca",
    "Without caBundle, the API server trusts only public authorities, which do not sign certificates "
    "for services in a cluster.",
    "Set caBundle, or let cert-manager set it (annotation cert-manager.io/inject-ca-from). For a CRD "
    "in a cluster, a missing caBundle is a warning.",
)
STATUS_IN_MANIFEST = _warning(
    "status-in-manifest",
    "The API server owns status. In a manifest, it is ignored at best, and GitOps tools report a "
    "permanent difference.",
    "Remove status from the file.",
)
APPLY_SIZE = _warning(
    "apply-size",
    "kubectl apply keeps a copy of the object in an annotation, and annotations hold 256 KiB at most.",
    "Use `kubectl apply --server-side`, and tell users to do so. Or shorten the CRD: descriptions, "
    "embedded pod templates, old versions.",
)
DEFINITION_SIZE = _warning(
    "definition-size",
    "etcd accepts at most 1.5 MiB per request.",
    "Shorten the CRD: remove versions that are no longer served, descriptions, and embedded pod templates.",
)

# Subresources and columns

STATUS_SUBRESOURCE = _warning(
    "status-subresource",
    "Without the subresource, each write of status increments metadata.generation, and everyone who "
    "can write spec can write status.",
    "Add `subresources: {status: {}}` to the version.",
)
STATUS_SCHEMA = _info(
    "status-schema",
    "A field that the schema does not declare is pruned, so everything that a controller writes to "
    "status is lost.",
    "Add properties.status to the schema, or remove the subresource.",
)
STATUS_REQUIRED = _error(
    "status-required",
    "On creation, the API server drops status and then requires it, so no object can be created.",
    "Remove `status` from `required` at the root.",
)
CONDITIONS_LIST = _warning(
    "conditions-list",
    "Unless the list is a map keyed by type, controllers that apply conditions overwrite each "
    "other's, and a type can occur twice.",
    "Set x-kubernetes-list-type: map and x-kubernetes-list-map-keys: [type] on status.conditions.",
)
CONDITIONS_FIELDS = _info(
    "conditions-fields",
    "Tools read conditions as metav1.Condition: type, status, reason, message, lastTransitionTime and "
    "observedGeneration.",
    "Use the schema of metav1.Condition.",
)
OBSERVED_GENERATION = _warning(
    "observed-generation",
    "Clients cannot tell whether status describes the current spec or an older one: `kubectl wait` "
    "and GitOps tools report success too early.",
    "Add observedGeneration (integer, int64) to status or to its conditions, and set it to "
    "metadata.generation.",
)
STATUS_PHASE = _info(
    "status-phase",
    "A phase reduces several facts to one word, so adding a phase breaks clients. The API "
    "conventions deprecate it.",
    "Use conditions.",
)
SCALE_TARGET = _error(
    "scale-target",
    "If a path points to a field of another type, objects with a value there are refused. If it "
    "points to no field, the scale subresource fails or reports nothing.",
    "Point specReplicasPath and statusReplicasPath to integers, and labelSelectorPath to a string.",
)
SCALE_SELECTOR = _warning(
    "scale-selector",
    "A HorizontalPodAutoscaler does not work with a target whose scale has no selector.",
    "Publish the pods' selector as a string in status, and point labelSelectorPath to it.",
)
COLUMN_SYNTAX = _error(
    "column-syntax",
    "The API server accepts any string, but does not show a column whose path it cannot parse, nor "
    "any column after it.",
    "Correct jsonPath: put keys in brackets in single quotes, and close all brackets, quotes and filters.",
)
COLUMN_TARGET = _warning(
    "column-target",
    "The column is always empty.",
    "Correct jsonPath, or remove the column.",
)
COLUMN_TYPE = _warning(
    "column-type",
    "The API server does not show a value whose type differs from the column's.",
    "Set the column's type to the field's type. Type string shows any value.",
)
COLUMN_INVALID = _warning(
    "column-invalid",
    "A column of type date shows <invalid> for a text that is no time as of RFC 3339.",
    "Make the field a time (format: date-time), or the column one of type string.",
)
COLUMN_EMPTY = _info(
    "column-empty",
    "The column shows nothing of the objects that stand in the same files, as they would be stored.",
    "Correct jsonPath or the objects; or show something that each object has.",
)
OF_SAMPLES = frozenset((COLUMN_INVALID.id, COLUMN_EMPTY.id))
"""What is said of objects beside a CRD: a suppression is never unused, as other objects may need it."""
COLUMN_LIST = _warning(
    "column-list",
    "If the path matches several values, the API server shows only the first.",
    "Point to one value: use an index, a condition's type, or a status field that summarizes the list.",
)
COLUMN_DATE = _info(
    "column-date",
    "kubectl shows a column of type date as an age, but one of type string as a timestamp.",
    "Use type: date.",
)
COLUMN_AGE = _info(
    "column-age",
    "Custom columns replace the default Age column of kubectl get.",
    "Add a column {name: Age, type: date, jsonPath: .metadata.creationTimestamp}.",
)
COLUMN_READY = _info(
    "column-ready",
    "kubectl get does not show whether the object is ready, although its conditions do.",
    'Add a column {name: Ready, type: string, jsonPath: .status.conditions[?(@.type=="Ready")].status}.',
)

# What the fields are

FIELD_NAME = _warning(
    "field-name",
    "Fields are lowerCamelCase throughout the Kubernetes API; people and code generators rely on it.",
    "Rename the field in the next version.",
    renames=True,
)
DESCRIPTION = _info(
    "description",
    "kubectl explain shows no description for the field.",
    "Describe its meaning, its unit, and what happens if it is not set.",
)
EMPTY_OBJECT = _info(
    "empty-object",
    "An object without properties is always stored empty: everything that users write in it is "
    "pruned. That is fine only for a marker.",
    "Add properties, additionalProperties for a map, or x-kubernetes-preserve-unknown-fields: true "
    "for arbitrary content.",
)
TEMPLATE_METADATA = _warning(
    "template-metadata",
    "Labels and annotations that users set in the template are pruned, because its metadata has no "
    "properties.",
    "Declare labels, annotations (and name) under metadata. controller-gen does so with "
    "crd:generateEmbeddedObjectMeta=true.",
)
OPEN_SCHEMA = _warning(
    "open-schema",
    "A misspelled field is stored and ignored, without an error or a warning.",
    "Declare the fields, and preserve unknown fields only for arbitrary content.",
)
SET_OF_OBJECTS = _warning(
    "set-of-objects",
    "Server-side apply and CEL rules do not support sets of objects or arrays. The API server warns "
    "about them from Kubernetes 1.37.",
    "Use x-kubernetes-list-type: map with keys, or atomic.",
)
OPENAPI_V2 = _info(
    "openapi-v2",
    "OpenAPI v2 cannot express nullable fields or preserved unknown fields, so the API server does "
    "not publish the fields below such a field. Clients that read v2 neither validate nor complete "
    "them. OpenAPI v3 includes them.",
    "Remove nullable if null means the same as an absent field, and "
    "x-kubernetes-preserve-unknown-fields if all fields are known.",
)
EXPLAIN_FAILS = _warning(
    "explain-fails",
    "`kubectl explain` of the object, or of the kind with --recursive, fails on a field that allOf "
    "names without a schema.",
    "Remove the field from allOf.",
)
REQUIRED_UNDEFINED = _error(
    "required-undefined",
    "A required field that is not declared is pruned before validation, so the requirement can never be met.",
    "Declare the field in properties, or remove it from required.",
)
REQUIRED_DEFAULT = _info(
    "required-default",
    "A field with a default is never missing, but generated clients still force users to set it.",
    "Remove it from required.",
)
NULLABLE = _info(
    "nullable",
    "null becomes a third state besides absent and empty, and Go clients cannot tell it from absent.",
    "Remove nullable, unless null has a meaning of its own.",
)
BOOLEAN = _info(
    "boolean",
    "A choice between yes and no often gets a third option later, which a boolean cannot express.",
    "Use a string with an enum.",
)
FLOAT = _info(
    "float",
    "Floats do not survive a round trip in all languages, and cannot be compared.",
    "Use an integer in a smaller unit, or a quantity.",
)
FORMAT_UNKNOWN = _warning(
    "format-unknown",
    "The API server ignores a format that it does not know for the field's type, and accepts any value.",
    "Use a format that the API server knows, a pattern, or bounds.",
)
KEYWORD_TYPE = _warning(
    "keyword-type",
    "A keyword that does not apply to the field's type has no effect.",
    "Remove the keyword, or move it to the schema it is meant for (for a list, usually items).",
)
BOUNDS = _error(
    "bounds",
    "The lower bound exceeds the upper bound, so no value is valid.",
    "Correct the bounds.",
)
UNBOUNDED = _info(
    "unbounded",
    "An object can grow to etcd's size limit, and the cost of CEL rules is estimated for that size.",
    "Set maxLength, maxItems or maxProperties.",
)
PATTERN_ANCHORS = _warning(
    "pattern-anchors",
    "A pattern matches anywhere in the string: without ^ and $, anything can precede or follow the match.",
    "Write ^(…)$.",
)
PATTERN_ALTERNATION = _warning(
    "pattern-alternation",
    "In ^a|b$, each anchor applies to only one alternative, so anything can follow a or precede b.",
    "Write ^(a|b)$.",
)
ENUM_CASE = _info(
    "enum-case",
    "Enum values are UpperCamelCase in the Kubernetes API, unless they come from another system.",
    "Rename the values in the next version.",
)
LIST_OF_NAMED = _warning(
    "list-of-named",
    "Without a list type, the list is atomic: server-side apply of one entry replaces all others, "
    "and two entries can have the same name.",
    "Set x-kubernetes-list-type: map with x-kubernetes-list-map-keys, or atomic if only one client "
    "writes the list.",
)
LIST_TYPE = _info(
    "list-type-missing",
    "Without x-kubernetes-list-type, a list is atomic under server-side apply. Setting it makes this "
    "an explicit decision.",
    "Set x-kubernetes-list-type to atomic, set or map.",
)
MAP_OF_OBJECTS = _info(
    "map-of-objects",
    "The API conventions prefer lists of named objects to maps of objects.",
    "Use a list with x-kubernetes-list-type: map.",
)
DURATION_TEXT = _warning(
    "duration-text",
    "Any string is accepted. One object with an invalid duration makes every list and watch fail in "
    "Go clients that decode the field as metav1.Duration.",
    "Add a pattern, such as ^([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h))+$, or use an integer with the unit in "
    "its name.",
)
DURATION_UNIT = _warning(
    "duration-unit",
    "The field does not show the unit of the number.",
    "Include the unit in the name, as in timeoutSeconds.",
    renames=True,
)
TIME_TEXT = _info(
    "time-text",
    "Any string is accepted as a time.",
    "Set format: date-time.",
)
QUANTITY_TEXT = _info(
    "quantity-text",
    "Any string is accepted as an amount of memory, storage or CPU.",
    "Use the schema of resource.Quantity: x-kubernetes-int-or-string with its pattern.",
)
REFERENCE_SHAPE = _info(
    "reference-shape",
    "A field named ...Ref is an object that references another one. A field that holds only a name "
    "is called ...Name.",
    "Make it an object with `name` (and kind and namespace if they vary), or rename it.",
)
SECRET_TEXT = _warning(
    "secret-text",
    "Everyone who can read the object can read the secret. RBAC, encryption at rest and audit rules "
    "for Secrets do not protect it.",
    "Reference a key of a Secret: {name, key}.",
)
RULE_MESSAGE = _warning(
    "rule-message",
    "The error message shows users only the expression: `failed rule: …`.",
    "Set message or messageExpression.",
)
IMMUTABLE_BYPASS = _warning(
    "immutable-bypass",
    "A transition rule is not evaluated when the field is added or removed, so users can change an "
    "optional field by removing it and adding it again.",
    "Require the field, or add a rule to the object around it: has(self.x) == has(oldSelf.x).",
)

# What is said of a live cluster, and of the suppressions

SERVER_CONDITION = _error(
    "server-condition",
    "The API server itself reports a problem with the CRD.",
    "Follow the message.",
)

IGNORE_INVALID = _error(
    "ignore-invalid",
    "An invalid suppression has no effect.",
    "Write `# crdkeeper:ignore=<id> <reason>` on or above the line, or lines `<id> <field>: <reason>` in "
    "the annotation lint.crdkeeper.dev/ignore.",
)
IGNORE_UNUSED = _warning(
    "ignore-unused",
    "A suppression without a finding can hide future findings.",
    "Remove it.",
)


def known_ids() -> frozenset[str]:
    """All ids that a configuration or a suppression may name."""
    return frozenset(_ALL) | {each.id for each in (*all_rules(), *problem.ALL)}
