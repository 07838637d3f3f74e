"""The kinds of changes in a version's schema, with their effects on fields in and outside of status."""

from crdkeeper.core.compatibility.change import Audience
from crdkeeper.core.compatibility.registry import NOBODY, breaks, kind, risks

_WRITERS, _READERS, _STORED = Audience.WRITERS, Audience.READERS, Audience.STORED

# A stricter schema rejects what could be sent before. Below status, only the controller sends, and it is
# updated together with the CRD.
_STRICTER = breaks(_WRITERS, _STORED)
_STRICTER_STATUS = risks(_WRITERS)
_PERHAPS_STRICTER = risks(_WRITERS, _STORED)

_RATCHETING = (
    "Stored objects stay readable. Since Kubernetes 1.33, an update may leave such a value unchanged."
)
_NEW_VERSION = "Add the restriction only to a new version, or let the controller warn instead."
_LOOSER = "Every valid object stays valid."
_NEW_VALUES = "Nothing, if the controller can handle the new values."

FIELD_REMOVED = kind(
    "field-removed",
    breaks(_WRITERS, _READERS, _STORED),
    in_status={**breaks(_READERS), **risks(_WRITERS)},
    why="The API server silently prunes the field from requests, and from stored objects when they are read.",
    remedy="Keep the field, document that it is deprecated, and remove it in a new version.",
)
FIELD_UNDESCRIBED = kind(
    "field-undescribed",
    risks(_READERS, _STORED),
    reinterprets=True,
    why="Other fields are kept here, so the field stays, but is no longer validated or defaulted by its own "
    "schema.",
    remedy="Keep the field in the schema, or handle any value in it.",
)
FIELD_ADDED = kind(
    "field-added",
    NOBODY,
    why="Clients that do not know the field keep working. A client that replaces whole objects with a "
    "type that lacks the field removes it.",
    remedy="Nothing.",
)
FIELD_ADDED_WITH_DEFAULT = kind(
    "field-added-with-default",
    NOBODY,
    reinterprets=True,
    why="All objects now have the field, including stored objects when they are read.",
    remedy="Choose a default that keeps the behavior from before the field existed.",
)
FIELD_ADDED_REQUIRED = kind(
    "field-added-required",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="All existing manifests lack the field and are refused. Stored objects cannot be changed until "
    "they have it.",
    remedy="Make it optional, or give it a default.",
)
FIELD_DESCRIBED = kind(
    "field-described",
    _PERHAPS_STRICTER,
    in_status=_STRICTER_STATUS,
    why="Other fields were kept here, so objects may already have the field, with a value that is now "
    "refused.",
    remedy="Check real objects (kubectl get -A -o json) before you declare the field.",
)
REQUIRED_ADDED = kind(
    "required-added",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects without the field are refused. Stored objects cannot be changed until they have it.",
    remedy="Leave it optional, or give it a default.",
)
REQUIRED_REMOVED = kind(
    "required-removed",
    risks(_READERS),
    why="Readers that rely on the field get objects without it.",
    remedy="First make all readers handle its absence, or give it a default.",
)
REQUIRED_WITH_DEFAULT = kind(
    "required-with-default",
    NOBODY,
    why="The API server sets the default before validation, so it hardly matters whether the field is "
    "required.",
    remedy="Nothing.",
)

TYPE_CHANGED = kind(
    "type-changed",
    breaks(_WRITERS, _READERS, _STORED),
    in_status={**breaks(_READERS), **risks(_WRITERS, _STORED)},
    why="Values of the old type are refused. Stored values stay unchanged and break typed clients, which "
    "fail on a whole list because of one such value.",
    remedy="Add a field with a different name and the new type, and deprecate the old one. Or change it in "
    "a new version with a conversion.",
)
TYPE_WIDENED = kind(
    "type-widened",
    risks(_READERS),
    in_status=breaks(_READERS),
    reinterprets=True,
    why="Readers get values of a type that they do not expect. Typed clients fail on a whole list "
    "because of one such value.",
    remedy="Update all readers first, or add a field with a different name.",
)
NULLABLE_ADDED = kind(
    "nullable-added",
    risks(_READERS),
    reinterprets=True,
    why="Readers get null. If there is a default, it used to replace null; now null is kept.",
    remedy="First make all readers handle null, or omit the field instead of setting it to null.",
)
NULLABLE_REMOVED = kind(
    "nullable-removed",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why=f"Null is refused among the items of a list, and in a required field. {_RATCHETING}",
    remedy="Keep nullable: true.",
)
NULL_DEFAULTED = kind(
    "null-defaulted",
    risks(_WRITERS, _READERS, _STORED),
    why="The default now replaces null, and may have a different meaning.",
    remedy="Keep nullable: true, or make sure that null and the default mean the same.",
)
NULL_DROPPED = kind(
    "null-dropped",
    risks(_WRITERS, _READERS, _STORED),
    why="The API server drops the null before it validates an object, and when it reads a stored one.",
    remedy="Keep nullable: true, or make sure that null and an absent field mean the same.",
)

