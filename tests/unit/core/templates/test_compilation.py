"""What is wrong with a Composition: found before there is any composite, with the place and a hint."""

from typing import Any

import pytest

from crdkeeper.core.templates.compiled import copying_secrets, with_secrets
from crdkeeper.core.templates.kinds import TargetKind
from tests.unit.core.templates.compositions import (
    COMPOSITE,
    compiled,
    config_map,
    problems,
    result,
    server,
)

AT = "spec.resources[0].template.spec"
CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")

# a field of a Server's spec, and the only problem of it; or none
FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "a value of the type": ({"replicas": "${composite.spec.replicas}"}, ""),
    "joined text": ({"text": "${composite.spec.replicas}-${composite.spec.enabled}"}, ""),
    "a text for a number": (
        {"replicas": "${composite.spec.engine}"},
        f"{AT}.replicas: column 3: gives a value of type string, but the field is integer | "
        "Convert it with int(…).",
    ),
    "joined text for a number": (
        {"replicas": "${composite.spec.replicas}0"},
        f"{AT}.replicas: a text, but the field is of type integer | "
        "Write one expression, without text around it.",
    ),
    "a literal of another type": ({"replicas": "2"}, f"{AT}.replicas: it is a string, and no integer"),
    "a number for a text": (
        {"text": "${composite.spec.replicas}"},
        f"{AT}.text: column 3: gives a value of type int, but the field is string | "
        "Convert it with string(…).",
    ),
    "an integer or string": ({"port": "${composite.spec.engine}"}, ""),
    "an object for a text": ({"text": {"a": "b"}}, f"{AT}.text: an object, but the field is of type string"),
    "a list for a text": ({"text": ["a"]}, f"{AT}.text: a list, but the field is of type string"),
    "an unknown field": (
        {"replicsa": 1},
        f"{AT}.replicsa: there is no such field | Did you mean replicas?",
    ),
    "an unknown field of a value": (
        {"text": "v${composite.spec.engin}"},
        f"{AT}.text: column 18: undefined field 'engin' | Did you mean engine?",
    ),
    "an unknown variable": (
        {"text": "${compsite.spec.engine}"},
        f"{AT}.text: column 3: undeclared reference to 'compsite' | Did you mean composite?",
    ),
    "itself": (
        {"text": "${a.spec.text}"},
        f"{AT}.text: column 3: undeclared reference to 'a' | "
        "A resource can refer to itself only in readyWhen: a does not exist before.",
    ),
    "no expression": (
        {"text": "${composite.}"},
        f"{AT}.text: column 13: Syntax error: mismatched input '<EOF>'",
    ),
    "no end": (
        {"text": "a ${composite"},
        f"{AT}.text: column 3: the expression has no end | "
        "Close it with }, or write $${ for a literal ${.",
    ),
    "an escape": ({"text": "$${composite}"}, ""),
    "a variable of a shell": (
        {"text": "echo ${HOME}"},
        f"{AT}.text: column 8: undeclared reference to 'HOME' | Known are composite. "
        "Write $${ for a literal ${.",
    ),
    "a default of a shell": (
        {"text": "echo ${X:-1}"},
        f"{AT}.text: column 9: Syntax error: mismatched input ':' | Write $${{ for a literal ${{.",
    ),
    "an optional that is compared": (
        {"open": {"a": "${composite.spec.?engine == 'x'}"}},
        f"{AT}.open.a: column 26: found no matching overload for '_==_' applied to "
        "'(optional_type(string), string)' | Append .orValue(…) to what is optional.",
    ),
    "a list as text": (
        {"text": "x${composite.spec.names}"},
        f"{AT}.text: column 4: a value of type list(string) cannot be a part of a text | "
        "Select a field of it, or join a list with .join(',').",
    ),
    "an optional as text": (
        {"text": "x${composite.spec.?engine}"},
        f"{AT}.text: column 4: an optional value cannot be a part of a text | Append .orValue('…').",
    ),
    "an optional": ({"text": "${composite.spec.?engine}"}, ""),
    "a key": (
        {"limits": {"${composite.spec.engine}": "1"}},
        f"{AT}.limits.${{composite.spec.engine}}: a key cannot contain expressions | "
        "Use an expression that gives the map.",
    ),
    "a map": ({"limits": "${composite.spec.limits}"}, ""),
    "a list of another type": (
        {"texts": "${composite.spec.sizes}"},
        f"{AT}.texts: column 3: in what it gives: gives a value of type int, but the field is string",
    ),
    "anything where all is allowed": ({"open": {"a": ["${composite.spec.sizes}", {"b": 1}]}}, ""),
    "a time": ({"since": "${timestamp('2024-01-01T00:00:00Z')}"}, ""),
    "a macro's variable": ({"texts": "${composite.spec.names.map(a, a + 'x')}"}, ""),
    "a literal map in CEL": ({"open": "${{'a': {'b': composite.spec.engine}}}"}, ""),
}


