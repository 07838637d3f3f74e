"""The kinds of changes in a version's schema, with their effects on fields in and outside of status."""

from crdkeeper.core.compatibility.change import Audience
from crdkeeper.core.compatibility.registry import NOBODY, breaks, kind, risks

_WRITERS, _READERS, _STORED = Audience.WRITERS, Audience.READERS, Audience.STORED

# A stricter schema refuses what could be sent. Below status only the controller sends, which comes with it.
_STRICTER = breaks(_WRITERS, _STORED)
_STRICTER_STATUS = risks(_WRITERS)
_PERHAPS_STRICTER = risks(_WRITERS, _STORED)

_RATCHETING = (
    "Stored objects stay readable; since Kubernetes 1.33 an update may leave such a value as it is, but not "
    "change it."
)
_NEW_VERSION = "Restrict a new version only, or leave it to a warning of the controller's."

FIELD_REMOVED = kind(
    "field-removed",
    breaks(_WRITERS, _READERS, _STORED),
    in_status={**breaks(_READERS), **risks(_WRITERS)},
    why="The API server prunes the field from what is sent, in silence, and from stored objects when "
    "they are read.",
    remedy="Keep the field, say in its description that it is deprecated, and drop it in a new version.",
)
FIELD_UNDESCRIBED = kind(
    "field-undescribed",
    risks(_READERS, _STORED),
    reinterprets=True,
    why="Unknown fields are kept here, so the field stays; but nothing checks it or gives it defaults "
    "any more.",
    remedy="Keep the field in the schema, or be ready for any value in it.",
)
FIELD_ADDED = kind(
    "field-added",
    NOBODY,
    why="Who does not know the field goes on without it. A client that replaces whole objects with a "
    "type that lacks it removes it.",
    remedy="Nothing.",
)
FIELD_ADDED_WITH_DEFAULT = kind(
    "field-added-with-default",
    NOBODY,
    reinterprets=True,
    why="All objects have the field from now on, also stored ones when they are read.",
    remedy="The default should mean what was meant before there was the field.",
)
FIELD_ADDED_REQUIRED = kind(
    "field-added-required",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Every manifest of today lacks the field and is refused. Stored objects cannot be changed "
    "until they have it.",
    remedy="Make it optional, or give it a default.",
)
FIELD_DESCRIBED = kind(
    "field-described",
    _PERHAPS_STRICTER,
    in_status=_STRICTER_STATUS,
    why="Unknown fields were kept here, so objects may have the field already, with a value that is "
    "refused now.",
    remedy="Look at real objects (kubectl get -A -o json) before the schema says what the field is.",
)
REQUIRED_ADDED = kind(
    "required-added",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects without the field are refused. Stored ones cannot be changed around it until they have it.",
    remedy="Leave it optional, or give it a default.",
)
REQUIRED_REMOVED = kind(
    "required-removed",
    risks(_READERS),
    why="Readers that rely on the field meet objects without it.",
    remedy="Let all readers handle its absence first, or give it a default.",
)
REQUIRED_WITH_DEFAULT = kind(
    "required-with-default",
    NOBODY,
    why="The default fills the field in before it is missed, so it hardly matters whether it is required.",
    remedy="Nothing.",
)

TYPE_CHANGED = kind(
    "type-changed",
    breaks(_WRITERS, _READERS, _STORED),
    in_status={**breaks(_READERS), **risks(_WRITERS, _STORED)},
    why="Values of the old type are refused. Stored ones stay as they are and break typed clients, "
    "which fail on whole lists for one such value.",
    remedy="Add a field of another name with the new type and deprecate the old one; or change it in a "
    "new version with a conversion.",
)
TYPE_WIDENED = kind(
    "type-widened",
    risks(_READERS),
    in_status=breaks(_READERS),
    reinterprets=True,
    why="Readers meet values of a type that they do not expect; typed clients fail on whole lists for "
    "one of them.",
    remedy="Update all readers first; or add a field of another name.",
)
NULLABLE_ADDED = kind(
    "nullable-added",
    risks(_READERS),
    reinterprets=True,
    why="Readers meet null. Where there is a default, null was replaced by it and is kept now.",
    remedy="Let all readers handle null first, or leave the field out instead of setting it to null.",
)
NULLABLE_REMOVED = kind(
    "nullable-removed",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects in which the value is null are refused. " + _RATCHETING,
    remedy="Keep nullable: true.",
)
NULL_DEFAULTED = kind(
    "null-defaulted",
    risks(_WRITERS, _READERS, _STORED),
    why="A null is replaced by the default now, which may mean something else.",
    remedy="Keep nullable: true, or make sure that null and the default mean the same.",
)

