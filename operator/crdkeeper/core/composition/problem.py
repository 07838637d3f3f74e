"""Possible problems of a CompositeResourceDefinition, besides the API server's errors for its CRD."""

from dataclasses import dataclass
from typing import Final

from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.rules import Rule


@dataclass(frozen=True, slots=True)
class CompositeProblem:
    """A problem of one field."""

    rule: Rule
    path: Path
    """The field, and its path in the definition's file."""
    message: str
    refused: bool = True
    """Whether no CRD is created. Otherwise one is created, but differs from what the author may expect."""


INVALID: Final = Rule(
    "composite-invalid",
    "The schema and the rules of CompositeResourceDefinition do not allow the value.",
    "Change the field as the message says.",
)
UNKNOWN: Final = Rule(
    "composite-unknown-field",
    "A CompositeResourceDefinition has no such field. kubectl apply refuses it; other clients lose it "
    "silently.",
    "Check the spelling and the indentation.",
)
RESERVED: Final = Rule(
    "composite-reserved",
    "Every composite has these fields, and crdkeeper writes them. Its schema of them replaces yours.",
    "Remove the field from the schema, or give it another name.",
)
ROOT: Final = Rule(
    "composite-root",
    "The API server allows few keywords at the root of a schema with a status subresource, which every "
    "composite has.",
    "Write the restriction as a rule in x-kubernetes-validations, or move it to the schema of spec.",
)
NOT_AN_OBJECT: Final = Rule(
    "composite-not-an-object",
    "crdkeeper adds fields to spec and status, so both must be objects.",
    "Set `type: object`, and put the value into a field of it.",
)
MAP: Final = Rule(
    "composite-map",
    "A schema has either properties or additionalProperties, and crdkeeper adds properties to spec and "
    "status.",
    "Put the map into a field, such as spec.values.",
)
COUNTED: Final = Rule(
    "composite-counted",
    "The keyword counts or compares all fields, including those that crdkeeper adds.",
    "Write the restriction as a rule in x-kubernetes-validations that names your fields.",
)
ATOMIC: Final = Rule(
    "composite-atomic",
    "Under server-side apply, an atomic object is replaced as a whole: whoever applies spec would remove "
    "what crdkeeper writes to spec.crdkeeper.",
    "Put x-kubernetes-map-type on the fields of spec that are atomic.",
)
STATUS_REQUIRED: Final = Rule(
    "composite-status-required",
    "crdkeeper writes conditions before a Composition sets any field of status. The schema refuses such a "
    "status, so that it cannot say why an object is not ready. It also has no observedGeneration at first.",
    "Do not require fields of status, and let rules hold for a status that lacks them.",
)
WHOLE: Final = Rule(
    "composite-whole",
    "The rule uses spec as a whole, including spec.crdkeeper, which crdkeeper writes.",
    "Name the fields that the rule is about, or put the rule on these fields.",
)

ALL: Final = (
    *(INVALID, UNKNOWN, RESERVED, ROOT, NOT_AN_OBJECT, MAP, COUNTED, ATOMIC, STATUS_REQUIRED, WHOLE),
)
"""Every rule, in the order of the documentation."""
