"""Every command, with malicious data wherever it reads data: files, their names, and the API server."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from crdkeeper.cli import main
from crdkeeper.cli.migrate.display import PlainDisplay, TerminalDisplay
from crdkeeper.cli.migrate.narration import refused_table
from crdkeeper.cli.output.table import table
from crdkeeper.core.text import visible
from tests.unit.cli.hostile import ALL, FILE, MARKUP, assert_harmless
from tests.unit.cli.migrate.migrations import migration, refused, rewriting, with_condition
from tests.unit.cluster.transport.localserver import kubeconfig

NAME = f"things{ALL}.example.com{ALL}"


def crd(*, version: str = "apiextensions.k8s.io/v1", **more: Any) -> dict[str, Any]:
    """A CRD in which every string is malicious."""
    schema = {
        "type": "object",
        "description": ALL,
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    ALL: {"type": ALL, "description": ALL, "default": ALL, "format": ALL},
                    f"{ALL}2": {"type": "string", "pattern": f"({ALL}", "enum": [ALL], "default": ALL},
                    "rules": {
                        "type": "object",
                        "x-kubernetes-validations": [
                            {"rule": f"self.{ALL}", "message": ALL, "reason": ALL, "fieldPath": ALL},
                            {"rule": "1", "messageExpression": ALL},
                        ],
                    },
                },
            }
        },
    }
    one = {"name": f"v1{ALL}", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": version,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "annotations": {ALL: ALL, "api-approved.kubernetes.io": ALL}},
        "spec": {
            "group": f"example.com{ALL}",
            "scope": ALL,
            "names": {"plural": f"things{ALL}", "kind": ALL, "shortNames": [ALL], "categories": [ALL]},
            "versions": [one | {"additionalPrinterColumns": [{"name": ALL, "type": ALL, "jsonPath": ALL}]}],
            **more,
        },
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with two different CRDs in files with malicious names."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / FILE).write_text(json.dumps(crd()))
    other = crd(scope="Cluster")
    other["spec"]["versions"].append(
        json.loads(json.dumps(other["spec"]["versions"][0])) | {"name": f"v2{ALL}"}
    )
    del other["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][ALL]
    (tmp_path / "two" / FILE).write_text(json.dumps(other))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / FILE).write_text(f"kind: CustomResourceDefinition\na: *{'x' * 9}\n")
    (tmp_path / "broken" / f"2{FILE}").write_text('{"kind": "CustomResourceDefinition", "\\u001b[31m')
    os.close(os.open(os.fsencode(tmp_path / "broken") + b"/\xff\xfe\x9b31m.yaml", os.O_CREAT))
    return tmp_path


def run(folder: Path, *arguments: str, code: int | None = None, **environment: str) -> Result:
    """Runs a command in the directory. It must not end with a traceback."""
    quiet = {"KUBECONFIG": "/nowhere", "KUBERNETES_SERVICE_HOST": "", **environment}
    here = Path.cwd()
    os.chdir(folder)
    try:
        result = CliRunner(env=quiet).invoke(main, arguments)
    finally:
        os.chdir(here)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if code is not None:
        assert result.exit_code == code, result.output
    assert_harmless(result.stdout, markup=False)
    assert_harmless(result.stderr, markup=False)
    return result


@pytest.mark.parametrize("where", [f"one/{FILE}", "one", "broken", "."])
@pytest.mark.parametrize("output", ["text", "json", "sarif"])
def test_lint(folder: Path, where: str, output: str) -> None:
    result = run(folder, "lint", "--all", "-o", output, "-f", where)
    if output == "text":
        assert "owned" in result.stdout + result.stderr
    else:
        json.loads(result.stdout)
    if where == "one" and output == "json":
        found = json.loads(result.stdout)["findings"]
        assert {each["file"] for each in found} == {f"one/{FILE}"}
        assert any(ALL in each["message"] or ALL in each["field"] for each in found)


@pytest.mark.parametrize("old", ["one", f"one/{FILE}", "broken"])
@pytest.mark.parametrize("output", ["text", "json", "sarif"])
def test_diff(folder: Path, old: str, output: str) -> None:
    result = run(folder, "diff", "--all", "-o", output, old, "two")
    assert "owned" in result.stdout + result.stderr
    if output != "text":
        json.loads(result.stdout)


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_upgrade_manifest(folder: Path, output: str) -> None:
    old = crd(version="apiextensions.k8s.io/v1beta1", version_=ALL, validation={"openAPIV3Schema": {}})
    (folder / FILE).write_text(json.dumps(old))
    result = run(folder, "upgrade-manifest", "-o", output, FILE)
    if output == "json":
        documents = json.loads(result.stdout)["manifests"]
    else:
        documents = list(yaml.safe_load_all(result.stdout))
    assert documents[0]["metadata"] == old["metadata"]
    run(folder, "upgrade-manifest", "-o", output, f"broken/{FILE}", "one", "broken")


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_rehearse_what_is_refused(folder: Path, output: str) -> None:
    result = run(folder, "rehearse", "-o", output, "-f", "one", "--objects", "two", code=1)
    assert "owned" in result.stdout
    run(folder, "rehearse", "-o", output, "-f", "broken", "--objects", "two", code=2)


GROUP = "stable.example.com"


def good() -> dict[str, Any]:
    """A valid CRD with malicious keys, limits and rules."""
    fields = {
        ALL: {"type": "string", "maxLength": 1, "enum": ["", ALL]},
        "size": {"type": "integer"},
        "rule": {"type": "object", "x-kubernetes-validations": [{"rule": "false", "message": visible(ALL)}]},
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"},
            "versions": [
                {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
                for name in ("v1", "v2")
            ],
        },
    }


def thing(**spec: Any) -> dict[str, Any]:
    metadata = {"name": f"mine{ALL}", "namespace": f"ns{ALL}"}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def rules(*listed: dict[str, Any], **spoke: Any) -> dict[str, Any]:
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "VersionConversion",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {
            "resource": {"group": GROUP, "resource": "things"},
            "hub": "v1",
            "spokes": [{"version": "v2", "rules": list(listed), **spoke}],
        },
    }


@pytest.fixture
def working(tmp_path: Path) -> Path:
    (tmp_path / "crd.yaml").write_text(json.dumps(good()))
    objects = [
        thing(**{ALL: ALL}),
        thing(**{ALL: 1}),
        thing(size=ALL),
        thing(rule={ALL: ALL}),
        thing(size={ALL: 1}),
    ]
    (tmp_path / FILE).write_text(yaml.safe_dump_all(objects))
    (tmp_path / "rules.yaml").write_text(json.dumps(rules()))
    return tmp_path


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_rehearse(working: Path, output: str) -> None:
    result = run(working, "rehearse", "-o", output, "-f", "crd.yaml", "--objects", FILE)
    assert "owned" in result.stdout + result.stderr
    if output != "text" and result.stdout:
        assert yaml.safe_load(result.stdout)["kind"] == "RehearsalList"


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_convert(working: Path, output: str) -> None:
    source = ["--rules", "rules.yaml", "--definition", "crd.yaml", "-f", FILE]
    result = run(working, "convert", *source, "--to", "v2", "-o", output)
    made = json.loads(result.stdout)["items"] if output == "json" else list(yaml.safe_load_all(result.stdout))
    assert made[0]["metadata"]["name"] == f"mine{ALL}"
    assert made[0]["spec"] == {ALL: ALL}
    run(working, "convert", "test", *source)
    run(working, "convert", *source, "--to", ALL.replace("\0", ""), code=2)


@pytest.mark.parametrize(
    "given",
    [
        rules({"hub": f"spec.{ALL}", "spoke": ALL}),
        rules({"hub": "spec.size", "spoke": "spec.size", ALL: ALL}),
        rules({"hub": "spec.size", "cel": {"toHub": ALL, "toSpoke": ALL}}),
        rules(**{ALL: ALL}),
        {"kind": ALL, ALL: ALL},
    ],
    ids=["paths", "a key", "CEL", "a field", "something else"],
)
def test_bad_rules(working: Path, given: dict[str, Any]) -> None:
    (working / f"2{FILE}").write_text(json.dumps(given))
    source = ["--rules", f"2{FILE}", "--definition", "crd.yaml", "-f", FILE]
    result = run(working, "convert", *source, "--to", "v2", code=2)
    assert "owned" in result.stderr
    run(working, "rehearse", "-f", "crd.yaml", "--objects", FILE, "--rules", f"2{FILE}", code=2)


@pytest.mark.parametrize(
    "command", ["lint", "diff", "convert", "rehearse", "upgrade-manifest", "status", "migrate"]
)
def test_arguments(folder: Path, command: str) -> None:
    hostile = ALL.replace("\0", "")
    run(folder, command, f"--{hostile}", code=2)
    run(folder, command, f"{hostile}.yaml")
    run(folder, command, "-f", f"{hostile}.yaml")
    run(folder, command, "-o", hostile, code=2)
    run(folder, hostile, code=2)


class _Hostile(BaseHTTPRequestHandler):
    """An API server that refuses everything, with malicious messages."""

    def _refuse(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        said = {"kind": "Status", "code": 403, "reason": ALL, "message": ALL}
        content = json.dumps(said).encode()
        self.send_response(403)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PATCH = do_DELETE = _refuse  # noqa: N815 (http.server calls them so)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield str(kubeconfig(tmp_path, f"http://127.0.0.1:{server.server_address[1]}"))
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("status", "-o", "json"),
        ("lint",),
        ("diff", "--live", "-f", "crd.yaml"),
        ("migrate", "things.example.com"),
        ("migrate", "things.example.com", "others.example.com"),
        ("migrate", "--all-outdated"),
        ("rehearse", "-f", "crd.yaml"),
        ("convert", "test", f"things.{GROUP}"),
        ("convert", "-f", FILE, "--to", "v2"),
    ],
    ids=" ".join,
)
def test_what_the_api_server_says(working: Path, cluster: str, arguments: tuple[str, ...]) -> None:
    result = run(working, *arguments, KUBECONFIG=cluster)
    assert result.exit_code != 0
    assert_harmless(result.stderr)


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("resources", [(), ("things.example.com", ALL)], ids=["one", "several"])
def test_what_moves(terminal: bool, resources: tuple[str, ...]) -> None:
    stream = _Terminal() if terminal else StringIO()
    display = (TerminalDisplay if terminal else PlainDisplay)(stream, resources)
    with display:
        display.show(with_condition(migration(), "Succeeded", "Unknown", "Rewriting", "first"))
        display.show(with_condition(rewriting(), "Succeeded", "Unknown", "Rewriting", ALL))
        display.show(with_condition(migration(), "Settled", "False", "Waiting", ALL))
        display.say(ALL)
        display.say(ALL, ALL)
        display.over(ALL, failed=True)
    said = re.sub(r"\x1b\[[\d;?]*[A-Za-z]|\r", "", stream.getvalue()) if terminal else stream.getvalue()
    assert_harmless(said)


def test_tables() -> None:
    objects = [(ALL, refused(f"a{ALL}", namespace=ALL, denied_by=ALL, field=ALL, message=ALL))]
    assert_harmless("\n".join(refused_table(objects, 2, with_resource=True)))
    assert len(refused_table(objects, 1)) == 2
    assert len(table((ALL, ALL), [(ALL, ALL), (ALL, "")])) == 3


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize("words", [("run",), ("compose", "run")], ids=" ".join)
def test_logs_of_operator_and_composer(cluster: str, words: tuple[str, ...], log_format: str) -> None:
    options = ("--listen=127.0.0.1:0", f"--log-format={log_format}")
    command = [sys.executable, "-m", "crdkeeper", *words, *options]
    environment = {**os.environ, "KUBECONFIG": cluster}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = [process.stderr.readline()]
            while MARKUP not in said[-1]:
                said.append(process.stderr.readline())
                assert said[-1], "".join(said)
        finally:
            process.terminate()
    assert_harmless("".join(said))
    if log_format == "json":
        assert all(json.loads(each) for each in said)
