"""The conventions that a finding can name: id, how bad a breach is, why it matters, and what to do.

Most follow the Kubernetes API conventions
(https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md);
the others are traps that the API server sets by accepting what can't work.
"""

# Long because it is one table.

from dataclasses import dataclass

from crdkeeper.apiserver.schema.rules import Rule, all_rules
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
    "Let kind be UpperCamelCase, plural its lower-case plural without '-', singular the kind in lower "
    "case, and listKind the kind with List.",
)
SHORT_NAME = _warning(
    "short-name",
    "kubectl resolves a name that is taken to Kubernetes' own resource, never to this one.",
    "Choose another short name, or prefix it.",
)
NAMES_CONFLICT = _error(
    "names-conflict",
    "Of two CRDs of one group that claim a name, the second never becomes established (NamesAccepted=False).",
    "Give one of them another name.",
)
CATEGORY_ALL = _warning(
    "category-all",
    "`kubectl delete all --all` deletes the objects, too.",
    "Remove `all` from spec.names.categories; use a category of your own.",
)
VERSION_STYLE = _warning(
    "version-style",
    "Clients prefer v2 to v1 and v1 to v1beta1; a version of another form comes after all of these, by "
    "the alphabet.",
    "Name versions v1, v1beta1 or v1alpha1.",
)
STORAGE_STABILITY = _info(
    "storage-stability",
    "What is stored at an alpha or beta version must be migrated before that version can be removed.",
    "Mark the stable version with storage: true, then migrate the objects (crdkeeper migrate).",
)
STORAGE_DEPRECATED = _warning(
    "storage-deprecated",
    "Each new object is stored at a version that is about to go.",
    "Mark the version that replaces it with storage: true, then migrate the objects (crdkeeper migrate).",
)
DEPRECATION_TEXT = _warning(
    "deprecation-text",
    "No newer version is served without being deprecated, so the automatic warning does not say what to "
    "use instead.",
    "Set deprecationWarning to a sentence that tells what to use, and until when.",
)
CONVERSION_LOSS = _warning(
    "conversion-loss",
    "With conversion strategy None only apiVersion changes; a field that the other version lacks is "
    "pruned, without an error.",
    "Give both versions the field, or convert by a webhook. It is only info where the versions differ "
    "both ways and the file says nothing of conversion, as then another tool will add the webhook.",
)
CONVERSION_CA = _info(
    "conversion-ca",
    "Without caBundle the API server trusts only public authorities, which don't sign for services in a "
    "cluster.",
    "Set caBundle (in a cluster its lack is a warning), or let cert-manager do so (annotation "
    "cert-manager.io/inject-ca-from).",
)
STATUS_IN_MANIFEST = _warning(
    "status-in-manifest",
    "status is the API server's; in a manifest it is ignored at best, and shown as a difference for ever "
    "by GitOps tools.",
    "Remove status from the file.",
)
APPLY_SIZE = _warning(
    "apply-size",
    "kubectl apply keeps a copy of the object in an annotation, and annotations hold 256 KiB at most.",
    "Apply by `kubectl apply --server-side`, and tell users so; or shorten it: descriptions, embedded pod "
    "templates, old versions.",
)
DEFINITION_SIZE = _warning(
    "definition-size",
    "etcd takes 1.5 MiB in one request.",
    "Shorten it: drop versions that are not served any more, descriptions, embedded pod templates.",
)

# Subresources and columns

