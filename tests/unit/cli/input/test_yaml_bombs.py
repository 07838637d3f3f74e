"""Small files that become large, deep or endless: a line that names the file, and no traceback."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from crdkeeper.cli import main
from crdkeeper.core.documents.plainscalars import plain_scalar

HEAD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.c}\n"
TENFOLD = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)
BOMBS = {
    "aliases": TENFOLD,
    "deep": "a: " + "[" * 100_000,
    "deep JSON": '{"a":' * 100_000,
    "own anchor": "a: &a [*a]\n",
}
NUMBERS = {
    "out of range": "1e999999999",
    "digits": "9" * 5001,
    "fewer digits": "9" * 399,
    "hexadecimal": "0x" + "f" * 398,
}
COMMANDS = {
    "lint": ["lint", "FILE"],
    "lint json": ["lint", "-o", "json", "FILE"],
    "diff": ["diff", "FILE", "FILE"],
    "convert": ["convert", "--rules", "FILE", "--definition", "FILE", "--to", "v1", "-f", "FILE"],
    "rehearse": ["rehearse", "-f", "FILE", "--objects", "FILE"],
    "upgrade-manifest": ["upgrade-manifest", "FILE"],
}


def run(command: str, file: Path, content: str) -> tuple[int, str]:
    file.write_text(content)
    arguments = [str(file) if each == "FILE" else each for each in COMMANDS[command]]
    result = CliRunner(env={"KUBECONFIG": "/nowhere"}).invoke(main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs(tmp_path: Path, command: str, bomb: str) -> None:
    code, said = run(command, tmp_path / "bomb.yaml", BOMBS[bomb])
    assert code == 2
    assert "bomb.yaml" in said


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("place", ["spec: N", "spec: {group: N}", "spec: {x: N}", "N: N"])
def test_numbers(tmp_path: Path, command: str, number: str, place: str) -> None:
    code, _ = run(command, tmp_path / "number.yaml", HEAD + place.replace("N", NUMBERS[number]) + "\n")
    assert code in (0, 1, 2)


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_as_defaults(tmp_path: Path, number: str) -> None:
    schema = f"{{type: object, default: {NUMBERS[number]}}}"
    versions = f"[{{name: v1, schema: {{openAPIV3Schema: {schema}}}}}]"
    spec = f"{{group: b.c, names: {{kind: A, plural: a}}, versions: {versions}}}"
    code, said = run("lint", tmp_path / "number.yaml", f"{HEAD}spec: {spec}\n")
    assert code == 1
    assert "1 CRD: " in said


def test_what_go_cannot_hold_is_a_text() -> None:
    assert plain_scalar("1e999999999") == "1e999999999"
    assert plain_scalar("-1e400") == "-1e400"
    assert plain_scalar("1e300") == 1e300
