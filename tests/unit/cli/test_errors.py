"""Errors before there is a cluster are reported in one line."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crdkeeper.cli import main


def run(*args: str) -> Result:
    return CliRunner(env={"KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""}).invoke(main, args)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no"),
        ("", "there is nothing in"),
        ("contexts: [", "while parsing a flow node"),
        ("contexts: []", "Expected key current-context"),
    ],
)
def test_an_unusable_kubeconfig_is_one_line(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    result = run("status", f"--kubeconfig={path}")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: No cluster configured: ")
    assert words in line


@pytest.mark.parametrize("args", [(), ("retire",), ("compose",)])
def test_a_group_without_a_command_prints_its_help(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stderr == run(*args, "--help").stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("migrate",), "specify either resources (PLURAL.GROUP), or -l SELECTOR and --all-outdated"),
        (("migrate", "--selector="), "specify either"),
        (("migrate", "-l", " "), "specify either"),
        (("migrate", "widgets.example.com", "--all-outdated"), "specify either"),
        (("migrate", "widgets.example.com", "-l", "a=b"), "specify either"),
        (("migrate", "a.example.com", "b.example.com", "--name=c"), "--name is for one resource"),
        (("migrate", "--all-outdated", "--name=c"), "--name is for one resource"),
        (("migrate", "widgets/status"), "is not the name of a resource"),
        (("migrate", "widgets.example.com", "--retry-limit=-1"), "not a number or `forever`"),
        (("migrate", "widgets.example.com", "--max-concurrency=0"), "--max-concurrency"),
        (("migrate", "widgets.example.com", "--settle-seconds=4000"), "--settle-seconds"),
        (("status", "widgets.example.com", "--selector=a=b"), "not both"),
        (("status", "--output=table"), "--output"),
    ],
)
def test_wrong_usage_is_exit_code_2(args: tuple[str, ...], words: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert words in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "args",
    [
        ("lint", "-f", "-", "-f", "-"),
        ("diff", "-", "-"),
        ("diff", "-f", "-", "-f", "-"),
        ("upgrade-manifest", "-", "-"),
        ("compose", "crd", "-f", "-", "-f", "-"),
        ("compose", "import", "-", "-"),
        ("convert", "-f", "-", "-f", "-", "--to", "v2"),
        ("convert", "test", "-f", "-", "-f", "-"),
        ("rehearse", "-f", "-", "--objects", "-"),
        ("rehearse", "-f", "crd.yaml", "--objects", "-", "--from", "-"),
    ],
)
def test_standard_input_can_be_read_once(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == "Error: standard input can only be read once"


@pytest.mark.parametrize("command", ["status", "migrate", "run"])
def test_each_command_has_help(command: str) -> None:
    assert f"main {command} [OPTIONS]" in run(command, "--help").output
    assert f"  {command} " in run("--help").output
