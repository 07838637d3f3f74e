"""All possible notes of an upgrade: what was changed, and what a person must decide.

In one place, so that the documentation can be generated from it.
"""

from dataclasses import dataclass

from crdkeeper.apiserver.schema.fieldpath import Path

_ALL: dict[str, "Topic"] = {}


@dataclass(frozen=True, slots=True)
class Topic:
    """One kind of change."""

    id: str
    why: str
    remedy: str
    """What a person has to decide or do; empty for a change that keeps the meaning."""

    @property
    def open(self) -> bool:
        """Whether a person must decide."""
        return bool(self.remedy)


@dataclass(frozen=True, slots=True)
class UpgradeNote:
    """A change or a decision at one field of the old manifest."""

    topic: Topic
    path: Path
    message: str


def _topic(id: str, why: str, remedy: str = "") -> Topic:
    topic = Topic(id, why, remedy)
    assert id not in _ALL, id
    _ALL[id] = topic
    return topic


def all_topics() -> tuple[Topic, ...]:
    """Every topic, by id."""
    return tuple(_ALL[id] for id in sorted(_ALL))


VERSIONS = _topic(
    "versions",
    "v1 has no spec.version: all versions are listed in spec.versions, and one of them is the "
    "storage version.",
)
PER_VERSION = _topic(
    "per-version",
    "v1 has no schema, columns or subresources shared by all versions: each version has its own copy.",
)
COLUMNS = _topic("columns", "The field JSONPath of a column is called jsonPath in v1.")
CONVERSION = _topic(
    "conversion",
    "A webhook's settings are under spec.conversion.webhook in v1, with conversionReviewVersions required.",
)
REVIEW_VERSIONS = _topic(
    "review-versions",
    "v1beta1 assumed that the webhook understands ConversionReview version v1beta1.",
    "Put v1 first once the webhook supports ConversionReview v1.",
)
SCOPE = _topic("scope", "v1beta1 defaulted to Namespaced; v1 requires spec.scope.")
SERVER_FIELDS = _topic(
    "server-fields", "status and the metadata that the server sets do not belong in a manifest."
)
OBSOLETE = _topic("obsolete", "The field does not exist in v1, and had no effect to preserve.")
UNKNOWN_FIELDS = _topic(
    "unknown-fields",
    "v1beta1 kept fields that the schema does not know, unless spec.preserveUnknownFields was false. "
    "v1 prunes them, so x-kubernetes-preserve-unknown-fields keeps them: at the root, and at each "
    "field that is an object, because its own schema would prune it again.",
    "Remove x-kubernetes-preserve-unknown-fields once the schema declares all fields that objects "
    "have. Fields that it lacks are then lost with the next write of an object.",
)
NO_SCHEMA = _topic(
    "no-schema",
    "v1 requires a schema in every version. This one allows everything.",
    "Declare the fields under properties, then remove x-kubernetes-preserve-unknown-fields.",
)
API_APPROVAL = _topic(
    "api-approval",
    "v1 protects API groups under k8s.io and kubernetes.io.",
    "Set the annotation api-approved.kubernetes.io to the URL of the approval, or to `unapproved, "
    "<reason>`. Better, use your own group.",
)
TYPE_ADDED = _topic(
    "type-added",
    "A structural schema names the type of every field. This type follows from the field's other keywords.",
)
TYPE_UNKNOWN = _topic(
    "type-unknown",
    "A structural schema names the type of every field, and it is unknown here. Any value is accepted.",
    "Set the type, then remove x-kubernetes-preserve-unknown-fields.",
)
INT_OR_STRING = _topic(
    "int-or-string",
    "An integer or a string is written as x-kubernetes-int-or-string in a structural schema.",
)
ITEMS_UNKNOWN = _topic(
    "items-unknown",
    "A structural schema declares the items of a list, and they are unknown here. Any item is accepted.",
    "Declare the items, then remove x-kubernetes-preserve-unknown-fields.",
)
ROOT_METADATA = _topic(
    "root-metadata",
    "In v1, the schema of an object's metadata may restrict only name and generateName.",
    "If it matters, check metadata elsewhere: with a rule on metadata.name, or a ValidatingAdmissionPolicy.",
)
ROOT_ADDITIONAL = _topic(
    "root-additional-properties",
    "additionalProperties is not allowed at the root of a schema in v1.",
    "Declare the fields under properties. Until then, all fields are kept and none is validated.",
)
JUNCTOR_TEXT = _topic(
    "junctor-text",
    "In a structural schema, allOf, anyOf, oneOf and not cannot contain a title or description.",
)
JUNCTOR_TYPE = _topic(
    "junctor-type", "In a structural schema, the type belongs outside allOf, anyOf, oneOf and not."
)
JUNCTOR_TYPES_DIFFER = _topic(
    "junctor-types-differ",
    "The types inside allOf, anyOf, oneOf and not cannot be kept: in a structural schema, a field "
    "has one type, which belongs outside them.",
    "Decide which type the field has, or check the type with a rule in x-kubernetes-validations.",
)
JUNCTOR_KEYWORD = _topic(
    "junctor-keyword",
    "In a structural schema, allOf, anyOf, oneOf and not cannot contain this keyword, so it was removed.",
    "If it holds in every case, set it on the field itself. Otherwise, check it with a rule in "
    "x-kubernetes-validations.",
)
JUNCTOR_FIELD = _topic(
    "junctor-field",
    "In a structural schema, fields in allOf, anyOf, oneOf and not must also be declared outside them.",
)
JUNCTOR_FIELD_TYPE = _topic(
    "junctor-field-type",
    "In a structural schema, the type of a field belongs outside allOf, anyOf, oneOf and not. One of several "
    "branches says it, and now it holds in every case.",
    "If the field may have another type in other cases, remove the type outside, and set "
    "x-kubernetes-preserve-unknown-fields there.",
)
JUNCTOR_LOOSENED = _topic(
    "junctor-loosened",
    "A branch accepts more values without what cannot be kept in it, so oneOf and not would refuse values "
    "that were accepted. Therefore oneOf was written as anyOf, and not was removed.",
    "Decide which values are meant, and check them with a rule in x-kubernetes-validations.",
)
