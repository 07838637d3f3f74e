"""`crdkeeper compose render`: files in, objects out, and where each problem is."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from crdkeeper.cli import main

DEFINITION = """\
apiVersion: crdkeeper.dev/v1alpha1
kind: CompositeResourceDefinition
metadata: {name: databases.platform.example.com}
spec:
  group: platform.example.com
  names: {kind: Database, plural: databases}
  versions:
  - name: v1
    referenceable: true
    schema:
      openAPIV3Schema:
        properties:
          spec:
            type: object
            properties:
              engine: {type: string, enum: [postgres, mysql]}
              replicas: {type: integer, default: 1}
          status:
            type: object
            properties: {address: {type: string}, ready: {type: string}}
"""
COMPOSITION = """\
apiVersion: crdkeeper.dev/v1alpha1
kind: Composition
metadata: {name: small}
spec:
  compositeTypeRef: {apiVersion: platform.example.com/v1, kind: Database}
  resources:
  - name: server
    template:
      apiVersion: example.com/v1
      kind: Server
      metadata: {name: "${settings.metadata.name}"}
      spec: {replicas: "${composite.spec.replicas}"}
  - name: settings
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${composite.metadata.name}"}
      data: {engine: "${composite.spec.engine}"}
  - name: late
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${server.status.name}"}
  status: {address: "${server.metadata.name}.${composite.metadata.namespace}", ready: "${server.status.name}"}
"""
COMPOSITE = """\
apiVersion: platform.example.com/v1
kind: Database
metadata: {name: orders, namespace: shop}
spec: {engine: postgres}
"""
SERVER = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servers.example.com}
spec:
  group: example.com
  names: {kind: Server, plural: servers}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {replicas: {type: integer}}}
          status: {type: object, properties: {name: {type: string}}}
"""
CONFIG_MAP = {
    "openapi": "3.0.0",
    "paths": {
        "/api/v1/namespaces/{namespace}/configmaps": {
            "post": {"x-kubernetes-group-version-kind": {"group": "", "version": "v1", "kind": "ConfigMap"}}
        }
    },
    "components": {
        "schemas": {
            "ConfigMap": {
                "type": "object",
                "properties": {"data": {"type": "object", "additionalProperties": {"type": "string"}}},
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "ConfigMap"}],
            }
        }
    },
}

