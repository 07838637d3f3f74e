"""The rules that a finding can name: id, purpose, and remedy.

In one place, so that the documentation can be generated from it and an id never changes by accident.
"""

from dataclasses import dataclass, field

_ALL: dict[str, "Rule"] = {}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the API server, or a reason why a check is left to it."""

    id: str
    why: str
    remedy: str
    otherwise: str = field(default="", kw_only=True)
    """Where a violation has another severity than usual, such as `info in status`: for the documentation."""


def _rule(id: str, why: str, remedy: str, *, otherwise: str = "") -> Rule:
    rule = Rule(id, why, remedy, otherwise=otherwise)
    assert id not in _ALL, id
    _ALL[id] = rule
    return rule


def all_rules() -> tuple[Rule, ...]:
    """Every rule, by id."""
    return tuple(_ALL[id] for id in sorted(_ALL))


DECODE = _rule(
    "decode",
    "The API server reads a CRD into typed fields and refuses it whole when one has another type.",
    "Write a value of the type that the message names. Nothing else is checked until then.",
)
API_VERSION = _rule(
    "api-version",
    "Only apiextensions.k8s.io/v1 is served, since Kubernetes 1.22.",
    "Rewrite the CRD as apiextensions.k8s.io/v1: a schema in every version, and no spec.validation.",
)
UNKNOWN_FIELD = _rule(
    "unknown-field",
    "The API server drops a field that it does not know; kubectl refuses to send it.",
    "Correct the spelling or the indentation, or remove the field.",
    otherwise="warning; info for a key of a schema that begins with x- and is not of Kubernetes, because it "
    "is meant for another tool",
)
DUPLICATE_KEY = _rule(
    "duplicate-key",
    "Of a key that stands twice in one mapping, the last wins in silence or the file is refused.",
    "Remove one of the two.",
    otherwise="warning",
)
METADATA = _rule(
    "metadata",
    "metadata follows the rules of every Kubernetes object.",
    "Correct the label, annotation or name as the message says.",
)
RESOURCE_VERSION = _rule(
    "resource-version",
    "An update names the version of the object that it is based on, so that no other change is lost.",
    "Read the CRD again, change what you read, and send that; or use kubectl apply.",
)
NAME = _rule(
    "name",
    "A CRD's name says which resource it defines.",
    "Set metadata.name to <spec.names.plural>.<spec.group>.",
)
GROUP = _rule(
    "group",
    "The group is a DNS name of at least two parts, so that groups of different owners never meet.",
    "Use a domain that you own, in lower case, such as example.com.",
)
SCOPE = _rule(
    "scope", "Objects live in namespaces or in the cluster.", "Set spec.scope to Namespaced or Cluster."
)
API_APPROVAL = _rule(
    "api-approval",
    "Groups under k8s.io and kubernetes.io belong to the Kubernetes project.",
    "Use a group of your own; else set the annotation api-approved.kubernetes.io to the approval's URL, "
    "or to a text that begins with `unapproved`. If kustomize adds it, check what kustomize builds.",
)
IMMUTABLE = _rule(
    "immutable",
    "Stored objects and URLs depend on the group, the plural and, once established, the kind and scope.",
    "Define a new CRD, copy the objects over, and delete the old CRD.",
)
NAMES = _rule(
    "names",
    "Names become parts of URLs and of discovery, so they are DNS labels.",
    "Use lower case letters, digits and '-' (kind and listKind may have capitals), begin with a letter.",
)
PRESERVE_UNKNOWN_FIELDS = _rule(
    "preserve-unknown-fields",
    "apiextensions.k8s.io/v1 prunes unknown fields; keeping them is a matter of the schema.",
    "Remove spec.preserveUnknownFields and set x-kubernetes-preserve-unknown-fields: true in the schema "
    "where fields are open.",
)
VERSION_NAME = _rule(
    "version-name",
    "A version's name becomes a part of URLs.",
    "Use lower case letters and digits that begin with a letter, such as v1 or v1alpha1; each once.",
)
STORAGE = _rule(
    "storage",
    "Objects are stored in exactly one version.",
    "Set storage: true in one entry of spec.versions and false in the others.",
)
STORED_VERSIONS = _rule(
    "stored-versions",
    "status.storedVersions holds the storage version, which the API server adds, and every version in which "
    "objects may still be stored; all of them must be in spec.versions.",
    "Mark exactly one version with storage: true. Keep an old version, with served: false, until a migration "
    "of the stored objects has taken it out of status.storedVersions.",
)
DEPRECATION = _rule(
    "deprecation-warning",
    "The warning is sent in an HTTP header to everyone who uses the version.",
    "Set deprecated: true with it, and use 1 to 256 bytes of printable text.",
)
SCHEMA_REQUIRED = _rule(
    "schema-required",
    "Every version needs a schema, or all fields would be pruned.",
    "Add schema.openAPIV3Schema; to keep any content: type: object with "
    "x-kubernetes-preserve-unknown-fields: true.",
)
STATUS_ROOT = _rule(
    "status-root",
    "With a status subresource, status is checked by its property alone, so the root may hold only what "
    "that does not lose.",
    "Move the keyword from the root of the schema to properties.spec or properties.status.",
)
ROOT_NULLABLE = _rule("root-nullable", "An object cannot be null.", "Remove nullable from the root.")
TYPE = _rule(
    "type",
    "A structural schema gives each field its type, outside of allOf, anyOf, oneOf and not.",
    "Add or correct `type`; for an integer or string use x-kubernetes-int-or-string: true, for anything "
    "x-kubernetes-preserve-unknown-fields: true.",
)
ITEMS = _rule("items", "An array has one schema for its items.", "Add `items` with one schema.")
ADDITIONAL_PROPERTIES = _rule(
    "additional-properties",
    "Objects have either named properties or are maps; a resource has named properties at its root.",
    "Remove additionalProperties or properties; for open content use "
    "x-kubernetes-preserve-unknown-fields: true.",
)
EMBEDDED_RESOURCE = _rule(
    "embedded-resource",
    "An embedded resource is an object with apiVersion, kind and metadata.",
    "Set type: object, and properties or x-kubernetes-preserve-unknown-fields: true.",
)
INT_OR_STRING = _rule(
    "int-or-string",
    "A value that is an integer or a string has no fields.",
    "Remove x-kubernetes-preserve-unknown-fields and x-kubernetes-embedded-resource beside it.",
)
METADATA_SCHEMA = _rule(
    "metadata-schema",
    "apiVersion, kind and metadata have the schema that all Kubernetes objects have.",
    "For apiVersion and kind leave type: string, for metadata type: object; only properties.name and "
    "properties.generateName of metadata may be restricted, at the root.",
)
JUNCTOR = _rule(
    "junctor",
    "allOf, anyOf, oneOf and not may only restrict values: what a field is must be said outside of them.",
    "Move the keyword to the same field outside of the junctor.",
)
INCOMPLETE = _rule(
    "incomplete",
    "Each field that allOf, anyOf, oneOf or not speaks of must also be defined outside of them.",
    "Define the field with its type at the path of this finding.",
)
PATTERN = _rule(
    "pattern",
    "Patterns are RE2 expressions: no look-around, no back references.",
    "Correct the expression; see https://github.com/google/re2/wiki/Syntax.",
)
UNSUPPORTED_KEYWORD = _rule(
    "unsupported-keyword",
    "Structural schemas leave out the keywords that would make the type of a field ambiguous.",
    "Remove the keyword; write a $ref's target out.",
)
UNIQUE_ITEMS = _rule(
    "unique-items",
    "The check of uniqueItems takes quadratic time.",
    "Use x-kubernetes-list-type: set.",
)
PRESERVE_FALSE = _rule(
    "preserve-false",
    "x-kubernetes-preserve-unknown-fields can only be switched on.",
    "Remove it: unknown fields are pruned anyway.",
)
MAP_TYPE = _rule(
    "map-type",
    "x-kubernetes-map-type says how two appliers share an object.",
    "Use granular or atomic, on type: object.",
)
LIST_TYPE = _rule(
    "list-type",
    "x-kubernetes-list-type says how two appliers share an array.",
    "Use atomic, set or map, on type: array.",
)
SET_ITEMS = _rule(
    "set-items",
    "Items of a set are compared whole, so they must be scalars or atomic, and not null.",
    "Set x-kubernetes-map-type: atomic (objects) or x-kubernetes-list-type: atomic (arrays) on the items, "
    "and no nullable.",
)
LIST_MAP = _rule(
    "list-map",
    "Items of a map list are found by their keys, so each must have them.",
    "Name scalar properties of the items in x-kubernetes-list-map-keys, each required or with a default, "
    "not nullable.",
)
DEFAULT_PLACE = _rule(
    "default-place",
    "apiVersion, kind and metadata are set by clients and the API server.",
    "Remove the default.",
)
DEFAULT_VALUE = _rule(
    "default-value",
    "A default must itself be a valid value with no fields that would be pruned.",
    "Make the default fit the schema beside it, or the schema the default.",
)
VALIDATION_RULE = _rule(
    "validation-rule",
    "A rule of x-kubernetes-validations needs an expression, and a message that fits one line.",
    "Correct the field that the finding names.",
)
SCALE = _rule(
    "scale",
    "kubectl scale and autoscalers find the replicas by these paths.",
    "Use simple paths: specReplicasPath under .spec, statusReplicasPath under .status, "
    "labelSelectorPath under either.",
)
COLUMN = _rule(
    "column",
    "Printer columns show one value of each object in kubectl get.",
    "Give each a name, a type (boolean, date, integer, number, string) and a jsonPath that begins with '.'.",
)
SELECTABLE_FIELD = _rule(
    "selectable-field",
    "Field selectors compare one scalar field of each object.",
    "Name at most 8 different fields of type string, boolean or integer, by paths such as .spec.color.",
)
CONVERSION = _rule(
    "conversion",
    "With several versions, objects are converted by nothing but a new apiVersion, or by a webhook.",
    "Use strategy None alone, or Webhook with webhook.clientConfig (url or service) and "
    "webhook.conversionReviewVersions that has v1 or v1beta1.",
)
CEL = _rule(
    "cel",
    "Expressions of x-kubernetes-validations are compiled against the types that the schema declares.",
    "Correct the expression where the caret points. Fields whose schema has no type do not exist for it.",
)
CEL_COST = _rule(
    "cel-cost",
    "The API server estimates what an expression costs for the greatest object that the schema allows, and "
    "limits it.",
    "Set maxItems, maxProperties and maxLength on the fields that the expression reads; else simplify it.",
)
OLD_SELF = _rule(
    "old-self",
    "oldSelf is the value before an update: it exists where each part of the old object has its match.",
    "Move the rule above the list, or make that a map list; use optionalOldSelf only in rules with oldSelf.",
)