ENUM_TIGHTENED = kind(
    "enum-tightened",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects with a value that is gone are refused. " + _RATCHETING,
    remedy="Keep the value, and let the controller treat it as what replaces it.",
)
ENUM_LOOSENED = kind(
    "enum-loosened",
    risks(_READERS),
    why="Readers meet a value that they do not know: a switch without a default case.",
    remedy="Update all readers first. Say in the description from the start that values may be added.",
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
    why="Every value that was valid before is within the limit: the enum names them all.",
    remedy="Nothing.",
)
LIMIT_LOOSENED = kind(
    "limit-loosened",
    NOBODY,
    why="Every valid object stays valid.",
    remedy="Nothing, if the controller can do with what it will meet.",
)
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
    why="Whether the new pattern matches all that the old one did is not decided here. Values that "
    "only the old one matched are refused.",
    remedy="Make sure that the new pattern matches everything that the old one did.",
)
PATTERN_LOOSENED = kind("pattern-loosened", NOBODY, why="Every valid object stays valid.", remedy="Nothing.")
FORMAT_TIGHTENED = kind(
    "format-tightened",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Values that are not of the format are refused. "
    + _RATCHETING
    + " int32 and float are checked since "
    "Kubernetes 1.37.",
    remedy=_NEW_VERSION,
)
FORMAT_LOOSENED = kind(
    "format-loosened",
    risks(_READERS),
    reinterprets=True,
    why="Readers that parse the value by its format meet others, such as numbers too big for an int32.",
    remedy="Update all readers first.",
)
FORMAT_CHANGED = kind(
    "format-changed",
    _STRICTER,
    in_status={**risks(_WRITERS), **breaks(_READERS)},
    why="Values of the old format are refused unless they are also of the new one. " + _RATCHETING,
    remedy="Add a field of another name with the new format, or change it in a new version with a "
    "conversion.",
)

DEFAULT_ADDED = kind(
    "default-added",
    risks(_WRITERS, _STORED),
    in_status=risks(_READERS),
    reinterprets=True,
    why="Objects that leave the field out have the default from now on, also stored ones when they are read.",
    remedy="The default should mean what leaving the field out meant before.",
)
DEFAULT_CHANGED = kind(
    "default-changed",
    {**breaks(_WRITERS), **risks(_STORED)},
    in_status=risks(_READERS),
    why="A manifest that leaves the field out means something else now. Objects that were stored with "
    "the old default keep it, so that equal manifests give different objects.",
    remedy="Keep the default, and use another one in a new version only.",
)
DEFAULT_REMOVED = kind(
    "default-removed",
    {**breaks(_WRITERS, _READERS), **risks(_STORED)},
    in_status=risks(_READERS),
    why="Where the field is left out, readers miss the value that was always there; if it is required "
    "the object is refused.",
    remedy="Keep the default.",
)

UNKNOWN_FIELDS_PRUNED = kind(
    "unknown-fields-pruned",
    breaks(_WRITERS, _READERS, _STORED),
    in_status={**breaks(_READERS), **risks(_WRITERS)},
    why="Fields that the schema does not name are dropped, in silence, also from stored objects when "
    "they are read.",
    remedy="Describe every field that objects have (kubectl get -A -o json shows them), or keep them open.",
)
UNKNOWN_FIELDS_KEPT = kind(
    "unknown-fields-kept",
    NOBODY,
    reinterprets=True,
    why="Fields that the schema does not name are stored instead of dropped, and misspelt ones go unnoticed.",
    remedy="Nothing.",
)
MAP_CLOSED = kind(
    "map-closed",
    breaks(_WRITERS, _READERS, _STORED),
    in_status={**breaks(_READERS), **risks(_WRITERS)},
    why="A map of any keys has named fields only: other keys are dropped, in silence, also from "
    "stored objects when they are read.",
    remedy="Keep additionalProperties, or add a field of another name.",
)
MAP_OPENED = kind(
    "map-opened",
    {**breaks(_WRITERS, _STORED), **risks(_READERS)},
    in_status={**breaks(_READERS), **risks(_WRITERS)},
    why="Named fields became keys of a map: each must be a valid value of the map, and has no schema "
    "of its own.",
    remedy="Add a field of another name for the map.",
)
MAP_VALUES_TIGHTENED = kind(
    "map-values-tightened",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Values could be anything and must fit a schema now.",
    remedy="Look at real objects (kubectl get -A -o json) before restricting the values.",
)
MAP_VALUES_LOOSENED = kind(
    "map-values-loosened",
    risks(_READERS),
    in_status=breaks(_READERS),
    reinterprets=True,
    why="Readers meet values of any type.",
    remedy="Update all readers first.",
)
EMBEDDED_ADDED = kind(
    "embedded-resource-added",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="The value must be a whole resource, with a valid apiVersion, kind and metadata.",
    remedy=_NEW_VERSION,
)
EMBEDDED_REMOVED = kind(
    "embedded-resource-removed",
    risks(_WRITERS, _READERS, _STORED),
    why="apiVersion, kind and metadata are no longer checked, and are dropped unless the schema names "
    "or keeps them.",
    remedy="Keep x-kubernetes-embedded-resource, or x-kubernetes-preserve-unknown-fields beside it.",
)

