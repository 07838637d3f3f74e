"""Conventions on the fields of an object, and on what clients see of them."""

from typing import Final

from crdkeeper.core.lint.convention import error, info, warning

_GROUP: Final = "objects"
ABOUT: Final = "what becomes of the fields of an object, and what clients see of them"

EMPTY_OBJECT = info(
    _GROUP,
    "empty-object",
    "An object without properties is always stored empty: everything that users write in it is "
    "pruned. That is fine only for a marker.",
    "Add properties, additionalProperties for a map, or x-kubernetes-preserve-unknown-fields: true "
    "for arbitrary content.",
)
TEMPLATE_METADATA = warning(
    _GROUP,
    "template-metadata",
    "Labels and annotations that users set in the template are pruned, because its metadata has no "
    "properties.",
    "Declare labels, annotations (and name) under metadata. controller-gen does so with "
    "crd:generateEmbeddedObjectMeta=true.",
)
OPEN_SCHEMA = info(
    _GROUP,
    "open-schema",
    "A misspelled field is stored and ignored, without an error or a warning.",
    "Declare the fields, and preserve unknown fields only for arbitrary content.",
)
REQUIRED_UNDEFINED = error(
    _GROUP,
    "required-undefined",
    "A required field that is not declared is pruned before validation, so the requirement can never be met.",
    "Declare the field in properties, or remove it from required.",
)
OPENAPI_V2 = info(
    _GROUP,
    "openapi-v2",
    "OpenAPI v2 cannot express nullable fields or preserved unknown fields, so the API server does "
    "not publish the fields below such a field. Clients that read v2 neither validate nor complete "
    "them. OpenAPI v3 includes them.",
    "Remove nullable if null means the same as an absent field, and "
    "x-kubernetes-preserve-unknown-fields if all fields are known.",
)
EXPLAIN_FAILS = warning(
    _GROUP,
    "explain-fails",
    "`kubectl explain` of the object, or of the kind with --recursive, fails on a field that allOf "
    "names without a schema.",
    "Remove the field from allOf.",
)
