"""The rules for updating a CRD, each with the API server's path and message (Kubernetes 1.37)."""

import copy
from typing import Any

import pytest

from crdkeeper.apiserver.definitions.update import check_update
from tests.unit.apiserver.definitions.cases import (
    Change,
    Crd,
    a,
    definition,
    first,
    names,
    set_,
    spec,
    version,
)

LIST_TYPE = "x-kubernetes-list-type"
RULES = "x-kubernetes-validations"
ESTABLISHED = {"type": "Established", "status": "True"}
A = "spec.validation.openAPIV3Schema.properties[spec].properties[a]"


def stored(*more: Crd, established: bool = True) -> Crd:
    """A CRD as stored by the API server."""
    crd = definition(*more)
    crd["metadata"] |= {"uid": "u", "resourceVersion": "7", "generation": 1}
    crd["status"] = {
        "storedVersions": ["v1"],
        "conditions": [ESTABLISHED] if established else [],
        "acceptedNames": crd["spec"]["names"],
    }
    return crd


def said(new: Crd, old: Crd, *, complete: bool = True) -> list[str]:
    report = check_update(new, old, complete=complete)
    assert report.unchecked == []
    return [f"{each.path}: {each.message}" for each in report.violations]


def test_no_change() -> None:
    assert said(stored(), stored()) == []


def webhook(bundle: str | list[int | None], *versions: str) -> Any:
    client = {"url": "https://a.b", "caBundle": bundle}
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": list(versions)},
    }