STATUS_SUBRESOURCE = _warning(
    "status-subresource",
    "Without the subresource each write of status raises metadata.generation, and who may write spec may "
    "write status.",
    "Add `subresources: {status: {}}` to the version.",
)
STATUS_SCHEMA = _info(
    "status-schema",
    "A field that the schema lacks is pruned: whatever a controller writes to status is dropped.",
    "Add properties.status to the schema, or remove the subresource.",
)
STATUS_REQUIRED = _error(
    "status-required",
    "The API server drops status on creation and then misses it: no object can be created.",
    "Remove `status` from `required` at the root.",
)
CONDITIONS_LIST = _warning(
    "conditions-list",
    "Two controllers that apply conditions overwrite each other's unless the list is a map by type, and a "
    "type can be there twice.",
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
    "Nobody can tell whether status speaks of the present spec or of an older one: `kubectl wait` and "
    "GitOps tools report success too early.",
    "Add observedGeneration (integer, int64) to status or to its conditions, and set it to "
    "metadata.generation.",
)
STATUS_PHASE = _info(
    "status-phase",
    "A phase sums up several facts in one word, so clients break as soon as a phase is added (API "
    "conventions: deprecated).",
    "Use conditions.",
)
SCALE_TARGET = _error(
    "scale-target",
    "Objects are refused whose replicas have another type, and where a path leads nowhere the scale "
    "subresource fails or reports nothing.",
    "Let specReplicasPath and statusReplicasPath lead to integers, and labelSelectorPath to a string.",
)
SCALE_SELECTOR = _warning(
    "scale-selector",
    "A HorizontalPodAutoscaler refuses a target whose scale has no selector.",
    "Publish the selector of the pods as a string in status and name it by labelSelectorPath.",
)
COLUMN_SYNTAX = _error(
    "column-syntax",
    "The API server accepts any text, but shows no column whose path it cannot parse, and none after it.",
    "Correct jsonPath: a key in brackets has single quotes, and all brackets, quotes and filters are closed.",
)
COLUMN_TARGET = _warning(
    "column-target",
    "The column is empty for every object, for ever.",
    "Correct jsonPath, or remove the column.",
)
COLUMN_TYPE = _warning(
    "column-type",
    "A value of another type than the column's is not shown.",
    "Give the column the type of the field; type string shows any.",
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
    "Of several values the API server shows the first.",
    "Point at one value: at an index, at a condition's type, or at a field of status that sums the list up.",
)
COLUMN_DATE = _info(
    "column-date",
    "kubectl shows a column of type date as an age, one of type string as the bare timestamp.",
    "Use type: date.",
)
COLUMN_AGE = _info(
    "column-age",
    "Columns of one's own replace the age that kubectl get shows otherwise.",
    "Add a column {name: Age, type: date, jsonPath: .metadata.creationTimestamp}.",
)
COLUMN_READY = _info(
    "column-ready",
    "kubectl get does not show whether the object is well, though its conditions tell.",
    'Add a column {name: Ready, type: string, jsonPath: .status.conditions[?(@.type=="Ready")].status}.',
)

# What the fields are

