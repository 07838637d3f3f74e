"""Each convention about a field: what violates it, and the closest case that does not."""

from typing import Any

import pytest

from tests.unit.core.lint.definitions import CONDITIONS, NUMBER, TEXT, check, definition, schema, version

D = {"description": "Said."}
STRING = {"type": "string", **D}
OBJECT = {"type": "object", **D}
NAMED = {"type": "object", "properties": {"name": {**TEXT, "minLength": 1}}, "required": ["name"], **D}
UNIQUE = {**NAMED, "properties": {"name": {**TEXT, "minLength": 1, "description": "The unique name."}}}
SELECTOR = {**OBJECT, "properties": {"matchLabels": OBJECT, "matchExpressions": {"type": "array"}}}


def listed(items: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    """A list of these items."""
    return {"type": "array", "maxItems": 2, "items": items, **D, **keywords}


def with_field(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    """An object that has these texts as well."""
    return {**schema, "properties": {**schema["properties"], **dict.fromkeys(names, TEXT)}}


def rule(text: str, **fields: Any) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": text, "message": "No.", **fields}]}


UNIQUE_BY_RULE = rule("self.all(x, self.exists_one(y, x.name == y.name))")
UNIQUE_BY_COUNT = rule("self.all(x, size(self.filter(y, y.name == x.name)) == 1)")
UNIQUE_NAMESPACES = rule("self.all(x, self.exists_one(y, x.namespace == y.namespace))")

# id, name of the field, its schema that violates the convention, one that follows it
FIELDS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("boolean", "on", {"type": "boolean", **D}, {"enum": ["On", "Off"], **STRING}),
    ("bounds", "x", {**TEXT, "minLength": 65}, {**TEXT, "minLength": 64}),
    ("bounds", "x", {**NUMBER, "minimum": 2, "maximum": 1}, {**NUMBER, "minimum": 1, "maximum": 1}),
    (
        "bounds",
        "x",
        {**NUMBER, "minimum": 1, "maximum": 1, "exclusiveMaximum": True},
        {**NUMBER, "minimum": 1, "maximum": 2, "exclusiveMaximum": True},
    ),
    ("description", "x", {"type": "string", "maxLength": 3}, TEXT),
    ("duration-text", "timeout", TEXT, {**TEXT, "pattern": "^[0-9]+s$"}),
    (
        "duration-text",
        "drainTimeout",
        TEXT,
        {**TEXT, "x-kubernetes-validations": [{"rule": "!", "message": "!"}]},
    ),
    ("duration-text", "retryInterval", TEXT, {**TEXT, "format": "duration"}),
    ("empty-object", "x", OBJECT, {**OBJECT, "properties": {"a": TEXT}}),
    ("empty-object", "x", OBJECT, {**OBJECT, "x-kubernetes-preserve-unknown-fields": True}),
    ("empty-object", "x", OBJECT, {**OBJECT, "additionalProperties": TEXT, "maxProperties": 3}),
    ("enum-case", "x", {"enum": ["On", "dark-red"], **STRING}, {"enum": ["On", "DarkRed", ""], **STRING}),
    (
        "explain-fails",
        "x",
        {**NAMED, "allOf": [{"properties": {"name": {}}}]},
        {**NAMED, "allOf": [{"properties": {"name": {"minLength": 1}}}]},
    ),
    (
        "explain-fails",
        "x",
        {**NAMED, "allOf": [{"allOf": [{"properties": {"name": {"enum": []}}}]}]},
        {**NAMED, "anyOf": [{"properties": {"name": {}}}]},
    ),
    ("openapi-v2", "x", {**NAMED, "nullable": True}, NAMED),
    (
        "set-of-objects",
        "x",
        {"type": "array", "x-kubernetes-list-type": "set", "items": OBJECT, "maxItems": 3, **D},
        {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT, "maxItems": 3, **D},
    ),
    ("openapi-v2", "x", {**NAMED, "x-kubernetes-preserve-unknown-fields": True}, {**TEXT, "nullable": True}),
    ("openapi-v2", "x", {"type": "array", "items": NAMED, "nullable": True, **D}, NAMED),
    ("field-name", "drain_nodes", TEXT, TEXT),
    ("field-name", "Drain", TEXT, TEXT),
    ("float", "x", {"type": "number", **D}, NUMBER),
    ("format-unknown", "x", {**TEXT, "format": "hostport"}, {**TEXT, "format": "k8s-short-name"}),
    ("format-unknown", "x", {**NUMBER, "format": "uint32"}, {**NUMBER, "format": "int64"}),
    ("format-unknown", "x", {**OBJECT, "format": "uri"}, {**TEXT, "format": "uri"}),
    ("keyword-type", "x", {**NUMBER, "maxLength": 3}, {**NUMBER, "maximum": 3}),
    ("keyword-type", "x", {**TEXT, "minimum": 3}, {**TEXT, "minLength": 3}),
    (
        "keyword-type",
        "x",
        {
            "type": "array",
            "items": TEXT,
            "maxItems": 2,
            "pattern": "^a$",
            "x-kubernetes-list-type": "set",
            **D,
        },
        {"type": "array", "items": TEXT, "maxItems": 2, "minItems": 1, "x-kubernetes-list-type": "set", **D},
    ),
    ("list-of-named", "x", listed(UNIQUE), listed(UNIQUE, **{"x-kubernetes-list-type": "atomic"})),
    ("list-of-named", "x", listed(UNIQUE), listed(NAMED)),
    ("list-of-named", "x", listed(NAMED, description="Their names are unique."), listed(NAMED)),
    (
        "list-of-named",
        "x",
        listed(NAMED, description="A list. Their names are unique."),
        listed(NAMED, description="A list. Names in each ConfigMap are unique across all of them."),
    ),
    ("list-of-named", "x", listed(UNIQUE, **rule("self.size() > 0")), listed(UNIQUE, **UNIQUE_BY_RULE)),
    ("list-of-named", "x", listed(UNIQUE), listed(UNIQUE, **UNIQUE_BY_COUNT)),
    ("list-of-named", "x", listed(UNIQUE, **UNIQUE_NAMESPACES), listed(UNIQUE, **UNIQUE_BY_RULE)),
    ("list-of-named", "x", listed(UNIQUE), listed({**UNIQUE, "required": []})),
    ("list-of-named", "x", listed(UNIQUE), listed(with_field(UNIQUE, "kind"))),
    (
        "list-of-named",
        "x",
        listed(UNIQUE),
        listed(with_field(UNIQUE, "terminationMessagePath", "image", "imagePullPolicy")),
    ),
    ("optional-entries", "x", listed({**NAMED, "required": []}), listed(NAMED)),
    ("optional-entries", "x", listed({**NAMED, "required": []}), listed({**NAMED, "oneOf": [{}]})),
    ("optional-entries", "x", listed({**NAMED, "required": []}), listed(SELECTOR)),
    ("min-length", "x", {**OBJECT, "properties": {"name": TEXT}, "required": ["name"]}, NAMED),
    (
        "min-length",
        "x",
        {**OBJECT, "properties": {"name": TEXT}, "required": ["name"]},
        {**OBJECT, "properties": {"name": TEXT}},
    ),
    ("reference-name", "poolReference", TEXT, TEXT),
    ("reference-name", "poolReferences", TEXT, TEXT),
    ("time-name", "drainTimestamp", {**TEXT, "format": "date-time"}, {**TEXT, "format": "date-time"}),
    (
        "list-type-missing",
        "conditions",
        {"type": "array", "maxItems": 2, "items": TEXT, **D},
        {"type": "array", "maxItems": 2, "items": TEXT, "x-kubernetes-list-type": "atomic", **D},
    ),
    (
        "list-type-missing",
        "x",
        {"type": "array", "maxItems": 2, "items": TEXT, **D},
        {"type": "array", "maxItems": 2, "items": TEXT, "x-kubernetes-list-type": "set", **D},
    ),
    (
        "map-of-objects",
        "x",
        {**OBJECT, "maxProperties": 3, "additionalProperties": NAMED},
        {**OBJECT, "maxProperties": 3, "additionalProperties": TEXT},
    ),
    ("nullable", "x", {**TEXT, "nullable": True}, TEXT),
    ("pattern-anchors", "x", {**TEXT, "pattern": "[a-z]+"}, {**TEXT, "pattern": "^[a-z]+$"}),
    ("pattern-anchors", "x", {**TEXT, "pattern": "ab|cd"}, {**TEXT, "pattern": "\\S+"}),
    ("pattern-alternation", "x", {**TEXT, "pattern": "^a|b$"}, {**TEXT, "pattern": "^(a|b)$"}),
    ("pattern-alternation", "x", {**TEXT, "pattern": "^a|b$"}, {**TEXT, "pattern": "^a$|^b$"}),
    ("pattern-alternation", "x", {**TEXT, "pattern": "^a|b$"}, {**TEXT, "pattern": "^.*|b$"}),
    ("pattern-alternation", "x", {**TEXT, "pattern": "^a|b$"}, {**TEXT, "pattern": "^a|b$", "enum": ["a"]}),
    ("quantity-text", "maxMemory", TEXT, {**TEXT, "pattern": "^[0-9]+Mi$"}),
    ("reference-shape", "poolRef", TEXT, NAMED),
    ("reference-shape", "poolRef", {**OBJECT, "properties": {"id": TEXT}}, NAMED),
    ("required-undefined", "x", {**NAMED, "required": ["name", "id"]}, NAMED),
    (
        "required-undefined",
        "x",
        {**NAMED, "anyOf": [{"required": ["id"]}]},
        {**NAMED, "anyOf": [{"required": ["name"]}]},
    ),
    (
        "required-undefined",
        "x",
        {**OBJECT, "required": ["id"]},
        {**OBJECT, "additionalProperties": TEXT, "maxProperties": 2, "required": ["id"]},
    ),
    (
        "required-default",
        "x",
        {**NAMED, "properties": {"name": {**TEXT, "default": "a"}}},
        {**OBJECT, "properties": {"name": {**TEXT, "default": "a"}}},
    ),
    (
        "rule-message",
        "x",
        {**TEXT, "x-kubernetes-validations": [{"rule": "self != ''"}]},
        {**TEXT, "x-kubernetes-validations": [{"rule": "self != ''", "messageExpression": "'no'"}]},
    ),
    ("secret-text", "adminPassword", TEXT, NAMED),
    (
        "template-metadata",
        "x",
        {**OBJECT, "properties": {"metadata": OBJECT, "spec": NAMED}},
        {**OBJECT, "properties": {"metadata": {**OBJECT, "properties": {"labels": NAMED}}, "spec": NAMED}},
    ),
    (
        "template-metadata",
        "x",
        {**OBJECT, "properties": {"metadata": OBJECT, "spec": NAMED}},
        {
            **OBJECT,
            "x-kubernetes-embedded-resource": True,
            "properties": {"metadata": OBJECT, "spec": NAMED},
        },
    ),
    ("time-text", "startTime", TEXT, {**TEXT, "format": "date-time"}),
    ("unbounded", "x", STRING, TEXT),
    (
        "unbounded",
        "x",
        {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set", **D},
        {"type": "array", "items": TEXT, "maxItems": 2, "x-kubernetes-list-type": "set", **D},
    ),
    (
        "unbounded",
        "x",
        {**OBJECT, "additionalProperties": TEXT},
        {**OBJECT, "additionalProperties": TEXT, "maxProperties": 2},
    ),
    ("duration-unit", "timeout", NUMBER, {"type": "integer", "format": "int64", **D}),
    ("duration-unit", "timeout", NUMBER, {**NUMBER, "description": "Given up after so many seconds."}),
    (
        "duration-unit",
        "delay",
        {**NUMBER, "description": "When requests become delayed."},
        {**NUMBER, "description": "A limit at which requests become delayed."},
    ),
]

# Where only the name makes the difference, a name that follows the convention.
OTHER_NAMES = {
    "field-name": "drainNodes",
    "duration-unit": "timeoutSeconds",
    "reference-name": "poolRef",
    "time-name": "drainTime",
}


@pytest.mark.parametrize(("id", "name", "bad", "good"), FIELDS)
def test_a_field(id: str, name: str, bad: dict[str, Any], good: dict[str, Any]) -> None:
    findings = [each for each in check(definition(version(schema({name: bad})))) if each.rule.id == id]
    assert findings, "the breach is not found"
    assert all(each.field.startswith(f"v1alpha1:.spec.{name}") for each in findings)
    assert all(each.owner == each.steps[: len(each.owner)] for each in findings)
    kept = check(definition(version(schema({OTHER_NAMES.get(id, name): good}))))
    assert id not in {each.rule.id for each in kept}


@pytest.mark.parametrize(
    ("field", "spec_keywords", "expected"),
    [
        (rule("self == oldSelf"), {}, 1),
        (rule(" oldSelf==self "), {}, 1),
        (rule("self == oldSelf"), {"required": ["x"]}, 0),
        ({**rule("self == oldSelf"), "default": "a"}, {}, 0),
        (rule("self == oldSelf"), rule("has(self.x) == has(oldSelf.x)"), 0),
        (rule("self == oldSelf"), rule("has(self.y) == has(oldSelf.y)"), 1),
        (rule("self == oldSelf.orValue(self)", optionalOldSelf=True), {}, 0),
        (rule("self >= oldSelf"), {}, 0),
    ],
)
def test_immutable_bypass(field: dict[str, Any], spec_keywords: dict[str, Any], expected: int) -> None:
    content = schema({"x": {**TEXT, **field}}, spec_keywords=spec_keywords)
    found = [each for each in check(definition(version(content))) if each.rule.id == "immutable-bypass"]
    assert len(found) == expected


def test_keys_of_a_map_list_may_be_required_and_have_a_default() -> None:
    item = {**NAMED, "properties": {"name": {**TEXT, "default": "a"}}}
    ports = {
        "type": "array",
        "maxItems": 3,
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        **D,
    }
    assert not check(definition(version(schema({"ports": ports}))))


@pytest.mark.parametrize("name", ["status.x", "spec.x"])
def test_what_a_controller_writes_need_not_be_guarded(name: str) -> None:
    area = name.partition(".")[0]
    fields = {"timeout": TEXT, "adminPassword": TEXT, "on": {"type": "boolean", **D}, "ttl": NUMBER}
    found = check(definition(version(schema(**{area: fields}))))
    assert {each.rule.id for each in found} == (
        set() if area == "status" else {"duration-text", "secret-text", "boolean", "duration-unit"}
    )


def test_an_empty_template_metadata_is_said_once() -> None:
    template = {**OBJECT, "properties": {"metadata": OBJECT, "spec": NAMED}}
    found = {each.rule.id for each in check(definition(version(schema({"x": template}))))}
    assert "empty-object" not in found
    # Nobody creates objects from what a status contains.
    found = {each.rule.id for each in check(definition(version(schema(status={"x": template}))))}
    assert "template-metadata" not in found
    alone = {**OBJECT, "properties": {"metadata": OBJECT}}
    found = {each.rule.id for each in check(definition(version(schema({"x": alone}))))}
    assert found == {"empty-object"}


def test_what_every_object_has_may_be_required() -> None:
    required = ["apiVersion", "kind", "metadata"]
    embedded = {**NAMED, "x-kubernetes-embedded-resource": True, "required": required}
    plain = {**NAMED, "required": required}
    for field, expected in ((embedded, 0), (plain, 3)):
        bare = schema({"x": field}, required=required)
        for name in required:
            del bare["properties"][name]
        found = [each.rule.id for each in check(definition(version(bare)))]
        assert found.count("required-undefined") == expected


def test_a_root_without_properties_is_free_to_be() -> None:
    bare = version({"type": "object", "description": "Nothing."}, subresources=None)
    found = {each.rule.id for each in check(definition({**bare, "additionalPrinterColumns": []}))}
    assert found == set()


def test_names_in_more_than_an_alpha_version_are_what_they_are() -> None:
    fields = {"drain_nodes": TEXT, "timeout": NUMBER, "retryInterval": TEXT}
    for name, severities in (
        ("v1", ["info", "info", "info"]),
        ("v1beta1", ["info", "info", "info"]),
        ("v1alpha1", ["info", "warning", "info"]),
    ):
        found = check(definition(version(schema(fields), name)))
        assert [each.severity.value for each in found] == severities


@pytest.mark.parametrize(
    "borrowed",
    [
        {"containers": {}, "initContainers": {}, "nodeSelector": {}, "serviceAccountName": {}, "volumes": {}},
        {"matchExpressions": {}, "matchLabels": {}},
        {"effect": {}, "key": {}, "operator": {}, "tolerationSeconds": {}, "value": {}},
    ],
)
def test_the_types_of_kubernetes_are_not_the_authors_fault(borrowed: dict[str, Any]) -> None:
    properties = {name: {"type": "boolean"} for name in borrowed}
    content = schema({"x": {**OBJECT, "properties": properties}})
    assert not check(definition(version(content)))


def test_conditions_have_a_finding_of_their_own() -> None:
    bare = {key: value for key, value in CONDITIONS.items() if not key.startswith("x-")}
    found = check(definition(version(schema(status={"conditions": bare}))))
    assert [each.rule.id for each in found] == ["conditions-list"]


@pytest.mark.parametrize("key", ["properties", "items", "additionalProperties"])
def test_a_deep_schema_is_walked_through(key: str) -> None:
    below: dict[str, Any] = {"type": "boolean"}
    for _ in range(200):
        below = {
            "properties": {"type": "object", "properties": {"a": below}},
            "items": {"type": "array", "items": below},
            "additionalProperties": {"type": "object", "additionalProperties": below},
        }[key]
    found = check(definition(version(schema({"x": below}))))
    assert "boolean" in {each.rule.id for each in found}