@pytest.mark.parametrize("case", FIELDS)
def test_fields(case: str) -> None:
    fields, problem = FIELDS[case]
    assert problems(server("a", **fields)) == ([problem] if problem else [])


def test_references_have_the_types_of_the_target() -> None:
    a, b = server("a"), server("b", text="${a.status.ready}", replicas="${a.metadata.generation}")
    assert problems(a, b) == [
        "spec.resources[1].template.spec.text: column 3: gives a value of type int, but the field is string"
        " | Convert it with string(…)."
    ]
    assert problems(a, server("b", replicas="${a.status.redy}")) == [
        "spec.resources[1].template.spec.replicas: column 11: undefined field 'redy' | Did you mean ready?"
    ]


def test_a_kind_without_a_schema_is_not_checked() -> None:
    found = result(config_map("a", x="${b.data.whatever + 1}"), config_map("b"))
    assert not found.problems
    assert found.missing == {("v1", "ConfigMap")}
    assert [f"{each.path}: {each.reason}" for each in found.unverified] == [
        "spec.resources[0].template: no schema of ConfigMap (v1) is given",
        "spec.resources[1].template: no schema of ConfigMap (v1) is given",
    ]


def test_references_order_the_resources() -> None:
    made = compiled(
        server("c", text="${b.metadata.name}"),
        server("a"),
        server("b", text="${a.?status.?phase.orValue('')}"),
    )
    assert made.waves == (("a",), ("b",), ("c",))
    assert [each.name for each in made.resources] == ["a", "b", "c"]


def test_a_macros_variable_is_no_reference() -> None:
    made = compiled(
        server("a", texts="${composite.spec.names.map(b, b)}"), server("b", text="${a.metadata.name}")
    )
    assert made.waves == (("a",), ("b",))


def test_a_kind_has_one_version() -> None:
    older = server("b", text="x")
    older["template"]["apiVersion"] = "example.com/v1beta1"
    other = server("c", text="x")
    other["template"]["apiVersion"] = "example.org/v1"
    assert problems(server("a", text="x"), older, other) == [
        "spec.resources[1].template.apiVersion: Server is of example.com/v1beta1 here, but of "
        "example.com/v1 in a | Use one version of a kind."
    ]


def test_which_objects_may_have_values_of_secrets() -> None:
    external = {"apiVersion": "v1", "kind": "Secret", "name": "theirs", "namespace": "shop"}
    made = compiled(
        {"name": "theirs", "externalRef": external},
        server("named", text="${theirs.metadata.name}-${theirs.metadata.labels.app}"),
        server("applied", text="${theirs.metadata.annotations['last-applied']}"),
        server("direct", text="${theirs.data.password}"),
        server("copied", text="${direct.spec.text}"),
        server("all", texts="${listed.map(each, each.spec.text)}"),
        server(
            "listed", ForEach=[{"n": "${composite.spec.names}"}], called="${n}", text="${copied.spec.text}"
        ),
        server("none", text="${composite.spec.engine}"),
    )
    assert with_secrets(made.resources) == {"theirs", "applied", "direct", "copied", "all", "listed"}
    assert copying_secrets(made.resources) == {"applied", "direct", "copied", "all", "listed"}