RULE_ADDED = kind(
    "rule-added",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects that the rule does not hold for are refused. " + _RATCHETING,
    remedy="Add it in a new version only; or write it so that an old value may stay (oldSelf), or warn "
    "first with a ValidatingAdmissionPolicy.",
)
RULE_SATISFIED = kind(
    "rule-satisfied",
    NOBODY,
    why="No object that was valid before can break the rule: it restricts fields that are new, or repeats "
    "what the schema requires already.",
    remedy="Nothing.",
)
TRANSITION_RULE_ADDED = kind(
    "transition-rule-added",
    breaks(_WRITERS),
    in_status=risks(_WRITERS),
    why="Updates that the rule does not hold for are refused. Objects as they are stay valid.",
    remedy="Add it in a new version only, or warn first with a ValidatingAdmissionPolicy.",
)
RULE_CHANGED = kind(
    "rule-changed",
    _PERHAPS_STRICTER,
    in_status=_STRICTER_STATUS,
    why="Whether the new rule holds for everything that the old one did is not decided here.",
    remedy="Make sure that no object becomes invalid: `kubectl apply --dry-run=server` with real ones tells.",
)
RULE_REMOVED = kind(
    "rule-removed",
    NOBODY,
    why="Every valid object stays valid.",
    remedy="Nothing, if the controller can do with what it will meet.",
)
RULE_REWORDED = kind(
    "rule-reworded", NOBODY, why="The same objects are refused, in other words.", remedy="Nothing."
)
JUNCTOR_TIGHTENED = kind(
    "junctor-tightened",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    why="Objects that do not fit allOf, anyOf, oneOf or not are refused. " + _RATCHETING,
    remedy=_NEW_VERSION,
)
JUNCTOR_CHANGED = kind(
    "junctor-changed",
    _PERHAPS_STRICTER,
    in_status=_STRICTER_STATUS,
    why="Whether allOf, anyOf, oneOf or not accept all that they did is not decided here.",
    remedy="Make sure that no object becomes invalid: `kubectl apply --dry-run=server` with real ones tells.",
)
JUNCTOR_LOOSENED = kind("junctor-loosened", NOBODY, why="Every valid object stays valid.", remedy="Nothing.")

LIST_MERGED = kind(
    "list-merged",
    _STRICTER,
    in_status=_STRICTER_STATUS,
    reinterprets=True,
    why="Items must differ now, so that objects with duplicates are refused. Server-side apply merges "
    "the list item by item: who owned the whole list before owns each item, and an item left out "
    "of a manifest may stay.",
    remedy="Make sure that no object has duplicates, and tell those who apply the list server-side.",
)
LIST_REPLACED = kind(
    "list-replaced",
    breaks(_WRITERS),
    in_status=risks(_WRITERS),
    reinterprets=True,
    why="Server-side apply replaces the whole list: of several that each apply their items, the last "
    "one removes those of the others, or meets a conflict.",
    remedy="Keep x-kubernetes-list-type.",
)
LIST_KEYS_CHANGED = kind(
    "list-keys-changed",
    breaks(_WRITERS, _STORED),
    in_status=risks(_WRITERS, _STORED),
    why="Items are told apart by other keys: what were two items may be a duplicate now, and server- "
    "side apply no longer finds the items that managedFields names.",
    remedy="Keep the keys; use another field or a new version for other ones.",
)
MAP_MERGED = kind(
    "map-merged",
    risks(_WRITERS),
    in_status=NOBODY,
    why="Server-side apply merges the object field by field: who owned it whole owns each field, and "
    "a field left out of a manifest may stay.",
    remedy="Tell those who apply the object server-side.",
)
MAP_REPLACED = kind(
    "map-replaced",
    breaks(_WRITERS),
    in_status=risks(_WRITERS),
    why="Server-side apply replaces the whole object: of several that each apply their fields, the "
    "last one removes those of the others, or meets a conflict.",
    remedy="Keep x-kubernetes-map-type: granular.",
)
SCHEMA_REMOVED = kind(
    "schema-removed",
    breaks(_WRITERS, _READERS, _STORED),
    why="A version without a schema is refused by the API server.",
    remedy="Keep the schema; to keep any content: type: object with x-kubernetes-preserve-unknown- "
    "fields: true.",
)
DOCUMENTATION = kind(
    "documentation",
    NOBODY,
    why="Only texts for people changed, or a format that the API server does not know.",
    remedy="Nothing, if the field still means the same.",
)
