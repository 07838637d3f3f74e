"""The rules that violations in custom objects name, like those of `rules` for violations in CRDs."""

from typing import Final

from crdkeeper.apiserver.schema.rules import Rule

DECODE: Final = Rule(
    "object-decode",
    "The API server reads apiVersion, kind and metadata into typed fields and refuses it if it cannot.",
    "Write values of the types that all Kubernetes objects have in these fields.",
)
METADATA: Final = Rule(
    "object-metadata",
    "apiVersion, kind and metadata follow the rules of all Kubernetes objects, also in embedded resources.",
    "Correct the field as the message says.",
)
SCHEMA: Final = Rule(
    "object-schema",
    "The object must fit the OpenAPI schema of its version.",
    "Correct the field as the message says.",
)
LIST_TYPE: Final = Rule(
    "object-list-type",
    "Items of a set are unique, and items of a map list are unique by their keys.",
    "Remove or rename the duplicate.",
)
VALIDATION: Final = Rule(
    "object-validation",
    "The object must satisfy the rules of x-kubernetes-validations.",
    "Correct the field as the message says.",
)
