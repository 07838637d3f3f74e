"""CRDs that the API server rejects, with its errors for each (Kubernetes 1.37)."""

from collections.abc import Callable
from typing import Any

Crd = dict[str, Any]
Change = Callable[[Crd], object]
SHARED = "spec.validation.openAPIV3Schema"
LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
TYPES = "must be one of boolean,date,integer,number,string"


def version(name: str, *, storage: bool = False, **fields: Any) -> Crd:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        **fields,
    }


def definition(*more: Crd) -> Crd:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", storage=True), *more],
        },
    }


def at(crd: Crd, *steps: str | int) -> Any:
    for step in steps:
        crd = crd[step]  # type: ignore[index]
    return crd


def set_(*steps: str | int, to: Any) -> Change:
    def change(crd: Crd) -> None:
        at(crd, *steps[:-1])[steps[-1]] = to

    return change


def spec(**fields: Any) -> Change:
    return lambda crd: crd["spec"].update(fields)


def names(**fields: Any) -> Change:
    return lambda crd: crd["spec"]["names"].update(fields)


def first(**fields: Any) -> Change:
    return lambda crd: crd["spec"]["versions"][0].update(fields)


def schema(**fields: Any) -> Change:
    return lambda crd: at(crd, "spec", "versions", 0, "schema", "openAPIV3Schema").update(fields)


def a(value: Any) -> Change:
    """The schema of spec.a."""
    steps = ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "a")
    return set_(*steps, to=value)


A = f"{SHARED}.properties[spec].properties[a]"