UNKNOWN = "no schema of ConfigMap (v1) is given"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (
        ("definition", DEFINITION),
        ("composition", COMPOSITION),
        ("composite", COMPOSITE),
        ("server", SERVER),
        ("configmap", json.dumps(CONFIG_MAP)),
    ):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def run(files: Path, *arguments: str, given: str = "definition composition composite") -> Result:
    named = [part for name in given.split() for part in ("-f", f"{files}/{name}.yaml")]
    result = CliRunner().invoke(main, ["compose", "render", *named, *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def said(files: Path, result: Result) -> list[str]:
    return result.stderr.replace(f"{files}/", "").splitlines()


def test_objects_are_printed_in_order(files: Path) -> None:
    result = run(files)
    assert result.exit_code == 0
    assert [
        (each["kind"], each["metadata"], each.get("spec")) for each in yaml.safe_load_all(result.stdout)
    ] == [
        ("ConfigMap", {"name": "orders", "namespace": "shop"}, None),
        ("Server", {"name": "orders", "namespace": "shop"}, {"replicas": 1}),
    ]
    assert said(files, result) == [
        "composition.yaml:8:5: not checked: spec.resources[0].template: no schema of Server (example.com/v1) "
        "is given",
        f"composition.yaml:14:5: not checked: spec.resources[1].template: {UNKNOWN}",
        f"composition.yaml:20:5: not checked: spec.resources[2].template: {UNKNOWN}",
        "Give their CRDs, or OpenAPI documents of the API server, with --schemas.",
        "composition.yaml:23:18: waiting: orders: late: waits for Server shop/orders",
        "composition.yaml:24:80: no value: orders: spec.status.ready: waits for server.status",
    ]


def test_schemas_and_observed_objects(files: Path) -> None:
    metadata = "metadata: {name: orders, namespace: shop}"
    observed = f"apiVersion: example.com/v1\nkind: Server\n{metadata}\nstatus: {{name: x}}\n"
    (files / "observed.yaml").write_text(observed)
    result = run(
        files,
        *("--schemas", f"{files}/server.yaml", "--schemas", f"{files}/configmap.yaml"),
        *("--observed", f"{files}/observed.yaml", "--status", "-o", "json"),
    )
    assert (result.exit_code, result.stderr) == (0, "")
    composite, *items = json.loads(result.stdout)["items"]
    assert composite["status"] == {"address": "orders.shop", "ready": "x"}
    assert [each["metadata"]["name"] for each in items] == ["orders", "orders", "x"]


def test_a_status_that_the_api_server_would_refuse(files: Path) -> None:
    narrow = DEFINITION.replace("address: {type: string}", "address: {type: string, maxLength: 3}")
    (files / "definition.yaml").write_text(narrow)
    (files / "composite.yaml").write_text(f"{COMPOSITE}status: {{ready: before}}\n")
    result = run(files, "--status")
    composite = next(iter(yaml.safe_load_all(result.stdout)))
    assert (result.exit_code, composite["status"]) == (0, {"ready": "before"})
    assert said(files, result)[-1] == (
        "composition.yaml:24:12: no value: orders: spec.status.address: the API server would refuse it: "
        "status.address: Too long: may not be more than 3 bytes"
    )


def test_a_namespaced_composite_without_one_is_in_default(files: Path) -> None:
    (files / "composite.yaml").write_text(COMPOSITE.replace(", namespace: shop", ""))
    first = next(iter(yaml.safe_load_all(run(files).stdout)))
    assert first["metadata"] == {"name": "orders", "namespace": "default"}


def test_errors_have_line_column_and_hint(files: Path) -> None:
    broken = COMPOSITION.replace("composite.spec.replicas}", "composite.spec.engine}").replace(
        ".name}.$", ".nam}.$"
    )
    (files / "composition.yaml").write_text(broken)
    result = run(files, "--schemas", f"{files}/server.yaml", "--schemas", f"{files}/configmap.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert said(files, result) == [
        "composition.yaml:12:14: error: spec.resources[0].template.spec.replicas: column 3: gives a value of "
        "type string, but the field is integer",
        "    hint: Convert it with int(…).",
        "composition.yaml:24:12: error: spec.status.address: column 18: undefined field 'nam'",
        "    hint: Did you mean name?",
        "2 errors in the Composition.",
    ]


def test_a_composition_that_its_crd_refuses(files: Path) -> None:
    (files / "composition.yaml").write_text(COMPOSITION.replace("name: late", "name: composite"))
    result = run(files)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "composite, each, and the words and types of CEL are reserved" in result.stderr
    assert said(files, result)[0].startswith("composition.yaml:19:")


def test_a_composite_that_its_crd_refuses(files: Path) -> None:
    (files / "composite.yaml").write_text(COMPOSITE.replace("postgres", "oracle"))
    result = run(files)
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'composite.yaml:1:1: error: orders: spec.engine: Unsupported value: "oracle"' in result.stderr


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("", "error: a Database: metadata.name: Required value: name or generateName is required"),
        ("metadata: 7\n", "error: a Database: metadata: Invalid value: must be an object"),
        ("metadata: {name: 7}\n", "error: 7: "),
        (
            "metadata: {generateName: a-}\n",
            "error: a Database: metadata.name: must be set to render the composite",
        ),
        ("metadata: {name: a}\nstatus: 5\n", "error: a: status: Invalid value"),
    ],
)
def test_a_composite_that_is_none(files: Path, metadata: str, message: str) -> None:
    lines = COMPOSITE.splitlines(keepends=True)
    (files / "composite.yaml").write_text("".join((*lines[:2], metadata, *lines[3:])))
    result = run(files, "--status")
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_a_composition_without_a_spec(files: Path) -> None:
    (files / "composition.yaml").write_text(COMPOSITION.partition("spec:")[0])
    result = run(files)
    assert (result.exit_code, said(files, result)[0]) == (
        1,
        "composition.yaml:1:1: error: spec: Required value",
    )


def test_a_value_that_fails_is_an_error(files: Path) -> None:
    (files / "composite.yaml").write_text(COMPOSITE.replace("{engine: postgres}", "{}"))
    result = run(files)
    assert result.exit_code == 1
    assert (
        "composition.yaml:18:14: error: orders: settings: column 3: composite.spec.engine is not set"
        in said(files, result)
    )


def test_without_a_composite_the_composition_is_checked(files: Path) -> None:
    result = run(files, given="definition composition")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (
        said(files, result)[-1] == "No Database is given: the Composition is valid, and nothing is rendered."
    )


def test_what_is_not_used_is_named(files: Path) -> None:
    (files / "composite.yaml").write_text(f"{COMPOSITE.replace('Database', 'Databse')}---\n7\n")
    result = run(files)
    assert (result.exit_code, result.stdout) == (0, "")
    unused = "not used: no Database, and nothing else to read"
    assert said(files, result)[:2] == [f"composite.yaml:1:1: {unused}", f"composite.yaml:6:1: {unused}"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("definition composite", "contains no Composition"),
        (
            "composition composite",
            "composition.yaml:5:3: no definition of Database (platform.example.com/v1) is given",
        ),
        ("definition composition missing", "missing.yaml:1:1: No such file or directory"),
        ("definition composition composition2", "a second Composition: render one at a time"),
        (
            "definition composition newer",
            "the Database is at platform.example.com/v2, but the Composition reads platform.example.com/v1",
        ),
        ("refused composition", "the definition is refused: crdkeeper compose crd says why"),
    ],
)
def test_what_cannot_be_read(files: Path, given: str, message: str) -> None:
    (files / "composition2.yaml").write_text(COMPOSITION)
    (files / "newer.yaml").write_text(COMPOSITE.replace("/v1", "/v2"))
    (files / "refused.yaml").write_text(
        DEFINITION.replace("            type: object\n", "            type: string\n")
    )
    result = run(files, given=given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
