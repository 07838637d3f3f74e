"""kro's ResourceGraphDefinitions rewritten: what stays, and what is said of what does not."""

from typing import Any

import pytest
import yaml

from crdkeeper.core.composition.acceptance import accept, with_server_errors
from crdkeeper.core.importing.kro import imported, plural_of
from crdkeeper.core.importing.note import Imported, NotImportable
from crdkeeper.core.templates.admission import admit_composition
from crdkeeper.core.templates.compilation import compile_composition
from crdkeeper.core.templates.kinds import kinds_of
from tests.unit.core.importing.graphs import A_RESOURCE, WEB, graph

Json = Any


def notes(found: Imported) -> list[tuple[str, str, bool]]:
    """Each with its field, what is said, and whether it is for a person to decide."""
    return [(str(each.path), each.message, bool(each.remedy)) for each in found.notes]


def of_resource(**fields: Json) -> Imported:
    return imported(graph(resources=[{**A_RESOURCE, **fields}]))


def resource(found: Imported) -> Json:
    assert found.composition is not None
    return found.composition["spec"]["resources"][0]


def test_a_whole_graph_is_accepted_and_compiles() -> None:
    found = imported(WEB)
    judged = with_server_errors(accept(found.definition))
    assert judged.problems == ()
    assert judged.crd is not None
    assert found.composition is not None
    spec, problems = admit_composition(found.composition)
    assert problems == []
    assert spec is not None
    kinds = kinds_of(judged.crd)
    compiled = compile_composition(spec, kinds["example.org/v1alpha1", "WebProxy"], kinds)
    # Only the schemas of the kinds of Kubernetes are not there.
    assert {each.message.partition(" of ")[0] for each in compiled.problems} <= {"there is no schema"}


def test_names() -> None:
    definition = imported(WEB).definition
    assert definition["metadata"] == {"name": "webproxies.example.org"}
    assert definition["spec"]["names"] == {"kind": "WebProxy", "plural": "webproxies", "shortNames": ["wp"]}
    assert definition["spec"]["defaultCompositionRef"] == {"name": "web-application"}
    assert imported(graph()).definition["spec"]["group"] == "kro.run"
    assert imported(graph(schema={"scope": "Cluster"})).definition["spec"]["scope"] == "Cluster"


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Database", "databases"),
        ("Proxy", "proxies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Box", "boxes"),
        ("Batch", "batches"),
        ("Cache", "caches"),
        ("Warehouse", "warehouses"),
        ("Function", "functions"),
    ],
)
def test_plurals(kind: str, plural: str) -> None:
    assert plural_of(kind) == (plural, True)
    assert imported(graph(schema={"kind": kind})).notes == ()


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Postgres", "postgres"),
        ("Redis", "redis"),
        ("Bus", "buses"),
        ("SearchIndex", "searchindices"),
        ("Matrix", "matrices"),
        ("Demo", "demoes"),
        ("Studio", "studios"),
        ("Shelf", "shelves"),
        ("Quiz", "quizzes"),
        ("Lambda", "lambdas"),
        ("Person", "persons"),
    ],
)
def test_plurals_that_are_not_sure_are_for_a_person(kind: str, plural: str) -> None:
    found = imported(graph(schema={"kind": kind}))
    assert found.definition["spec"]["names"]["plural"] == plural
    assert found.definition["metadata"]["name"] == f"{plural}.kro.run"
    said = f"the plural is {plural}, and kro may have another one"
    assert notes(found) == [("spec.schema.kind", said, True)]


@pytest.mark.parametrize(
    ("expression", "renamed"),
    [
        ("${schema.spec.name}", "${composite.spec.name}"),
        ("a-${schema.spec.name}-${schema.spec.b}", "a-${composite.spec.name}-${composite.spec.b}"),
        ("${schema}", "${composite}"),
        ("${thing.schema.schema}", "${thing.schema.schema}"),
        ("${thing.?schema.orValue('schema')}", "${thing.?schema.orValue('schema')}"),
        ("${'schema' + \"schema\" + schema.spec.a}", "${'schema' + \"schema\" + composite.spec.a}"),
        ("${{'schema': schema.spec.a}}", "${{'schema': composite.spec.a}}"),
        ("${schemas.map(schema_, schema_.a)}", "${schemas.map(schema_, schema_.a)}"),
        ("${schema(1)}", "${schema(1)}"),
        ("${ schema . spec }", "${ composite . spec }"),
        ("no schema", "no schema"),
        ("$${schema.spec.a}", "${'$'}${composite.spec.a}"),
        ("a$$${schema.spec.a}$", "a$${'$'}${composite.spec.a}$"),
        ("${'$${'}", "${'$${'}"),
    ],
)
def test_the_composite_has_another_name(expression: str, renamed: str) -> None:
    template = {**A_RESOURCE["template"], "data": {"a": expression, "b": [expression]}}
    assert resource(of_resource(template=template))["template"]["data"] == {"a": renamed, "b": [renamed]}


def test_what_both_have_stays() -> None:
    each = {"forEach": [{"region": "${schema.spec.regions}"}], "readyWhen": ["${each.data.a == 'b'}"]}
    found = of_resource(**each, includeWhen=["${schema.spec.on}"])
    assert resource(found) == {
        "name": "settings",
        "includeWhen": ["${composite.spec.on}"],
        "forEach": [{"region": "${composite.spec.regions}"}],
        "readyWhen": ["${each.data.a == 'b'}"],
        "template": A_RESOURCE["template"],
    }
    assert found.notes == ()