ENUM_TIGHTENED = kind(
    "enum-tightened",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects with a removed value are refused. " + _RATCHETING,
    remedy="Keep the value, and let the controller treat it like its replacement.",
)
ENUM_LOOSENED = kind(
    "enum-loosened",
    risks(_READERS),
    why="Readers get a value that they do not know, for example in a switch without a default case.",
    remedy="Update all readers first. Document from the start that values may be added.",
)
LIMIT_TIGHTENED = kind(
    "limit-tightened",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects beyond the limit are refused. " + _RATCHETING,
    remedy=_NEW_VERSION,
)
LIMIT_SATISFIED = kind(
    "limit-satisfied",
    NOBODY,
    why="Every value that was valid before stays valid: an enum or a boolean has few enough to try all.",
    remedy="Nothing.",
)
LIMIT_LOOSENED = kind("limit-loosened", NOBODY, why=_LOOSER, remedy=_NEW_VALUES)
PATTERN_TIGHTENED = kind(
    "pattern-tightened",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects whose value does not match are refused. " + _RATCHETING,
    remedy=_NEW_VERSION,
)
PATTERN_CHANGED = kind(
    "pattern-changed",
    _PERHAPS_STRICTER,
    in_status=_STRICTER_STATUS,
    why="crdkeeper cannot decide whether the new pattern matches everything that the old one did. Values "
    "that only the old one matches are refused.",
    remedy="Make sure that the new pattern matches everything that the old one did.",
)
PATTERN_LOOSENED = kind("pattern-loosened", NOBODY, why=_LOOSER, remedy="Nothing.")
FORMAT_TIGHTENED = kind(
    "format-tightened",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why=f"Values that do not match the format are refused. {_RATCHETING} int32 and float are checked since "
    "Kubernetes 1.37.",
    remedy=_NEW_VERSION,
)
FORMAT_LOOSENED = kind(
    "format-loosened",
    risks(_READERS),
    reinterprets=True,
    why="Readers that parse the value by its format get other values, such as numbers too large for an "
    "int32.",
    remedy="Update all readers first.",
)
FORMAT_CHANGED = kind(
    "format-changed",
    _STRICTER,
    in_status={**risks(_WRITERS), **breaks(_READERS)},
    why="Values in the old format are refused unless they also match the new one. " + _RATCHETING,
    remedy="Add a field with a different name and the new format, or change it in a new version with a "
    "conversion.",
)

DEFAULT_ADDED = kind(
    "default-added",
    risks(_WRITERS, _STORED),
    in_status=risks(_READERS),
    reinterprets=True,
    why="Objects that omit the field now get the default, including stored objects when they are read.",
    remedy="Choose a default that keeps the previous meaning of omitting the field.",
)
DEFAULT_CHANGED = kind(
    "default-changed",
    {**breaks(_WRITERS), **risks(_STORED)},
    in_status=risks(_READERS),
    why="A manifest that omits the field now has a different meaning. Objects stored with the old "
    "default keep it, so equal manifests produce different objects.",
    remedy="Keep the default, and use a different one only in a new version.",
)
DEFAULT_REMOVED = kind(
    "default-removed",
    {**breaks(_WRITERS, _READERS), **risks(_STORED)},
    in_status=risks(_READERS),
    why="If the field is omitted, readers lack a value that was always there. If it is required, the "
    "object is refused.",
    remedy="Keep the default.",
)

UNKNOWN_FIELDS_PRUNED = kind(
    "unknown-fields-pruned",
    breaks(_WRITERS, _READERS, _STORED),
    in_status={**breaks(_READERS), **risks(_WRITERS)},
    why="Fields that the schema does not declare are silently dropped, including from stored objects "
    "when they are read.",
    remedy="Declare every field that objects have (see kubectl get -A -o json), or keep preserving unknown "
    "fields.",
)
UNKNOWN_FIELDS_KEPT = kind(
    "unknown-fields-kept",
    NOBODY,
    reinterprets=True,
    why="Fields that the schema does not declare are stored instead of dropped, and misspelled fields go "
    "unnoticed.",
    remedy="Nothing.",
)
MAP_CLOSED = kind(
    "map-closed",
    breaks(_WRITERS, _READERS, _STORED),
    in_status={**breaks(_READERS), **risks(_WRITERS)},
    why="A map with arbitrary keys becomes an object with fixed fields: other keys are silently dropped, "
    "including from stored objects when they are read.",
    remedy="Keep additionalProperties, or add a field with a different name.",
)
MAP_OPENED = kind(
    "map-opened",
    {**breaks(_WRITERS, _STORED), **risks(_READERS)},
    in_status={**breaks(_READERS), **risks(_WRITERS)},
    why="Fixed fields become keys of a map: each must be a valid value of the map, and no longer has its "
    "own schema.",
    remedy="Add a field with a different name for the map.",
)
MAP_VALUES_TIGHTENED = kind(
    "map-values-tightened",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Values could be anything and must now match a schema.",
    remedy="Check real objects (kubectl get -A -o json) before you restrict the values.",
)
MAP_VALUES_LOOSENED = kind(
    "map-values-loosened", risks(_READERS), in_status=breaks(_READERS), reinterprets=True,
    why="Readers get values of any type.", remedy="Update all readers first.",
)  # fmt: skip
EMBEDDED_ADDED = kind(
    "embedded-resource-added",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="The value must be a complete resource, with a valid apiVersion, kind and metadata.",
    remedy=_NEW_VERSION,
)
EMBEDDED_REMOVED = kind(
    "embedded-resource-removed",
    risks(_WRITERS, _READERS, _STORED),
    why="apiVersion, kind and metadata are no longer checked, and are dropped unless the schema declares "
    "or preserves them.",
    remedy="Keep x-kubernetes-embedded-resource, or set x-kubernetes-preserve-unknown-fields.",
)