REFUSED: list[tuple[Change, list[str]]] = [
    (
        spec(group="b.example.com"),
        ['spec.group: Invalid value: "b.example.com": field is immutable'],
    ),
    (names(plural="gadgets"), ['spec.names.plural: Invalid value: "gadgets": field is immutable']),
    (names(kind="Gadget"), ['spec.names.kind: Invalid value: "Gadget": field is immutable']),
    (spec(scope="Cluster"), ['spec.scope: Invalid value: "Cluster": field is immutable']),
    (set_("metadata", "name", to="b"), ['metadata.name: Invalid value: "b": field is immutable']),
    (
        set_("metadata", "uid", to="w"),
        ["metadata.uid: Conflict: Precondition failed: UID in precondition: w, UID in object meta: u"],
    ),
    (
        set_("metadata", "resourceVersion", to=""),
        ["metadata.resourceVersion: Invalid value: 0: must be specified for an update"],
    ),
    (
        set_("metadata", "resourceVersion", to="x"),
        [
            'metadata.resourceVersion: Internal error: strconv.ParseUint: parsing "x": invalid syntax',
        ],
    ),
    (
        set_("metadata", "resourceVersion", to="8"),
        [
            "metadata.resourceVersion: Conflict: the object has been modified; please apply your changes to "
            "the latest version and try again"
        ],
    ),
    (
        first(name="v2"),
        [
            'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a '
            "storage version, and must remain in spec.versions until a storage migration ensures no data "
            "remains persisted in v1 and removes v1 from status.storedVersions"
        ],
    ),
    (
        spec(conversion=webhook("eA==", "v1")),
        [
            'spec.conversion.webhookClientConfig.caBundle: Invalid value: "eA==": unable to load root '
            "certificates: unable to parse bytes as PEM block"
        ],
    ),
    # Go's decoder takes bytes as an array of numbers, too.
    (spec(conversion=webhook([], "v1")), []),
    (
        spec(conversion=webhook([120], "v1")),
        [
            'spec.conversion.webhookClientConfig.caBundle: Invalid value: "eA==": unable to load root '
            "certificates: unable to parse bytes as PEM block"
        ],
    ),
    (
        spec(conversion=webhook([120, None, 256], "v1")),
        [
            "spec.conversion.webhook.clientConfig.caBundle: Invalid value: []: must be a string in base64, "
            "not an array"
        ],
    ),
    (set_("metadata", "deletionTimestamp", to="2026-01-02T03:04:05Z"), ["metadata.deletionTimestamp: "
      "Invalid value: field is immutable"]),
    (set_("metadata", "deletionGracePeriodSeconds", to=3), ["metadata.deletionGracePeriodSeconds: "
      "Invalid value: 3: field is immutable"]),
    (set_("metadata", "generateName", to="a/"), ["metadata.generateName: "
      "Invalid value: \"a/\": may not contain '/'"]),
    (
        spec(preserveUnknownFields=True),
        [
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
            "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "messages"), REFUSED)
def test_refused(change: Change, messages: list[str]) -> None:
    new = stored()
    change(new)
    assert said(new, stored()) == messages


@pytest.mark.parametrize(
    "change",
    [
        names(kind="Gadget", listKind="GadgetList"),
        spec(scope="Cluster"),
        spec(conversion=webhook("eA==", "v1")),
    ],
)
def test_before_it_is_established(change: Change) -> None:
    new = stored()
    change(new)
    assert said(new, stored(established=False)) == []


def test_a_manifest_takes_over_the_metadata_of_the_stored_crd() -> None:
    manifest = definition()
    assert said(manifest, stored(), complete=False) == []
    assert said(manifest, stored()) == [
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    ]
    assert said(definition(), definition(), complete=False) == []


@pytest.mark.parametrize("status", [None, {}, {"storedVersions": []}])
def test_without_stored_versions_the_storage_version_is_one(status: Any) -> None:
    # As in SetDefaults_CustomResourceDefinition, whenever the API server decodes a CRD.
    old, new = stored(version("v2")), stored(version("v2", storage=True))
    old["status"] = status
    new["spec"]["versions"].pop(0)
    (message,) = said(new, old)
    assert message.startswith(
        'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was'
    )
    new = stored(version("v2"))
    new["spec"]["versions"].pop(1)
    assert said(new, old) == []


def test_a_new_storage_version_joins_the_stored_ones() -> None:
    new = stored(version("v2", storage=True))
    new["spec"]["versions"][0]["storage"] = False
    assert said(new, stored()) == []


def test_finalizers_of_a_crd_that_is_being_deleted() -> None:
    old = stored()
    old["metadata"] |= {"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["a.b/c"]}
    new = copy.deepcopy(old)
    new["metadata"]["finalizers"] = ["a.b/c", "a.b/d"]
    assert said(new, old) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"a.b/d"}'
    ]


def test_approval_may_stay_as_it_is() -> None:
    old = stored()
    old["metadata"]["name"], old["spec"]["group"] = "widgets.x.k8s.io", "x.k8s.io"
    assert said(old, old) == []
    new = copy.deepcopy(old)
    new["metadata"]["annotations"] = {"api-approved.kubernetes.io": "me"}
    (message,) = said(new, old)
    assert message.startswith(
        "metadata.annotations[api-approved.kubernetes.io]: Invalid value: "
        '"me": protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL'
    )


ITEM = {"type": "object", "properties": {"k": {"type": "string"}}}
TYPES = '"array", "boolean", "integer", "number", "object", "string"'
SET = "must be atomic as item of a list with x-kubernetes-list-type=set"
RATCHETED: list[tuple[Any, list[str]]] = [
    ({"type": "any"}, [f'{A}.type: Unsupported value: "any": supported values: {TYPES}']),
    (
        {"type": "object", "default": {"x": 1}},
        [f'{A}.default: Invalid value: {{"x":1}}: must not have unknown fields'],
    ),
    (
        {"type": "array", LIST_TYPE: "set", "items": ITEM},
        [f"{A}.items.x-kubernetes-map-type: Invalid value: null: {SET}"],
    ),
    (
        {"type": "array", LIST_TYPE: "set", "items": {"type": "string", "nullable": True}},
        [f"{A}.items.nullable: Forbidden: cannot be nullable when {LIST_TYPE} is set"],
    ),
]


@pytest.mark.parametrize(("schema", "messages"), RATCHETED)
def test_what_the_old_one_violates_is_not_held_against_the_new_one(schema: Any, messages: list[str]) -> None:
    new, same = stored(), stored()
    a(schema)(new)
    a(schema)(same)
    assert said(new, stored()) == messages
    assert said(new, same) == []


def test_preserving_crds_need_no_structural_schema() -> None:
    old = stored()
    spec(preserveUnknownFields=True)(old)
    new = copy.deepcopy(old)
    a({"$ref": "#/definitions/b", "minLength": 1})(old)
    assert said(new, old) == []
    a({"minLength": 1})(new)
    assert said(new, old) == []
    # Some features require one in any case.
    a({"minLength": 1, "x-kubernetes-int-or-string": False, LIST_TYPE: "atomic"})(new)
    assert f"{A}.type: Required value: must not be empty for specified object fields" in said(new, old)
    # And if the old one does not violate the rule, it applies.
    a({"type": "string"})(old)
    a({"minLength": 1})(new)
    assert said(new, old) == [f"{A}.type: Required value: must not be empty for specified object fields"]


def test_schemas_may_stay_missing_where_fields_are_preserved() -> None:
    old = stored()
    del old["spec"]["versions"][0]["schema"]
    new = copy.deepcopy(old)
    assert said(new, old) == [
        "spec.versions[0].schema.openAPIV3Schema: Required value: because otherwise all fields are pruned"
    ]
    new["spec"]["versions"][0]["served"] = False
    assert said(new, old) == []


def test_review_versions_that_no_server_knows() -> None:
    old = stored()
    spec(conversion=webhook("", "v7"))(old)
    assert said(old, old) == []
    (message,) = said(old, stored())
    assert message.endswith(
        '.conversionReviewVersions: Invalid value: ["v7"]: must include at least one of v1, v1beta1'
    )


def test_many_selectable_fields_may_stay() -> None:
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    old = stored()
    a(free)(old)
    first(selectableFields=[{"jsonPath": f".spec.a.k{i}"} for i in range(9)])(old)
    assert said(old, old) == []
    new = copy.deepcopy(old)
    first(selectableFields=[{"jsonPath": f".spec.a.j{i}"} for i in range(9)])(new)
    assert said(new, old) == ["spec.selectableFields: Too many: 9: must have at most 8 items"]


def test_dear_expressions_may_stay_where_the_schema_is_the_same() -> None:
    # Nested loops over a list without limits.
    rule = {"rule": "self.all(x, self.all(y, x == y))"}
    dear = {"type": "array", "items": {"type": "string"}, RULES: [rule]}
    old = stored()
    a(dear)(old)
    (one, *_) = said(old, stored())
    assert one.startswith(f"{A}.{RULES}[0].rule: Forbidden: estimated rule cost exceeds budget by factor of")
    # The cost of all expressions together is limited all the same.
    assert said(old, old)
    assert not any("estimated rule cost exceeds" in each for each in said(old, old))


def test_an_old_crd_that_nests_too_deep_is_left_to_the_server() -> None:
    below: Any = {"type": "object"}
    old = stored()
    for _ in range(3000):
        below = {"type": "object", "properties": {"a": below}}
    a(below)(old)
    report = check_update(stored(), old)
    assert [str(each.path) for each in report.unchecked] == ["spec"]
