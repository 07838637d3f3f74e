"""What the API server reports only once earlier errors are fixed."""

from typing import Any

from crdkeeper.apiserver.definitions.create import check_creation
from tests.unit.apiserver.definitions.cases import definition

RULES = "x-kubernetes-validations"
TEXT = {"type": "string"}
WRONG_DEFAULT = {"type": "integer", "default": "x"}
WRONG_RULE = {"type": "integer", RULES: [{"rule": "self"}]}
DEFAULT_SAID = ".default: Invalid value"
RULE_SAID = f".{RULES}[0].rule: Invalid value: cel expression must evaluate to a bool"


def later(**properties: Any) -> list[str]:
    """What is hidden behind the errors of a schema with these fields in spec."""
    crd = definition()
    spec = {"type": "object", "properties": properties}
    crd["spec"]["versions"][0]["schema"] = {
        "openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}
    }
    report = check_creation(crd)
    assert report.violations
    start = "spec.validation.openAPIV3Schema.properties[spec].properties"
    return [f"{each.path}: {each.message}".removeprefix(start) for each in report.behind]


def test_a_missing_type_hides_defaults_and_rules() -> None:
    default, rule = later(a={}, b=WRONG_DEFAULT, c=WRONG_RULE)
    assert default.startswith(f"[b]{DEFAULT_SAID}")
    assert rule == f"[c]{RULE_SAID}"


def test_a_keyword_that_is_not_supported_hides_all() -> None:
    type_, rule = later(a={"type": "string", "$ref": "x"}, b={}, c=WRONG_RULE)
    assert type_.startswith("[b].type: Required value")
    assert rule == f"[c]{RULE_SAID}"


def test_a_wrong_default_hides_rules() -> None:
    assert later(b=WRONG_DEFAULT, c=WRONG_RULE) == [f"[c]{RULE_SAID}"]
    assert later(b={**WRONG_RULE, "default": "x"}) == [f"[b]{RULE_SAID}"]


def test_an_error_below_a_node_or_beside_a_rule_hides_its_rules() -> None:
    beside = {"type": "integer", RULES: [{"rule": "self"}, {"rule": "true", "reason": "Bad"}]}
    assert later(c=beside) == [f"[c]{RULE_SAID}"]


def test_nothing_is_said_where_the_mending_may_change_it() -> None:
    # The missing type decides whether the rule compiles and the default is valid.
    assert later(a={RULES: [{"rule": "self"}], "default": "x"}) == []
    around = {"type": "object", "properties": {"b": {}}, "default": {"b": 1}, RULES: [{"rule": "self.b"}]}
    assert later(a=around) == []
    # The same for costs, wherever around the rule the type is missing.
    dear = {"type": "string", RULES: [{"rule": "self.matches('a*')"}]}
    assert later(a={"additionalProperties": dear}, b={"type": "array"}) == []
    # And nothing is reported twice.
    assert later(a={}) == []
