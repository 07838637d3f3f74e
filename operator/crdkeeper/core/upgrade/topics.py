"""What the upgrade of a manifest can have to say: what was done, and what a person must decide.

One place, so that the documentation can be made from it.
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
class Note:
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
    "v1 has no spec.version: all versions stand in spec.versions, and one of them is the storage version.",
)
PER_VERSION = _topic(
    "per-version",
    "v1 has no schema, columns or subresources for all versions together: each version has its own copy.",
)
COLUMNS = _topic("columns", "The field JSONPath of a column is called jsonPath in v1.")
CONVERSION = _topic(
    "conversion",
    "A webhook's settings stand under spec.conversion.webhook in v1, with conversionReviewVersions required.",
)
REVIEW_VERSIONS = _topic(
    "review-versions",
    "v1beta1 took [v1beta1] for granted as the versions of ConversionReview that the webhook understands.",
    "Add v1 in front as soon as the webhook answers ConversionReview v1.",
)
SCOPE = _topic("scope", "v1beta1 took Namespaced for granted; v1 requires spec.scope.")
SERVER_FIELDS = _topic(
    "server-fields", "status and what the server sets in metadata are no part of a manifest."
)
OBSOLETE = _topic("obsolete", "The field does not exist in v1 and had no effect that could be kept.")
UNKNOWN_FIELDS = _topic(
    "unknown-fields",
    "v1beta1 kept fields that the schema does not know, unless spec.preserveUnknownFields was false. v1 "
    "prunes them, so that they are kept by x-kubernetes-preserve-unknown-fields: at the root, and wherever a "
    "field is an object, since its own schema prunes it again.",
    "Remove x-kubernetes-preserve-unknown-fields once the schema describes all fields that objects have; "
    "whatever it lacks then is lost with the next write of an object.",
)
NO_SCHEMA = _topic(
    "no-schema",
    "v1 requires a schema in every version. This one allows everything.",
    "Describe the fields under properties, then remove x-kubernetes-preserve-unknown-fields.",
)
API_APPROVAL = _topic(
    "api-approval",
    "v1 protects groups below k8s.io and kubernetes.io.",
    "Set the annotation api-approved.kubernetes.io to the URL of the approval, or to `unapproved, <reason>`; "
    "better, use a group of your own.",
)
TYPE_ADDED = _topic(
    "type-added",
    "A structural schema names the type of every field. This one follows from the keywords beside it.",
)
TYPE_UNKNOWN = _topic(
    "type-unknown",
    "A structural schema names the type of every field, and nothing here tells it. Any value is accepted.",
    "Set the type, then remove x-kubernetes-preserve-unknown-fields.",
)
INT_OR_STRING = _topic(
    "int-or-string",
    "An integer or a string is written as x-kubernetes-int-or-string in a structural schema.",
)
ITEMS_UNKNOWN = _topic(
    "items-unknown",
    "A structural schema says what the items of a list are, and nothing here tells it. Any item is accepted.",
    "Describe the items, then remove x-kubernetes-preserve-unknown-fields.",
)
ROOT_METADATA = _topic(
    "root-metadata",
    "The schema of an object's own metadata may restrict name and generateName only in v1.",
    "Check metadata elsewhere if it matters: by a rule on metadata.name, or a ValidatingAdmissionPolicy.",
)
ROOT_ADDITIONAL = _topic(
    "root-additional-properties",
    "additionalProperties is not allowed at the root of a schema in v1.",
    "Describe the fields under properties. Until then all are kept and none is checked.",
)
JUNCTOR_TEXT = _topic(
    "junctor-text", "Inside of allOf, anyOf, oneOf and not a structural schema has no title or description."
)
JUNCTOR_TYPE = _topic(
    "junctor-type", "The type stands outside of allOf, anyOf, oneOf and not in a structural schema."
)
JUNCTOR_TYPES_DIFFER = _topic(
    "junctor-types-differ",
    "The types inside of allOf, anyOf, oneOf and not cannot be kept: a structural schema has one type for a "
    "field, and it stands outside of them.",
    "Decide which type the field has, or check the type by a rule in x-kubernetes-validations.",
)
JUNCTOR_KEYWORD = _topic(
    "junctor-keyword",
    "Inside of allOf, anyOf, oneOf and not a structural schema cannot have this keyword, so it was removed.",
    "State it for the field itself, outside, if it holds in every case; else check it by a rule in "
    "x-kubernetes-validations.",
)
JUNCTOR_FIELD = _topic(
    "junctor-field",
    "What allOf, anyOf, oneOf and not speak of is also defined outside of them in a structural schema.",
)