def test_external_references() -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
    found = imported(graph(resources=[{"id": "shared", "externalRef": reference}]))
    expected = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "b"}
    assert resource(found) == {"name": "shared", "externalRef": expected}
    assert found.notes == ()
    reference["metadata"] = {"selector": {"matchLabels": {"a": "b"}}}
    selected, missing = notes(imported(graph(resources=[{"id": "a", "externalRef": reference}])))
    assert selected[0] == "spec.resources[0].externalRef.metadata.selector"
    assert missing[:2] == ("spec.resources[0].externalRef.name", "Required value")
    reference["metadata"] = {"name": "a", "namespace": "${schema.spec.where}"}
    (first, *_) = notes(imported(graph(resources=[{"id": "a", "externalRef": reference}])))
    assert first[0] == "spec.resources[0].externalRef.metadata.namespace"
    assert "an expression chooses the namespace" in first[1]


def test_the_status() -> None:
    status = {
        "url": "https://${settings.metadata.name}",
        "count": "${size(schema.spec.regions)}",
        "on": "${schema.spec.a == 'b' && has(schema.spec.c)}",
        "name": "${settings.metadata.name}",
        "key": "${settings.data.metadata.name}",
        "annotations": "${settings.metadata.annotations}",
        "nested": {"text": "${string(schema.spec.a)}"},
        "state": "${'ACTIVE'}",
    }
    found = imported(graph(schema={"status": status}))
    (version,) = found.definition["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"] == {
        "url": {"type": "string"},
        "count": {"type": "integer"},
        "on": {"type": "boolean"},
        "name": {"type": "string"},
        "key": {"x-kubernetes-preserve-unknown-fields": True},
        "annotations": {"x-kubernetes-preserve-unknown-fields": True},
        "nested": {"type": "object", "properties": {"text": {"type": "string"}}},
    }
    assert found.composition is not None
    assert found.composition["spec"]["status"]["count"] == "${size(composite.spec.regions)}"
    assert notes(found) == [
        ("spec.schema.status.state", "dropped: kro writes this field itself", False),
        (
            "spec.schema.status",
            "kro infers the types of key, annotations from the schemas in the cluster; they are left open",
            True,
        ),
    ]


def test_columns_that_only_kro_fills_are_dropped() -> None:
    def column(path: str) -> Json:
        return {"name": "a", "type": "string", "jsonPath": path}

    ready = '.status.conditions[?(@.type=="Ready")].status'
    kept = [column(each) for each in (".status.stateful", ready, ".metadata.creationTimestamp")]
    of_kro = ".status.state", '.status.conditions[?(@.type=="ResourcesReady")].status'
    columns = [*map(column, of_kro), *kept]
    found = imported(graph(schema={"additionalPrinterColumns": columns}))
    assert found.definition["spec"]["versions"][0]["additionalPrinterColumns"] == kept
    said = "dropped: only kro writes {}; see the columns Ready and Synced"
    assert notes(found) == [
        (f"spec.schema.additionalPrinterColumns[{i}]", said.format(path), False)
        for i, path in enumerate(of_kro)
    ]


def test_what_has_no_counterpart_is_for_a_person() -> None:
    found = imported(
        {**graph(schema={"later": 1}), "spec": {**graph(schema={"later": 1})["spec"], "more": 2}}
    )
    dropped = "dropped: it has no counterpart"
    assert notes(found) == [("spec.more", dropped, True), ("spec.schema.later", dropped, True)]
    assert notes(of_resource(lifecycle={})) == [("spec.resources[0].lifecycle", dropped, True)]


def test_what_crdkeeper_would_refuse_is_for_a_person() -> None:
    (note,) = notes(of_resource(id="composite"))
    assert note[0] == "spec.resources[0].id"
    assert "reserved" in note[1]
    template = {**A_RESOURCE["template"], "data": {"a": "${schema.spec.a"}}
    (note,) = notes(of_resource(template=template))
    assert note[:2] == ("spec.resources[0].template.data.a", "the expression has no end")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"kind": "ResourceGraphDefinition", "apiVersion": "example.org/v1"},
            "is no ResourceGraphDefinition",
        ),
        ({**graph(), "spec": None}, "spec: must be an object"),
        ({**graph(), "spec": {}}, "spec.schema: must be an object"),
        (graph(schema={"kind": None}), "spec.schema.kind: must be a text"),
        (graph(schema={"spec": {"a": "text"}}), "spec.schema.spec.a: there is no type 'text'"),
        (graph(schema={"types": ["a"]}), "spec.schema.types: must be an object"),
        ({**graph(), "metadata": "a"}, "metadata: must be an object"),
        (graph(resources=["a"]), "spec.resources[0]: must be an object"),
        (graph(resources={"a": 1}), "spec.resources: must be a list"),
        (
            graph(schema={"additionalPrinterColumns": {"a": 1}}),
            "spec.schema.additionalPrinterColumns: must be a list",
        ),
    ],
)
def test_what_is_no_graph_is_refused(document: Json, message: str) -> None:
    with pytest.raises(NotImportable, match=message.replace("[", r"\[")):
        imported(document)


def test_attacks_end() -> None:
    deep: Json = "${schema.spec.a}"
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(NotImportable, match="more than 100 levels"):
        of_resource(template={**A_RESOURCE["template"], "data": {"a": deep}})
    long = "${schema}" * 100_000
    found = of_resource(template={**A_RESOURCE["template"], "data": {"a": long}})
    assert resource(found)["template"]["data"]["a"] == "${composite}" * 100_000
    dollars = of_resource(template={**A_RESOURCE["template"], "data": {"a": "$${schema}" * 100_000}})
    assert resource(dollars)["template"]["data"]["a"] == "${'$'}${composite}" * 100_000
    assert yaml.safe_dump(of_resource(id="\x1b[31m").definition)
