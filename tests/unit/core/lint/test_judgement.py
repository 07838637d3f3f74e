"""Where a rule by name or shape would annoy: what stands around a field decides what is said of it."""

from typing import Any

import pytest

from crdkeeper.core.lint.severity import Severity
from tests.unit.core.lint.definitions import NUMBER, TEXT, check, definition, schema, version

Json = dict[str, Any]
OBJECT: Json = {"type": "object", "description": "Said."}
OPEN: Json = {"x-kubernetes-preserve-unknown-fields": True}


def said(text: str) -> Json:
    return {**TEXT, "description": text}


def holding(**fields: Json) -> Json:
    return {**OBJECT, "properties": fields}


def listed(items: Json) -> Json:
    return {"type": "array", "maxItems": 2, "description": "All.", "items": items}


def found(spec: Json, id: str) -> list[Severity]:
    """The severities of the findings of a rule."""
    crd = definition(version(schema(spec)))
    return [each.severity for each in check(crd) if each.rule.id == id]


PASSWORD = said("The password of the user.")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"password": PASSWORD}, 1),
        ({"login": holding(user=TEXT, password=PASSWORD)}, 1),
        ({"clientSecret": TEXT}, 1),
        ({"privateKey": said("Path of the file with the private key.")}, 0),
        ({"apiKey": said("The key of the Secret that has it.")}, 0),
        ({"accessToken": said("Name of the environment variable.")}, 0),
        ({"login": holding(secretName=TEXT, password=said("What it is called."))}, 0),
        ({"login": holding(password=PASSWORD, passwordFrom=OBJECT)}, 0),
        ({"login": holding(password=PASSWORD, secretRef=OBJECT)}, 0),
        ({"secretKeys": holding(password=said("What it is called."))}, 0),
        ({"authSecret": holding(password=said("What it is called."))}, 0),
        ({"tokenRef": holding(accessToken=TEXT)}, 0),
        ({"encryptedPassword": PASSWORD}, 0),
        ({"privateKey": said("Required for mutual TLS.")}, 0),
        ({"privateKey": said("The key, PEM encoded.")}, 1),
        ({"login": holding(password=PASSWORD, credentialName=TEXT)}, 0),
        ({"password": {**PASSWORD, "enum": ["None", "Required"]}}, 0),
        ({"api_key": TEXT}, 1),
        ({"client-secret": TEXT}, 1),
        ({"private_key": said("Required for mutual TLS.")}, 0),
        ({"private_key": said("The key, PEM encoded.")}, 1),
        ({"privateKey": said("PrivateKey is the private key that signs requests.")}, 1),
        ({"privateKey": said("The private key of the server, as the path of a file.")}, 0),
        ({"serviceToken": said("An Example service token, used to call the Example API.")}, 1),
        ({"serviceToken": said("Token is the token of the account.")}, 1),
        ({"serviceToken": TEXT}, 0),
        ({"clientToken": said("A unique token that makes the request idempotent.")}, 0),
        ({"perToken": said("PerToken is the cost per token")}, 0),
        ({"nextToken": said("The token of the next page.")}, 0),
        ({"serviceToken": said("The token type that is expected.")}, 0),
        ({"serviceToken": said("The token of the account, in a Secret.")}, 0),
        ({"nextToken": said("Which page of results follows.")}, 0),
        ({"secret_key": said("The secret key of the account.")}, 1),
        ({"secretKey": said("The secret key of the account.")}, 1),
        ({"secretKey": TEXT}, 0),
        ({"secretKey": said("The secret key that contains the password.")}, 0),
        ({"secretKey": said("The secret key in the Secret.")}, 0),
        ({"key": said("The key that signs requests.")}, 0),
        ({"password": PASSWORD, "secretName": said("Secret that the operator will create.")}, 1),
        ({"password": PASSWORD, "secretName": said("Secret where it is stored.")}, 0),
        ({"basic": holding(value=holding(password=PASSWORD), secretRef=OBJECT)}, 0),
        ({"basic": holding(value=holding(password=PASSWORD), valueFrom=OBJECT)}, 0),
        ({"basic": holding(value=holding(password=PASSWORD), existingSecret=TEXT)}, 0),
        ({"users": listed(holding(password=PASSWORD)), "userSecretRef": OBJECT}, 0),
        ({"basic": holding(value=holding(password=PASSWORD), color=TEXT)}, 1),
        ({"basic": holding(value=holding(password=PASSWORD)), "secretRef": OBJECT}, 1),
        ({"login": holding(password=PASSWORD), "secretName": said("Where it will write a copy.")}, 1),
    ],
)
def test_a_secret_is_one_and_not_the_way_to_one(spec: Json, expected: int) -> None:
    assert len(found(spec, "secret-text")) == expected