RULE_ADDED = kind(
    "rule-added",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects that violate the rule are refused. " + _RATCHETING,
    remedy="Add it only to a new version, write it so that an old value may stay (oldSelf), or warn first "
    "with a ValidatingAdmissionPolicy.",
)
RULE_SATISFIED = kind(
    "rule-satisfied",
    NOBODY,
    why="No previously valid object can violate the rule: it restricts new fields, or repeats what the "
    "schema already requires.",
    remedy="Nothing.",
)
TRANSITION_RULE_ADDED = kind(
    "transition-rule-added",
    breaks(_WRITERS),
    in_status=risks(_WRITERS),
    why="Updates that violate the rule are refused. Existing objects stay valid.",
    remedy="Add it only to a new version, or warn first with a ValidatingAdmissionPolicy.",
)
RULE_CHANGED = kind(
    "rule-changed",
    _PERHAPS_STRICTER,
    in_status=_STRICTER_STATUS,
    why="crdkeeper cannot decide whether the new rule accepts everything that the old one did.",
    remedy="Make sure that no object becomes invalid: try real ones with `kubectl apply --dry-run=server`.",
)
RULE_TIGHTENED = kind(
    "rule-tightened",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects that satisfied the old rule violate the new one and are refused. " + _RATCHETING,
    remedy=_NEW_VERSION,
)
RULE_REMOVED = kind("rule-removed", NOBODY, why=_LOOSER, remedy=_NEW_VALUES)
RULE_REWORDED = kind(
    "rule-reworded", NOBODY, why="The same objects are refused, with a different message.", remedy="Nothing."
)
JUNCTOR_TIGHTENED = kind(
    "junctor-tightened",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects that do not match allOf, anyOf, oneOf or not are refused. " + _RATCHETING,
    remedy=_NEW_VERSION,
)
JUNCTOR_CHANGED = kind(
    "junctor-changed",
    _PERHAPS_STRICTER,
    in_status=_STRICTER_STATUS,
    why="crdkeeper cannot decide whether allOf, anyOf, oneOf or not accept everything that they did.",
    remedy="Make sure that no object becomes invalid: try real ones with `kubectl apply --dry-run=server`.",
)
JUNCTOR_LOOSENED = kind("junctor-loosened", NOBODY, why=_LOOSER, remedy="Nothing.")

LIST_MERGED = kind(
    "list-merged",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    reinterprets=True,
    why="Items must now be unique, so objects with duplicates are refused. Server-side apply merges the "
    "list item by item: the manager that owned the whole list now owns each item, and an item "
    "omitted from a manifest may stay.",
    remedy="Make sure that no object has duplicates, and tell users who apply the list server-side.",
)
LIST_REPLACED = kind(
    "list-replaced",
    breaks(_WRITERS),
    in_status=risks(_WRITERS),
    reinterprets=True,
    why="Server-side apply replaces the whole list: if several managers apply their own items, the last "
    "one removes the others' items, or gets a conflict.",
    remedy="Keep x-kubernetes-list-type.",
)
LIST_KEYS_CHANGED = kind(
    "list-keys-changed",
    breaks(_WRITERS, _STORED),
    in_status=risks(_WRITERS, _STORED),
    why="Different keys identify the items: two distinct items may now be duplicates, and server- side "
    "apply no longer finds the items that managedFields names.",
    remedy="Keep the keys, and use another field or a new version for different ones.",
)
MAP_MERGED = kind(
    "map-merged",
    risks(_WRITERS),
    in_status=NOBODY,
    why="Server-side apply merges the object field by field: the manager that owned the whole object now "
    "owns each field, and a field omitted from a manifest may stay.",
    remedy="Tell users who apply the object server-side.",
)
MAP_REPLACED = kind(
    "map-replaced",
    breaks(_WRITERS),
    in_status=risks(_WRITERS),
    why="Server-side apply replaces the whole object: if several managers apply their own fields, the "
    "last one removes the others' fields, or gets a conflict.",
    remedy="Keep x-kubernetes-map-type: granular.",
)
SCHEMA_REMOVED = kind(
    "schema-removed",
    breaks(_WRITERS, _READERS, _STORED),
    why="The API server refuses a version without a schema.",
    remedy="Keep the schema. To allow any content, use type: object with x-kubernetes-preserve-unknown- "
    "fields: true.",
    fixed=True,
)
DOCUMENTATION = kind(
    "documentation",
    NOBODY,
    why="Only descriptions changed, or a format that the API server does not know.",
    remedy="Nothing, if the field still means the same.",
)
