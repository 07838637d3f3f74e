"""`crdkeeper lint` prints one line for each mistake, however many findings it causes."""

import json
from pathlib import Path
from typing import Any

import yaml

from crdkeeper.cli.lint.textoutput import MOST_LINES
from tests.unit.cli.lint.test_lint import GOOD, lint
from tests.unit.core.lint.definitions import TEXT, definition, schema, version

Json = dict[str, Any]
FIELD = """\
              {name}:
                {key}: '#/definitions/v1.SecretReference'
"""


def with_references(number: int, key: str = "$ref") -> str:
    return GOOD + "".join(FIELD.format(name=f"ref{i}", key=key) for i in range(number))


def lines(text: str, id: str = "unsupported-keyword") -> list[str]:
    return [each for each in lint("-", stdin=text).stdout.splitlines() if f"[{id}]" in each]


AT = "spec.validation.openAPIV3Schema.properties[spec].properties"


def test_a_keyword_that_the_server_refuses_is_one_line() -> None:
    refused = f"error[unsupported-keyword]: {AT}[ref0].$ref: Forbidden: $ref is not supported"
    assert lines(with_references(1)) == [f"-:25:17: {refused}"]
    assert lines(with_references(2)) == [f"-:25:17: {refused} (and 1 more such field: line 27)"]
    assert lines(with_references(9)) == [
        f"-:25:17: {refused} (and 8 more such fields: lines 27, 29, 31, 33, 35, 37, 39, 41)"
    ]
    assert len(lines(with_references(MOST_LINES + 9))) == 1


def test_many_places_are_counted() -> None:
    (one,) = lines(with_references(14))
    assert one.endswith(" (and 13 more such fields: lines 27, 29, 31, 33, 35, 37, 39, 41, 43, 45, …)")


def test_another_keyword_or_another_definition_is_another_line() -> None:
    both = with_references(2) + FIELD.format(name="other", key="id")
    assert [each.partition(": Forbidden: ")[2] for each in lines(both)] == [
        "$ref is not supported (and 1 more such field: line 27)",
        "id is not supported",
    ]
    other = with_references(2).replace("widgets", "gadgets").replace("Widget", "Gadget")
    second = other.replace("example.com", "example.org")
    assert len(lines(f"{with_references(2)}---\n{second}")) == 2


def test_programs_get_each() -> None:
    text = with_references(3)
    document = json.loads(lint("-o", "json", "-", stdin=text).stdout)
    refused = [each["field"] for each in document["findings"] if each["id"] == "unsupported-keyword"]
    assert refused == [f"{AT}[ref{i}].$ref" for i in range(3)]
    (run,) = json.loads(lint("-o", "sarif", "-", stdin=text).stdout)["runs"]
    (one,) = [each for each in run["results"] if each["ruleId"] == "unsupported-keyword"]
    assert len(one["relatedLocations"]) == 2
    assert "1 CRD: 3 errors," in lint("-", stdin=text).stderr


def test_equal_errors_are_one_line_and_others_are_not() -> None:
    untyped = GOOD + "".join(f"              field{i}:\n                maxLength: 3\n" for i in range(3))
    (one,) = lines(untyped, "type")
    assert one.endswith(
        ": must not be empty for specified object fields (and 2 more such fields: lines 26, 28)"
    )
    wrong = GOOD + "".join(f"              field{i}:\n                type: any{i}\n" for i in range(3))
    assert len(lines(wrong, "type")) == 3
    names = GOOD.replace("    plural: widgets\n    kind: Widget\n", "    singular: widget\n")
    assert len([each for each in lines(names, "names") if each.endswith(": Required value")]) == 3


def written(crd: Json) -> str:
    """As YAML, without anchors for what Python objects share."""
    return str(yaml.safe_dump(json.loads(json.dumps(crd))))


def printed(*definitions: Json, id: str) -> list[str]:
    found = lines("---\n".join(map(written, definitions)), id)
    return [
        each.partition(": ")[2].removeprefix(f"error[{id}]: ").removeprefix(f"warning[{id}]: ")
        for each in found
    ]


def unlimited(number: int, rule: str, **keywords: Any) -> Json:
    """A CRD with that many lists without a limit, each with a rule."""
    text = {"type": "string", "x-kubernetes-validations": [{"rule": rule, "message": "No."}], **keywords}
    listed = {"type": "array", "items": text}
    return definition(version(schema({f"list{i}": listed for i in range(number)})))


BUDGET = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and "
)
BUDGET += "strings are declared)"
ROOT = "spec.validation.openAPIV3Schema"