def test_cycles_are_named() -> None:
    a, b = server("a", text="${c.metadata.name}"), server("b", text="${a.metadata.name}")
    c = server("c", text="x", IncludeWhen=["${b.metadata.name != ''}"])
    assert problems(server("x"), a, b, c) == [
        "spec.resources[1]: the resources refer to each other in a circle: a → c → b → a | "
        "Take the value from the composite instead."
    ]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"IncludeWhen": ["${composite.spec.replicas}"]},
            "includeWhen[0]: column 3: gives a value of type int, but a condition is true or false | "
            "Compare the value with something.",
        ),
        (
            {"ReadyWhen": ["${a.status.phase}"]},
            "readyWhen[0]: column 3: gives a value of type string, but a condition is true or false | "
            "Compare the value with something.",
        ),
        (
            {"IncludeWhen": ["${composite.spec.?enabled}"]},
            "includeWhen[0]: column 3: gives a value of type optional_type(bool), but a condition is true or "
            "false | Append .orValue(false).",
        ),
        (
            {"IncludeWhen": ["${composite.spec.?engine}"]},
            "includeWhen[0]: column 3: gives a value of type optional_type(string), but a condition is true "
            "or false | Append .orValue(…). Compare the value with something.",
        ),
        ({"ReadyWhen": ["${a.status.ready == composite.spec.replicas}"]}, ""),
        (
            {"ReadyWhen": ["${b.status.ready == 1}"]},
            "readyWhen[0]: column 3: undeclared reference to 'b' | readyWhen can use composite and a only.",
        ),
        (
            {"IncludeWhen": ["${a.status.ready == 1}"]},
            "includeWhen[0]: column 3: undeclared reference to 'a' | "
            "A resource can refer to itself only in readyWhen: a does not exist before.",
        ),
        (
            {"ForEach": [{"x": "${composite.spec.replicas}"}]},
            "forEach[0].x: column 3: gives a value of type int, but forEach needs a list | "
            "Of a map, .map(key, key) makes the list of its keys.",
        ),
        ({"ForEach": [{"x": "${composite.spec.sizes}"}], "replicas": "${x}"}, ""),
        (
            {"ForEach": [{"x": "${composite.spec.names}"}], "replicas": "${x}"},
            "template.spec.replicas: column 3: gives a value of type string, but the field is integer | "
            "Convert it with int(…).",
        ),
        ({"ForEach": [{"x": "${composite.spec.names}"}], "ReadyWhen": ["${each.status.ready > 0}"]}, ""),
        (
            {"ForEach": [{"x": "${composite.spec.names}"}], "ReadyWhen": ["${a.status.ready > 0}"]},
            "readyWhen[0]: column 3: undeclared reference to 'a' | "
            "readyWhen can use composite and each only.",
        ),
        (
            {"IncludeWhen": ["x"]},
            "includeWhen[0]: must be one expression in ${…} | Write the whole condition in one ${…}.",
        ),
    ],
)
def test_conditions_and_lists(fields: dict[str, Any], problem: str) -> None:
    wanted = [f"spec.resources[0].{problem}"] if problem else []
    assert problems(server("a", **fields), server("b")) == wanted


def test_a_collection_is_a_list() -> None:
    a = server("a", ForEach=[{"x": "${composite.spec.names}"}])
    assert problems(a, server("b", texts="${a.map(one, one.metadata.name)}", replicas="${a.size()}")) == []
    assert problems(a, server("b", text="${a.metadata.name}")) == [
        "spec.resources[1].template.spec.text: column 4: type 'list(a)' does not support field selection"
    ]


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"address": "${a.metadata.name}.x", "replicas": "${a.status.ready}"}, ""),
        (
            {"replicas": "${a.status.phase}"},
            "replicas: column 3: gives a value of type string, but the field is integer | "
            "Convert it with int(…).",
        ),
        ({"adress": "x"}, "adress: there is no such field | Did you mean address?"),
        ({"conditions": []}, "conditions: crdkeeper itself writes this field | Remove it."),
    ],
)
def test_the_status(status: dict[str, Any], problem: str) -> None:
    found = problems(server("a"), status=status)
    assert found[:1] == ([f"spec.status.{problem}"] if problem else [])


