"""The ValidatingAdmissionPolicy that protects CRDs from deletion, as this release ships it.

It is written in manifests/operator/protection.yaml; a test compares both. Whoever changes it may let
deletions pass, so a DefinitionPolicy protects only where it is exactly this.
"""

from collections.abc import Mapping
from typing import Any, Final

Json = Mapping[str, Any]

API_GOES: Final[Json] = {
    "name": "api-goes",
    "expression": "request.operation == 'DELETE' || (oldObject.spec.versions.exists(each, each.served) && "
    "!object.spec.versions.exists(each, each.served))",
}
SHIPPED: Final[Json] = {
    "failurePolicy": "Ignore",
    "paramKind": {"apiVersion": "crdkeeper.dev/v1alpha1", "kind": "DefinitionPolicy"},
    "matchConstraints": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [
            {
                "apiGroups": ["apiextensions.k8s.io"],
                "apiVersions": ["*"],
                "operations": ["DELETE", "UPDATE"],
                "resources": ["customresourcedefinitions"],
                "scope": "*",
            }
        ],
    },
    "matchConditions": [
        {"name": "others", "expression": "oldObject.spec.group != 'crdkeeper.dev'"},
        API_GOES,
        {
            "name": "not-allowed",
            "expression": "(request.operation == 'DELETE' ? oldObject : object) "
            ".metadata.?annotations[?'crdkeeper.dev/allow-deletion'].orValue('') == ''",
        },
    ],
    "variables": [
        {"name": "labels", "expression": "oldObject.metadata.?labels.orValue({})"},
        {"name": "group", "expression": "oldObject.spec.group"},
        {
            "name": "inGroups",
            "expression": r"params.spec.groups.exists(glob, glob.matches('^[a-z0-9.*?!\\[\\]-]+$') && "
            r"variables.group.matches( '^(' + glob.replace('.', '\\.').replace('*', '.*').replace('?', '.')"
            r".replace('[!', '[^') + ')$'))",
        },
        {
            "name": "selected",
            "expression": "params.spec.selector.?matchLabels.orValue({}).all(key, key in variables.labels && "
            "variables.labels[key] == params.spec.selector.matchLabels[key]) && "
            "params.spec.selector.?matchExpressions.orValue([]).all(each, "
            "each.operator == 'Exists' ? each.key in variables.labels : "
            "each.operator == 'DoesNotExist' ? !(each.key in variables.labels) : "
            "(each.key in variables.labels && variables.labels[each.key] in each.?values.orValue([])) "
            "== (each.operator == 'In'))",
        },
    ],
    "validations": [
        {
            "expression": "params.spec.protection.deletion != 'Deny' || !variables.inGroups || "
            "!variables.selected",
            "reason": "Forbidden",
            "messageExpression": "'DefinitionPolicy ' + params.metadata.name + ' protects it "
            "(spec.protection.deletion), because ' + (request.operation == 'DELETE' ? "
            "'all of its objects would be deleted' : "
            "'none of its objects could be read, as no version would be served') + "
            "'. To allow it: kubectl annotate crd ' + oldObject.metadata.name + "
            "' crdkeeper.dev/allow-deletion=REASON'",
        }
    ],
}
"""Its spec as API servers return it, with their defaults."""


def changed_fields(spec: Json) -> list[str]:
    """In what a spec that an API server returned is not the shipped one.

    Everything counts, the texts too: a messageExpression or an audit annotation that costs too much lets the
    deletion pass.
    """
    return [f"spec.{each}" for each in sorted({*SHIPPED, *spec}) if spec.get(each) != SHIPPED.get(each)]