def test_the_costs_of_one_rule_are_one_line() -> None:
    (one,) = printed(unlimited(1, "self.matches('a.*b')"), id="cel-cost")
    rule = f"{ROOT}.properties[spec].properties[list0].items.x-kubernetes-validations[0].rule"
    assert one == (
        f"{rule}: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {BUDGET} "
        "(and so does the total of all rules)"
    )


def test_the_costs_of_several_rules_are_one_line_that_names_them() -> None:
    (one,) = printed(unlimited(3, "self.matches('a.*b')"), id="cel-cost")
    assert one.startswith(f"{ROOT}.properties[spec].properties[list0].items.")
    assert one.endswith(
        f" {BUDGET} (and 2 more rules: .spec.list1[*] rule 0, .spec.list2[*] rule 0; "
        "and the total of all rules)"
    )


def test_the_costs_of_a_rule_in_several_versions_are_one_line() -> None:
    crd = unlimited(1, "self.matches('a.*b')")
    other = unlimited(1, "self.matches('a.*b')")
    other["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "Another."
    more = unlimited(2, "self.matches('a.*b')")
    for each, name in ((other, "v1alpha2"), (more, "v1alpha3")):
        crd["spec"]["versions"].append({**each["spec"]["versions"][0], "name": name, "storage": False})
    one, another = printed(crd, id="cel-cost")
    assert one.startswith("spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[list0].items.")
    assert one.endswith(" (and so does the total of all rules) (also in 1 other version: spec.versions[1])")
    # Another rule needs another fix.
    assert another.endswith(" (and 1 more rule: .spec.list1[*] rule 0; and the total of all rules)")


def test_a_total_over_the_limit_names_the_rules_that_cost_most() -> None:
    crd = unlimited(30, "self.contains('a')", maxLength=9)
    (one,) = printed(crd, id="cel-cost")
    assert one.startswith(f"{ROOT}: Forbidden: x-kubernetes-validations estimated rule cost total for ")
    # The API server would name any four of them.
    names = ", ".join(f".spec.list{i}[*] rule 0" for i in (0, 1, 10, 11, 12))
    assert one.endswith(f" (most of it: {names}, …)")
    lists = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for i in range(30):
        lists[f"list{i}"] = {**lists[f"list{i}"], "maxItems": 1_000_000 - 1_000 * i}
    (one,) = printed(crd, id="cel-cost")
    names = ", ".join(f".spec.list{i}[*] rule 0" for i in range(4))
    assert one.endswith(f" (most of it: {names})")


ESCAPED = '.status.conditions[?(@.type==\\"Ready\\")]'


def with_columns(kind: str, *paths: str, group: str = "example.com") -> Json:
    columns = [{"name": f"C{i}", "type": "string", "jsonPath": each} for i, each in enumerate(paths)]
    return named(kind, version(schema(), additionalPrinterColumns=columns), group=group)


def named(kind: str, content: Json, group: str = "example.com") -> Json:
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower(), "listKind": f"{kind}List"}
    metadata = {"name": f"{names['plural']}.{group}"}
    made = definition(content, names=names, metadata=metadata)
    made["spec"]["group"] = group
    return made


UNQUOTED = "is not a JSONPath; without the backslashes before its quotes it is one"


def test_columns_with_one_mistake_are_one_line() -> None:
    crd = with_columns("Widget", f"{ESCAPED}.status", f"{ESCAPED}.reason", ".spec[")
    first, other = printed(crd, id="column-syntax")
    field = "v1alpha1:additionalPrinterColumns"
    assert first.startswith(
        f"{field}[0]: column C0: {ESCAPED}.status {UNQUOTED} (and 1 more such field: line "
    )
    assert other == f"{field}[2]: column C2: .spec[ is not a JSONPath: a bracket is not closed"


def test_keys_whose_dots_are_not_escaped_are_one_line() -> None:
    one = with_columns("Widget", ".metadata.labels['example.com/a']", ".metadata.labels['example.com/b']")
    other = with_columns("Gadget", ".metadata.annotations['example.com/c']")
    (line,) = printed(one, other, id="column-target")
    assert r"needs a backslash: .metadata.labels['example\.com/a'] (and 1 more such field)" in line
    assert line.endswith(" (also in 1 other CRD: gadgets.example.com)")


def test_one_mistake_in_several_definitions_of_a_group_is_one_line() -> None:
    one = with_columns("Widget", ".spec.color", f"{ESCAPED}.status")
    other = with_columns("Gadget", f"{ESCAPED}.status")
    foreign = with_columns("Other", f"{ESCAPED}.status", group="example.org")
    first, second = printed(one, other, foreign, id="column-syntax")
    assert first.endswith(f"{UNQUOTED} (also in 1 other CRD: gadgets.example.com)")
    assert second.endswith(UNQUOTED)