WAIT = said("Given up after this time, a Go duration.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Given up after this time, such as 5m.", Severity.INFO),
        ("Given up after this time, e.g. 1s, 30m, 2h...", Severity.INFO),
        ("Given up after this time. Defaults to 5m.", Severity.INFO),
        ("Given up after this time (default: 5m or 1h).", Severity.INFO),
        ("Must be valid. Such as 5m.", Severity.INFO),
        ("Must be in the form of 5m.", Severity.WARNING),
        ("Must be a duration string. Defaults to 5m.", Severity.WARNING),
        ("Format: 5m, 1h30m.", Severity.WARNING),
        ("A Go duration.", Severity.WARNING),
        ("Specified as Golang duration strings.", Severity.WARNING),
        ("Is parsed by time.ParseDuration.", Severity.WARNING),
        ("A metav1.Duration.", Severity.WARNING),
        ("Duration is a wrapper around time.Duration.", Severity.WARNING),
        ('Valid time units are "ns", "us", "ms", "s", "m", "h".', Severity.WARNING),
        ("Must be a duration string.", Severity.WARNING),
        ("Given up after this time.", Severity.INFO),
        ("As ISO 8601: P1D.", Severity.INFO),
        ("Must be in ISO 8601, such as P1D.", Severity.INFO),
    ],
)
def test_a_duration_is_go_s_where_something_says_so(text: str, expected: Severity) -> None:
    assert found({"timeout": said(text)}, "duration-text") == [expected]


@pytest.mark.parametrize(
    ("default", "text", "expected"),
    [
        ("1h0m0s", "", Severity.INFO),
        ("10s", "Given up after this time. Defaults to 10s.", Severity.INFO),
        ("10s", "Must be in the format 1h30m. Defaults to 10s.", Severity.WARNING),
        ("10s", "Given up after this time. Defaults to ten seconds.", Severity.INFO),
        ("1h0m0s", "Given up after this time. Defaults to 60m.", Severity.INFO),
        ("10s", "Must be valid, and defaults to 10s.", Severity.INFO),
        ("10s", "A Go duration.", Severity.WARNING),
        ("10s", "Must be in the format 300ms or 2h45m.", Severity.WARNING),
        ("never", "", Severity.INFO),
        ("never", "Given up after 10s.", Severity.INFO),
    ],
)
def test_a_default_shows_users_a_duration_and_promises_no_format(
    default: str, text: str, expected: Severity
) -> None:
    assert found({"timeout": {**said(text), "default": default}}, "duration-text") == [expected]


def test_a_status_that_is_no_subresource_cannot_observe_its_generation() -> None:
    for status, spec, required, expected in (
        ({"observedGeneration": NUMBER}, True, ["spec"], Severity.WARNING),
        ({"observedGeneration": NUMBER}, False, [], Severity.INFO),
        ({}, True, [], Severity.INFO),
        ({"address": TEXT}, True, [], Severity.INFO),
        # With the subresource, no object could be created.
        ({"observedGeneration": NUMBER}, True, ["spec", "status"], Severity.INFO),
    ):
        content = schema(status=status, required=required)
        if not spec:
            del content["properties"]["spec"]
        crd = definition(version(content, subresources=None))
        (one,) = [each for each in check(crd) if each.rule.id == "status-subresource"]
        assert one.severity is expected


