"""What users do not see in kubectl and other clients, because the API server does not publish it."""

from crdkeeper.apiserver.definitions.publishing.explaining import NotExplained, explained_fields
from crdkeeper.apiserver.definitions.publishing.reduction import shows_no_fields
from crdkeeper.apiserver.definitions.publishing.rendering import rendered
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.lint.conventions.objects import EXPLAIN_FAILS, OPENAPI_V2
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.place import SchemaPlace


def check_publishing(place: SchemaPlace, found: Findings) -> None:
    """Report on one node of a schema."""
    schema = place.schema
    if shows_no_fields(schema) and _has_fields(schema) and not _is_hidden(place):
        key = "nullable" if schema.get("nullable") else "x-kubernetes-preserve-unknown-fields"
        place.report(found, OPENAPI_V2, f"has fields that {key} hides from OpenAPI v2", key)
    if schema.get("allOf"):
        try:
            for _ in explained_fields(rendered({"allOf": schema["allOf"]})):
                pass
        except NotExplained as error:
            message = f"says nothing of {error} in allOf, on which `kubectl explain` fails"
            place.report(found, EXPLAIN_FAILS, message, "allOf")
        except RecursionError:
            pass  # kubectl cannot process it either


def _has_fields(schema: Schema) -> bool:
    items = schema.get("items")
    return bool(schema.get("properties") or (isinstance(items, dict) and items.get("properties")))


def _is_hidden(place: SchemaPlace) -> bool:
    """Whether a parent of this field already hides it."""
    at = place.parent
    while at is not None:
        if shows_no_fields(at.schema):
            return True
        at = at.parent
    return False