def test_the_number_of_a_column_makes_no_difference() -> None:
    one = with_columns("Widget", ".spec.color", ".spec.gone")
    other = with_columns("Gadget", ".spec.gone", ".spec.color")
    other["spec"]["versions"][0]["additionalPrinterColumns"][0]["name"] = "C1"
    (line,) = printed(one, other, id="column-target")
    assert line.startswith("v1alpha1:additionalPrinterColumns[1]: column C1: .spec.gone leads to nothing")
    assert line.endswith(" (also in 1 other CRD: gadgets.example.com)")


FIXED = {**TEXT, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "No."}]}


def test_a_field_of_several_definitions_of_a_group_is_one_line() -> None:
    kinds = ("Ax", "Bx", "Cx", "Dx", "Ex", "Fx", "Gx", "Hx")
    crds = [named(each, version(schema({"tenant": FIXED}))) for each in kinds]
    crds[2] = named("Cx", version(schema({"tenant": FIXED, "site": FIXED})))
    first, second = printed(*crds, id="immutable-bypass")
    message = "is immutable, but may be removed and set again"
    others = "bxs.example.com, cxs.example.com, dxs.example.com, exs.example.com, fxs.example.com, …"
    assert first == f"v1alpha1:.spec.tenant: {message} (also in 7 other CRDs: {others})"
    assert second == f"v1alpha1:.spec.site: {message}"


def test_one_definition_in_several_files_is_one_line(tmp_path: Path) -> None:
    text = written(named("Widget", version(schema({"tenant": FIXED}))))
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(text)
    found = lint(str(tmp_path))
    (one,) = [each for each in found.stdout.splitlines() if "[immutable-bypass]" in each]
    assert one.startswith(f"{tmp_path}/a.yaml:")
    assert one.endswith(f" (also in 1 other file: {tmp_path}/b.yaml)")
    assert "2 CRDs: 0 errors, 2 warnings" in found.stderr


def test_an_error_of_several_versions_is_one_line() -> None:
    content = schema({"x": {"maxLength": 3, "description": "It."}})
    other = schema({"x": {"maxLength": 3, "description": "Another one."}})
    crd = definition(version(content), version(other, "v1alpha2", storage=False))
    (one,) = printed(crd, id="type")
    assert " (and 1 more such field: line " in one


def test_programs_see_which_findings_have_one_cause() -> None:
    crds = [
        named(each, version(schema({"tenant": FIXED, each.lower(): FIXED}))) for each in ("Ax", "Bx", "Cx")
    ]
    text = "---\n".join(map(written, crds))
    found = json.loads(lint("-o", "json", "-", stdin=text).stdout)["findings"]
    assert [(each["field"], each.get("cause")) for each in found] == [
        ("v1alpha1:.spec.ax", None),
        ("v1alpha1:.spec.tenant", 1),
        ("v1alpha1:.spec.bx", None),
        ("v1alpha1:.spec.tenant", 1),
        ("v1alpha1:.spec.cx", None),
        ("v1alpha1:.spec.tenant", 1),
    ]
    (run,) = json.loads(lint("-o", "sarif", "-", stdin=text).stdout)["runs"]
    first, *others = run["results"]
    assert len(others) == 2
    assert (
        "(and 1 more such field) (also in 2 other CRDs: bxs.example.com, cxs.example.com)"
        in first["message"]["text"]
    )
    assert len(first["relatedLocations"]) == 3


def test_rules_that_misspell_one_field_are_one_line() -> None:
    texts = ("self.Color != ''", "self.Color != 'x'", "self.size > 1", "self.size == self.Color")
    rules = {"x-kubernetes-validations": [{"rule": each, "message": "No."} for each in texts]}
    first, second, third = printed(definition(version(schema(spec_keywords=rules))), id="cel")
    assert "undefined field 'Color'" in first
    assert " (and 1 more such field: line " in first
    assert "undefined field 'size'" in second
    assert "more such field" not in second + third


def test_names_of_strangers_are_shortened() -> None:
    fields = {f"{i}{'x' * 900}": {"maxLength": 3} for i in range(4)}
    crd = json.dumps(named("Widget", version(schema(fields)), group="y" * 5_000))
    other = crd.replace("widgets", "gadgets").replace("Widget", "Gadget")
    (one,) = lines(f"{crd}\n---\n{other}", "type")
    _, _, tail = one.partition(" (and 3 more such fields: ")
    assert f"xxx…, {AT[:9]}" in tail
    assert " (also in 1 other CRD: gadgets.yyy" in tail
    assert len(tail) < 1_000