def test_only_pods_have_a_selector() -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    pod = {"type": "object", "properties": {"containers": {"type": "array", "items": OBJECT}}}
    machine = {"type": "object", "properties": {"clusterName": TEXT}}
    for spec, expected in (
        ({}, Severity.INFO),
        ({"selector": TEXT}, Severity.WARNING),
        ({"template": holding(spec=pod)}, Severity.WARNING),
        ({"template": pod}, Severity.WARNING),
        ({"template": {**OBJECT, **OPEN}}, Severity.WARNING),
        ({"template": holding(spec={**OBJECT, **OPEN})}, Severity.WARNING),
        ({"template": holding(spec=machine)}, Severity.INFO),
        ({"template": TEXT}, Severity.INFO),
    ):
        content = schema({"size": NUMBER, **spec}, {"size": NUMBER})
        crd = definition(version(content, subresources={"status": {}, "scale": scale}))
        (one,) = [each for each in check(crd) if each.rule.id == "scale-selector"]
        assert one.severity is expected


def test_a_version_that_goes_is_not_to_be_improved() -> None:
    old = version(schema({"timeout": WAIT}), "v1beta1", deprecated=True, storage=False)
    new = version(schema({"timeout": WAIT}), "v1")
    severities = {each.field: each.severity for each in check(definition(old, new))}
    assert severities == {"v1beta1:.spec.timeout": Severity.INFO, "v1:.spec.timeout": Severity.WARNING}
    wrong = version(schema({"x": {**TEXT, "minLength": 65}}), "v1beta1", deprecated=True, storage=False)
    (error,) = check(definition(wrong, version(schema({"x": TEXT}), "v1")))
    assert error.severity is Severity.ERROR


@pytest.mark.parametrize(
    "names", [{"kind": "widget"}, {"plural": "wid-gets"}, {"singular": "wid"}, {"listKind": "Widgets"}]
)
def test_names_that_never_change_are_only_info(names: Json) -> None:
    assert {each.severity for each in check(definition(names=names))} == {Severity.INFO}


def test_a_version_keeps_its_name() -> None:
    assert {each.severity for each in check(definition(version(name="version1")))} == {Severity.INFO}


def test_where_all_is_deprecated_nothing_better_can_be_stored() -> None:
    assert check(definition(version(deprecated=True, deprecationWarning="Go."))) == []


GENERATED = {"controller-gen.kubebuilder.io/version": "v0.18.0"}


@pytest.mark.parametrize(
    ("old", "new", "annotations", "conversion", "expected"),
    [
        ("string", "integer", GENERATED, {}, Severity.INFO),
        ("number", "string", GENERATED, {}, Severity.INFO),
        ("string", "integer", GENERATED, {"strategy": "None"}, Severity.WARNING),
        ("string", "integer", {}, {}, Severity.WARNING),
        ("integer", "number", GENERATED, {}, Severity.WARNING),
        ("number", "integer", GENERATED, {}, Severity.WARNING),
    ],
)
def test_only_a_generated_file_with_types_that_share_no_value_awaits_a_webhook(
    old: str, new: str, annotations: dict[str, str], conversion: dict[str, str], expected: Severity
) -> None:
    before = version(schema({"x": {"type": old, "description": "It."}}), "v1beta1", storage=False)
    after = version(schema({"x": {"type": new, "description": "It."}}), "v1")
    crd = definition(before, after, metadata={"name": "widgets.example.com", "annotations": annotations})
    crd["spec"].update({"conversion": conversion} if conversion else {})
    lost = [each for each in check(crd) if each.rule.id == "conversion-loss"]
    assert [each.severity for each in lost] == [expected]


IMMUTABLE = {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "No."}]}


def test_to_preserve_unknown_fields_is_a_decision() -> None:
    content = schema({"size": NUMBER}, spec_keywords=OPEN, **OPEN)
    content["properties"]["status"].update(OPEN)
    reported = [each for each in check(definition(version(content))) if each.rule.id == "open-schema"]
    assert {each.field: each.severity for each in reported} == {
        "v1alpha1": Severity.INFO,
        "v1alpha1:.spec": Severity.INFO,
        "v1alpha1:.status": Severity.INFO,
    }


CONDITION_NAMES = ["type", "status", "reason", "message", "lastTransitionTime"]
METAV1 = [*CONDITION_NAMES, "observedGeneration"]