FIELD_NAME = _warning(
    "field-name",
    "Fields are lowerCamelCase in all of the Kubernetes API; people and code generators count on it.",
    "Rename the field in the next version.",
    renames=True,
)
DESCRIPTION = _info(
    "description",
    "kubectl explain has nothing to say of the field.",
    "Describe what it means, its unit, and what happens if it is not set.",
)
EMPTY_OBJECT = _info(
    "empty-object",
    "An object without properties is always stored empty: all that users write in it is pruned. Fine for "
    "a marker whose presence says it all.",
    "Add properties, additionalProperties for a map, or x-kubernetes-preserve-unknown-fields: true for "
    "free content.",
)
TEMPLATE_METADATA = _warning(
    "template-metadata",
    "Labels and annotations that users write in the template are pruned, as its metadata has no properties.",
    "Define labels, annotations (and name) below metadata; controller-gen does so with "
    "crd:generateEmbeddedObjectMeta=true.",
)
OPEN_SCHEMA = _warning(
    "open-schema",
    "A misspelt field is stored and ignored instead of being refused or warned of.",
    "Define the fields, and preserve unknown ones only where content is free.",
)
SET_OF_OBJECTS = _warning(
    "set-of-objects",
    "Server-side apply and CEL rules do not support sets of objects or arrays; from Kubernetes 1.37 "
    "on the API server warns of them.",
    "Use x-kubernetes-list-type: map with keys, or atomic.",
)
OPENAPI_V2 = _info(
    "openapi-v2",
    "OpenAPI v2 cannot say that a field may be null or keeps unknown fields, so the API server publishes "
    "none of the fields below. Clients that read v2 neither check nor complete them; OpenAPI v3 shows them.",
    "Drop nullable where null means no more than an absent field, and x-kubernetes-preserve-unknown-fields "
    "where all fields are known.",
)
EXPLAIN_FAILS = _warning(
    "explain-fails",
    "`kubectl explain` of the object, or of the kind with --recursive, fails on a field that allOf names and "
    "says nothing of.",
    "Remove the field from allOf.",
)
REQUIRED_UNDEFINED = _error(
    "required-undefined",
    "A required field that is not defined is pruned before it is looked for: nobody can ever meet it.",
    "Define the field in properties, or remove it from required.",
)
REQUIRED_DEFAULT = _info(
    "required-default",
    "A field with a default is never missing; generated clients make people set it nevertheless.",
    "Remove it from required.",
)
NULLABLE = _info(
    "nullable",
    "null becomes a third state beside absent and empty; clients in Go cannot tell it from absent.",
    "Remove nullable, unless null means something of its own.",
)
BOOLEAN = _info(
    "boolean",
    "What begins as yes or no often gets a third state, and a boolean cannot grow one.",
    "Use an enum of strings.",
)
FLOAT = _info(
    "float",
    "Floats do not survive a round trip in all languages, and cannot be compared.",
    "Use an integer of a smaller unit, or a quantity.",
)
FORMAT_UNKNOWN = _warning(
    "format-unknown",
    "The API server ignores a format that it does not know for the field's type: any value is accepted.",
    "Use a format that it knows, or a pattern or bounds.",
)
KEYWORD_TYPE = _warning(
    "keyword-type",
    "A keyword that is not about the field's type checks nothing.",
    "Remove the keyword, or move it to the field that it is about (of a list, mostly to items).",
)
BOUNDS = _error(
    "bounds",
    "No value lies between a lower bound and a smaller upper bound.",
    "Correct the bounds.",
)
UNBOUNDED = _info(
    "unbounded",
    "One object may grow to what etcd takes, and CEL rules are priced at that size.",
    "Set maxLength, maxItems or maxProperties.",
)
PATTERN_ANCHORS = _warning(
    "pattern-anchors",
    "A pattern matches anywhere in the text: without ^ and $ anything may stand before and after.",
    "Write ^(…)$.",
)
PATTERN_ALTERNATION = _warning(
    "pattern-alternation",
    "In ^a|b$ each anchor belongs to one alternative only, so that anything may follow a or precede b.",
    "Write ^(a|b)$.",
)
ENUM_CASE = _info(
    "enum-case",
    "Values of enums are UpperCamelCase in the Kubernetes API, if they are not another system's.",
    "Rename the values in the next version.",
)
LIST_OF_NAMED = _warning(
    "list-of-named",
    "Without a list type the list is atomic: who applies one entry (server-side apply) replaces all "
    "others, and two entries may have the same name.",
    "Set x-kubernetes-list-type: map with x-kubernetes-list-map-keys, or atomic if it has one owner.",
)
LIST_TYPE = _info(
    "list-type-missing",
    "Without x-kubernetes-list-type a list is atomic under server-side apply; said, it is a decision.",
    "Set x-kubernetes-list-type to atomic, set or map.",
)
MAP_OF_OBJECTS = _info(
    "map-of-objects",
    "The API conventions prefer lists of named objects to maps of objects.",
    "Use a list with x-kubernetes-list-type: map.",
)
DURATION_TEXT = _warning(
    "duration-text",
    "Any text is accepted. One object with a text that is no duration breaks the decoding of every list "
    "and watch of a client in Go that reads it as metav1.Duration.",
    "Add a pattern, such as ^([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h))+$, or use an integer with the unit in "
    "its name.",
)
DURATION_UNIT = _warning(
    "duration-unit",
    "The unit of the number can't be told from the field.",
    "Name the unit, as in timeoutSeconds.",
    renames=True,
)
TIME_TEXT = _info(
    "time-text",
    "Any text is accepted for a time.",
    "Set format: date-time.",
)
QUANTITY_TEXT = _info(
    "quantity-text",
    "Any text is accepted for an amount of memory, storage or CPU.",
    "Use the schema of resource.Quantity: x-kubernetes-int-or-string with its pattern.",
)
REFERENCE_SHAPE = _info(
    "reference-shape",
    "A field ...Ref is an object that names another one; a plain name is called ...Name.",
    "Make it an object with `name` (and kind, namespace where they vary), or rename it.",
)
SECRET_TEXT = _warning(
    "secret-text",
    "Whoever may read the object reads the secret; RBAC, encryption at rest and audit rules for Secrets "
    "do not cover it.",
    "Refer to a key of a Secret: {name, key}.",
)
RULE_MESSAGE = _warning(
    "rule-message",
    "Users get the expression itself for an explanation: `failed rule: …`.",
    "Set message or messageExpression.",
)
IMMUTABLE_BYPASS = _warning(
    "immutable-bypass",
    "A transition rule is not evaluated when the field comes or goes, so an optional field is changed by "
    "removing it and adding it anew.",
    "Require the field, or add a rule to the object around it: has(self.x) == has(oldSelf.x).",
)

# What is said of a live cluster, and of the suppressions

SERVER_CONDITION = _error(
    "server-condition",
    "The API server says itself that something is wrong with the CRD.",
    "Follow the message.",
)

IGNORE_INVALID = _error(
    "ignore-invalid",
    "A suppression that is not understood suppresses nothing.",
    "Write `# crdkeeper:ignore=<id> <reason>` on or above the line, or lines `<id> <field>: <reason>` in "
    "the annotation lint.crdkeeper.dev/ignore.",
)
IGNORE_UNUSED = _warning(
    "ignore-unused",
    "A suppression without a finding hides what comes later.",
    "Remove it.",
)


def known_ids() -> frozenset[str]:
    """All ids that a configuration or a suppression may name."""
    return frozenset(_ALL) | {each.id for each in all_rules()}