def _placed(kind: str = "Server", **metadata: Any) -> dict[str, Any]:
    return {
        "name": "a",
        "template": {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a", **metadata}},
    }


AT_METADATA = "spec.resources[0].template.metadata"


@pytest.mark.parametrize(
    ("resource", "namespaced", "problem"),
    [
        (_placed(), True, ""),
        (
            _placed(namespace="other"),
            True,
            f"{AT_METADATA}.namespace: a composite composes only in its own namespace | "
            "Remove the field: the composite's namespace is filled in.",
        ),
        (_placed(namespace="${composite.metadata.namespace}"), True, ""),
        (
            _placed("Region"),
            True,
            f"{AT_METADATA}: Region is cluster-scoped, but composites are in namespaces | "
            "Compose it in a cluster-scoped composite (scope: Cluster).",
        ),
        (_placed("Region"), False, ""),
        (
            _placed("Region", namespace="x"),
            False,
            f"{AT_METADATA}.namespace: Region is cluster-scoped | Remove the field.",
        ),
        (
            _placed(),
            False,
            f"{AT_METADATA}: Server needs a namespace, and composites have none | Set metadata.namespace.",
        ),
        (_placed(namespace="x"), False, ""),
        (
            _placed(uid="x"),
            True,
            f"{AT_METADATA}.uid: there is no such field | "
            "Known are name, namespace, labels, annotations, finalizers.",
        ),
    ],
)
def test_namespaces(resource: Any, namespaced: bool, problem: str) -> None:
    assert problems(resource, composite=TargetKind(COMPOSITE, namespaced)) == ([problem] if problem else [])


def test_an_external_object_needs_a_namespace() -> None:
    reference = {"apiVersion": "example.com/v1", "kind": "Server", "name": "z"}
    zone = {"name": "a", "externalRef": reference}
    assert problems(zone) == []
    assert problems(zone, composite=TargetKind(COMPOSITE, False)) == [
        "spec.resources[0].externalRef: Server needs a namespace, and composites have none | "
        "Set externalRef.namespace."
    ]
    region = {"name": "a", "externalRef": {**reference, "kind": "Region"}}
    assert problems(region, composite=TargetKind(COMPOSITE, False)) == []


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_composite_cannot_compose_its_own_kind(version: str) -> None:
    own = _placed("Database")
    own["template"]["apiVersion"] = f"example.com/{version}"
    assert problems(own) == [
        "spec.resources[0].template.kind: a composite cannot compose its own kind | "
        "Each would compose another one, without end."
    ]
    own["template"]["apiVersion"] = "example.org/v1"
    assert problems(own) == []


@pytest.mark.parametrize("kind", [("crdkeeper.dev", "Composition"), CRD])
def test_what_the_composer_may_write_anyway_cannot_be_composed(kind: tuple[str, str]) -> None:
    own = {"apiVersion": f"{kind[0]}/v1", "kind": kind[1], "metadata": {"name": "x"}}
    cluster = TargetKind(COMPOSITE, False)
    found = result({"name": "a", "template": own}, composite=cluster)
    said = f"spec.resources[0].template.kind: a composite cannot compose a {kind[1]}"
    assert [str(each) for each in found.own_problems] == [said]
    reference = {"apiVersion": own["apiVersion"], "kind": kind[1], "name": "x"}
    assert problems({"name": "a", "externalRef": reference}, composite=cluster) == []


def test_kinds_of_kubernetes_itself_are_known_to_be_cluster_scoped() -> None:
    resource = config_map("a")
    resource["template"] |= {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    assert problems(resource) == [
        f"{AT_METADATA}: ClusterRole is cluster-scoped, but composites are in namespaces | "
        "Compose it in a cluster-scoped composite (scope: Cluster)."
    ]


def test_problems_are_bounded() -> None:
    wrong: dict[str, Any] = {f"x{j}": 1 for j in range(50)}
    assert len(problems(*[server(f"r{i}", **wrong) for i in range(100)])) == 100


def test_what_the_schema_leaves_open() -> None:
    assert not problems(server("a"), server("b", text="${a.spec.open.x}"))
    closed = TargetKind({"type": "object", "properties": {"spec": {"type": "object"}}}, True)
    (*_, refused) = result(
        server("a"), server("b", text="${a.spec.x}"), kinds={("example.com/v1", "Server"): closed}
    ).problems
    assert f"{refused} | {refused.hint}" == (
        "spec.resources[1].template.spec.text: column 9: undefined field 'x' | "
        "The schema declares no field of a.spec, so that expressions cannot read one."
    )
    anything = TargetKind({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, True)
    found = result(
        server("a"), server("b", text="${a.status.x}"), kinds={("example.com/v1", "Server"): anything}
    )
    assert not found.problems