@pytest.mark.parametrize(
    ("names", "required", "expected"),
    [
        (METAV1, CONDITION_NAMES, Severity.WARNING),
        (METAV1, CONDITION_NAMES[:4], Severity.INFO),
        (METAV1, [], Severity.INFO),
        (CONDITION_NAMES, CONDITION_NAMES, Severity.INFO),
        ([*CONDITION_NAMES, "lastUpdateTime"], CONDITION_NAMES, Severity.INFO),
        ([*METAV1, "severity"], CONDITION_NAMES, Severity.INFO),
    ],
)
def test_conditions_by_other_keys_than_type_are_a_mistake_in_those_of_metav1(
    names: list[str], required: list[str], expected: Severity
) -> None:
    item = {**OBJECT, "properties": dict.fromkeys(names, TEXT), "required": required}
    by_status = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["status"]}
    crd = definition(version(schema(status={"conditions": {**listed(item), **by_status}})))
    (one,) = [each for each in check(crd) if each.rule.id == "conditions-list"]
    assert one.severity is expected


@pytest.mark.parametrize("kind", [{}, {"x-kubernetes-list-type": "atomic"}])
def test_conditions_with_one_writer_need_no_map(kind: Json) -> None:
    item = {**OBJECT, "properties": dict.fromkeys(METAV1, TEXT), "required": CONDITION_NAMES}
    crd = definition(version(schema(status={"conditions": {**listed(item), **kind}})))
    (one,) = [each for each in check(crd) if each.rule.id == "conditions-list"]
    assert one.severity is Severity.INFO


def test_a_status_without_subresource_that_must_be_there() -> None:
    crd = definition(version(schema(required=["status"]), subresources=None))
    (one,) = [each for each in check(crd) if each.rule.id == "status-required"]
    assert one.severity is Severity.INFO
    assert one.message == "is required at the root, so no object can be created without it"


def test_a_foreign_format_with_bounds_is_only_info() -> None:
    bounded = {**NUMBER, "format": "uint32", "minimum": 0}
    assert found({"x": bounded}, "format-unknown") == [Severity.INFO]
    assert found({"x": {**NUMBER, "format": "uint32"}}, "format-unknown") == [Severity.WARNING]


# The fields of types of Kubernetes, and of types that only look a little like them.
TYPES: list[tuple[bool, tuple[str, ...]]] = [
    (True, ("labels", "annotations", "name")),
    (True, ("annotations", "labels")),
    (False, ("labels", "annotations", "color")),
    (False, ("labels", "name")),
    (True, ("key", "name", "optional")),
    (True, ("name", "optional")),
    (False, ("key", "name", "value")),
    (True, ("apiGroup", "kind", "name")),
    (True, ("apiGroup", "kind", "name", "namespace")),
    (True, ("apiVersion", "kind", "name")),
    (False, ("apiVersion", "kind", "name", "color")),
    (True, ("name", "namespace")),
    (True, ("key", "operator", "values")),
    (True, ("claims", "limits", "requests")),
    (True, ("mountPath", "name", "readOnly", "subPath", "subPathExpr")),
    (True, ("lastTransitionTime", "message", "reason", "status", "type")),
    (True, ("matchExpressions", "matchLabels")),
    (True, ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")),
    (True, ("containers", "ephemeralContainers", "initContainers", "volumes")),
    (False, ("containers", "name")),
    (True, ("name", "port", "protocol", "targetPort")),
    (False, ("color", "port", "protocol", "targetPort")),
    (True, ("configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef")),
]


@pytest.mark.parametrize(("borrowed", "fields"), TYPES)
def test_the_fields_of_a_type_of_kubernetes_are_not_the_authors(
    borrowed: bool, fields: tuple[str, ...]
) -> None:
    undescribed = {"type": "string"}
    crd = definition(version(schema({"x": holding(**dict.fromkeys(fields, undescribed))})))
    inside = {
        each.field.rpartition(".")[2] for each in check(crd) if each.field.startswith("v1alpha1:.spec.x.")
    }
    assert inside == (set() if borrowed else set(fields))


def test_keywords_that_a_configuration_forbids() -> None:
    content = schema({"a": {**TEXT, "nullable": True}, "b": {**TEXT, "nullable": False}, "c": TEXT})
    forbidden = frozenset(("nullable", "oneOf"))
    reported = [each for each in check(definition(version(content)), forbidden=forbidden) if each.below]
    assert [(each.rule.id, each.field, each.message) for each in reported] == [
        ("nullable", "v1alpha1:.spec.a", "is nullable"),
        ("forbidden-keyword", "v1alpha1:.spec.a", "nullable is forbidden by the configuration"),
    ]