NAMES: list[tuple[Change, list[str]]] = [
    (
        set_("metadata", "name", to="other.example.com"),
        ['metadata.name: Invalid value: "other.example.com": must be spec.names.plural+"."+spec.group'],
    ),
    (set_("metadata", to={}), ["metadata.name: Required value: name or generateName is required"]),
    (spec(scope=""), ["spec.scope: Required value"]),
    (
        spec(scope="Global"),
        ['spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"'],
    ),
    (
        lambda crd: (set_("metadata", "name", to="widgets.example")(crd), spec(group="example")(crd)),
        ['spec.group: Invalid value: "example": should be a domain with at least one dot'],
    ),
    (names(shortNames=["w", "W"]), [f'spec.names.shortNames[1]: Invalid value: "W": {LABEL}']),
    (
        names(listKind="Widget"),
        ['spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same'],
    ),
    (
        names(kind="My_Widget", singular="widget", listKind="Widgets"),
        [
            'spec.names.kind: Invalid value: "My_Widget": may have mixed case, but should otherwise match: '
            + LABEL
        ],
    ),
    (
        lambda crd: (set_("metadata", "name", to="widgets.x.k8s.io")(crd), spec(group="x.k8s.io")(crd)),
        [
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must "
            "have approval "
            'annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111'
        ],
    ),
    (
        spec(preserveUnknownFields=True),
        [
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
            "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        ],
    ),
]


VERSIONS: list[tuple[Change, list[str]]] = [
    (
        first(storage=False),
        [
            "spec.versions: Invalid value: must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    ),
    (
        lambda crd: crd["spec"]["versions"].append(version("v2", storage=True)),
        [
            "spec.versions: Invalid value: must have exactly one version marked as storage version",
            'status.storedVersions: Invalid value: ["v1"]: must have the storage version v2',
        ],
    ),
    (
        lambda crd: crd["spec"]["versions"].append(version("v1")),
        ["spec.versions: Invalid value: must contain unique version names"],
    ),
    (
        first(name="V1"),
        [
            f'spec.versions[0].name: Invalid value: "V1": {LABEL}',
            f'spec.version: Invalid value: "V1": {LABEL}',
        ],
    ),
    (
        first(deprecationWarning="soon"),
        [
            'spec.versions[0].deprecationWarning: Invalid value: "soon": can only be set for '
            "deprecated versions"
        ],
    ),
    (
        first(deprecated=True, deprecationWarning="é\t"),
        [
            'spec.versions[0].deprecationWarning: Invalid value: "é\\t": must only contain printable UTF-8 '
            "characters; non-printable character found at index 2"
        ],
    ),
    (first(schema=None), ["spec.versions[0].schema.openAPIV3Schema: Required value"]),
    (
        first(subresources={"scale": {"specReplicasPath": ".status.a", "labelSelectorPath": "x"}}),
        [
            'spec.subresources.scale.specReplicasPath: Invalid value: ".status.a": should be a json '
            "path under .spec",
            "spec.subresources.scale.statusReplicasPath: Required value",
            'spec.subresources.scale.labelSelectorPath: Invalid value: "x": must be a simple json '
            "path starting with .",
        ],
    ),
    (
        first(additionalPrinterColumns=[{"name": "A", "type": "float", "jsonPath": "a", "format": "x"}]),
        [
            f'spec.additionalPrinterColumns[0].type: Invalid value: "float": {TYPES}',
            'spec.additionalPrinterColumns[0].format: Invalid value: "x": must be one of '
            "byte,date,date-time,double,float,int32,int64,password",
            'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json '
            "path starting with .",
        ],
    ),
    (
        first(
            selectableFields=[
                {"jsonPath": each} for each in (".spec.a", ".spec.a", ".spec", ".x", ".spec['a']")
            ]
        ),
        [
            'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.a"',
            'spec.selectableFields[2].jsonPath: Invalid value: ".spec": must point to a field of '
            "type string, "
            "boolean or integer. Enum string fields and strings with formats are allowed.",
            'spec.selectableFields[3].jsonPath: Invalid value: ".x": is an invalid path: does not '
            "refer to a valid field",
            "spec.selectableFields[4].jsonPath: Invalid value: \".spec['a']\": is an invalid path: "
            "array notation is "
            "not allowed",
        ],
    ),
]


SCHEMAS: list[tuple[Change, list[str]]] = [
    (schema(nullable=True), [f"{SHARED}.nullable: Forbidden: nullable cannot be true at the root"]),
    (
        a({"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        [
            f"{A}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
            "complexity becomes quadratic"
        ],
    ),
    (
        a({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": False}),
        [f"{A}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    ),
    (a({"type": "string", "$ref": ""}), [f"{A}.$ref: Forbidden: $ref is not supported"]),
    (
        a({"type": "null"}),
        [
            f'{A}.type: Unsupported value: "null": supported values: "array", "boolean", "integer", '
            '"number", '
            '"object", "string"',
            f"{A}.type: Forbidden: type cannot be set to null, use nullable as an alternative",
        ],
    ),
    (
        a({"type": "string", "$schema": "x"}),
        [f"{SHARED}: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"],
    ),
    (
        a({"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
        [f"{A}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
    ),
    (
        schema(properties={"metadata": {"type": "object", "default": {}}}),
        [f"{SHARED}.properties[metadata].default: Forbidden: must not be set in top-level metadata"],
    ),
    (
        a({"type": "object", "default": {"b": 1}}),
        [f'{A}.default: Invalid value: {{"b":1}}: must not have unknown fields'],
    ),
    (
        a({"type": "string", "x-kubernetes-list-type": "bag"}),
        [
            f'{A}.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified',
            f'{A}.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"',
        ],
    ),
    (
        a({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "nullable": True}}),
        [
            f"{A}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with "
            "x-kubernetes-list-type=set",
            f"{A}.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set",
        ],
    ),
    (
        a(
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["b", "c"],
                "items": {"type": "object", "properties": {"b": {"type": "string", "nullable": True}}},
            }
        ),
        [
            f'{A}.x-kubernetes-list-map-keys: Invalid value: ["b","c"]: entries must all be names of '
            "item properties",
            f"{A}.items.properties[b].default: Required value: this property is in "
            "x-kubernetes-list-map-keys, so it "
            "must have a default or be a required property",
            f"{A}.items.properties[b].nullable: Forbidden: this property is in "
            "x-kubernetes-list-map-keys, so it "
            "cannot be nullable",
        ],
    ),
    (
        a({"type": "string", "x-kubernetes-map-type": "atomic"}),
        [f'{A}.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified'],
    ),
    (
        a(
            {
                "type": "string",
                "x-kubernetes-validations": [{"rule": "a\nb"}, {}, {"rule": "a", "reason": "<"}],
            }
        ),
        [
            f"{A}.x-kubernetes-validations[0].message: Required value: message must be specified if "
            "rule contains "
            "line breaks",
            f"{A}.x-kubernetes-validations[1].rule: Required value: rule is not specified",
            f'{A}.x-kubernetes-validations[2].reason: Unsupported value: "\\u003c": supported values: '
            '"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
        ],
    ),
]


WEBHOOK = "spec.conversion.webhookClientConfig"


def webhook(**fields: Any) -> Change:
    return spec(conversion={"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], **fields}})


CONVERSIONS: list[tuple[Change, list[str]]] = [
    (spec(conversion={}), ["spec.conversion.strategy: Required value"]),
    (
        spec(conversion={"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
        [
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set "
            "to Webhook"
        ],
    ),
    (webhook(), [f"{WEBHOOK}: Required value: required when strategy is set to Webhook"]),
    (webhook(clientConfig={}), [f"{WEBHOOK}: Required value: exactly one of url or service is required"]),
    # The server confuses the two.
    (webhook(clientConfig={"service": {"name": "n"}}), [f"{WEBHOOK}.service.name: Required value"]),
    (webhook(clientConfig={"service": {"namespace": "n"}}), [f"{WEBHOOK}.service.namespace: Required value"]),
    (
        webhook(clientConfig={"url": "http://example.com/x?q=1"}),
        [
            f"{WEBHOOK}.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired "
            "format: "
            "https://host[/path]",
            f'{WEBHOOK}.url: Invalid value: "q=1": query parameters are not permitted in the URL',
        ],
    ),
    (
        webhook(clientConfig={"url": "https://example.com"}, conversionReviewVersions=["v2", "v2"]),
        [
            'spec.conversion.conversionReviewVersions[1]: Invalid value: "v2": duplicate version',
            'spec.conversion.conversionReviewVersions: Invalid value: ["v2","v2"]: must include at '
            "least one of "
            "v1, v1beta1",
        ],
    ),
]
