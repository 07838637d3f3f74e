"""Output is visible and without effects; documents have the same content as their source."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import kopf
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.cli.output import printing
from crdkeeper.cli.output.logs import one_line_logs
from crdkeeper.cli.output.printing import Styled, Trouble, as_json, as_yaml
from crdkeeper.core.documents.yamldocument import documents
from crdkeeper.core.text import visible
from tests.unit.cli.hostile import ALL, assert_harmless

# Surrogates are not in JSON that parses everywhere, and YAML's C parser rejects them.
TEXTS = st.text(
    st.one_of(
        st.sampled_from("#:[]\n\r\t\x1b\x9b\u202e\u2028\\\"' -"), st.characters(exclude_categories=["Cs"])
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Grüße, 世界 👋", "Grüße, 世界 👋"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("a\x9bb\x7f", r"a\x9bb\x7f"),
        ("a\u202eb\u2028c", r"a\u202eb\u2028c"),
        ("a\U000e0041", r"a\U000e0041"),
        ("a\udc80", r"a\udc80"),
        ("no \\x1b", "no \\x1b"),
    ],
)
def test_what_is_unseen_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", r"\x3a:error::x"),
        ("  ::error::x", r"  \x3a:error::x"),
        ("\u00a0::error::x", "\u00a0\\x3a:error::x"),
        ("a::b ::c", "a::b ::c"),
        ("a ##[error]b", r"a #\x23[error]b"),
        ("##vso[task]###teamcity[", r"#\x23vso[task]##\x23teamcity["),
        ("## heading", "## heading"),
    ],
)
def test_no_line_is_a_command_of_a_build_system(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(TEXTS)
def test_any_text_is_one_harmless_line(text: str) -> None:
    shown = visible(text)
    assert_harmless(shown, markup=False)
    assert shown.splitlines() in ([], [shown])
    assert visible(shown) == shown


@given(VALUES)
def test_json_says_the_same(value: Any) -> None:
    text = as_json(value)
    assert_harmless(text, markup=False)
    assert json.loads(text) == value


@given(st.lists(VALUES, min_size=1, max_size=3), st.sampled_from((20, 80, 110)))
def test_yaml_says_the_same(values: list[Any], width: int) -> None:
    text = as_yaml(values, width=width)
    assert_harmless(text, markup=False)
    assert list(yaml.safe_load_all(text)) == values


@pytest.mark.parametrize(
    "text",
    ["", "~", "y", "N", "on", "1e3", "12345e6", "-.5", "0o17", "098765432109", "1_0e3", "0x1f", "2001-01-01"],
)
def test_what_kubectl_would_take_for_something_else_is_quoted(text: str) -> None:
    (document,) = documents(as_yaml([{text: [text]}]))
    assert document.value == {text: [text]}


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_yaml_of_large_documents_says_the_same(values: list[Any]) -> None:
    documents = [{"content": each, "more": [0] * 20} for each in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printing, "MOST_VALUES", 20)
        text = as_yaml(documents)
    assert_harmless(text, markup=False)
    assert list(yaml.safe_load_all(text)) == documents


def test_a_large_document_is_written_without_a_node_for_each_value(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = 0
    serialize = yaml.SafeDumper.serialize_node

    def counted(self: Any, *args: Any) -> None:
        nonlocal nodes
        nodes += 1
        serialize(self, *args)

    monkeypatch.setattr(printing._Dumper, "serialize_node", counted)
    shared = {"type": "object", "properties": {"a": {"type": "string"}}}
    large = {"versions": [{"name": f"v{i}", "schema": shared} for i in range(20_000)]}
    assert yaml.load(as_yaml([large, shared]).partition("---\n")[0], Loader=yaml.CSafeLoader) == large
    assert 0 < nodes < 50


def test_a_large_document_with_a_key_that_yaml_has_not() -> None:
    with pytest.raises(Trouble, match="a key of more than 1,000 characters; use -o json"):
        as_yaml([{"k" * 1_100: [0] * printing.MOST_VALUES}])
    as_yaml([{"k" * 900: ["v" * 2_000, *[0] * printing.MOST_VALUES]}])


@pytest.mark.parametrize(
    "value", [2**64, -(2**63) - 1, "\udc80", {"a\ud800": 10**4000}, [[2**70, float("inf")]], float("nan")]
)
def test_json_has_what_orjson_has_not(value: Any) -> None:
    text = as_json(value)
    assert_harmless(text, markup=False)
    assert "Infinity" not in text
    assert "NaN" not in text


def test_json_goes_deep() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert json.loads(as_json(deep)) == deep


def test_yaml_that_is_too_deep_is_said_to_be() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(Trouble, match="nested too deeply"):
        as_yaml([deep])


def test_colors_are_ours_only() -> None:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    printing.line("a\x1b[0m ", Styled("b\x1b[0m", "red", bold=True), " c", file=stream)
    assert stream.getvalue() == "a\\x1b[0m \x1b[31m\x1b[1mb\\x1b[0m\x1b[0m c\n"


@pytest.mark.parametrize("parts", [(Styled("#", "red"), "#[error]x"), (Styled(":", "red"), ":error::x")])
def test_parts_of_a_line_are_no_command_together(parts: tuple[str | Styled, ...]) -> None:
    stream = io.StringIO()
    printing.line(*parts, file=stream)
    assert_harmless(stream.getvalue(), markup=False)


@pytest.mark.parametrize(
    "error",
    [
        click.ClickException(ALL),
        Trouble(ALL, "and", ALL),
        click.UsageError(ALL),
        click.BadParameter(ALL, param_hint=ALL),
        click.NoSuchOption(ALL),
        click.FileError(ALL, hint=ALL),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors(error: click.ClickException, capsys: pytest.CaptureFixture[str]) -> None:
    printing.show(error)
    said = capsys.readouterr().err
    assert_harmless(said)
    assert said.startswith("Error: ")
    assert said.count("\n") == (3 if isinstance(error, Trouble) else 1)


@contextmanager
def bare() -> Iterator[None]:
    """The root logger has no handlers but those that are added meanwhile."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.mark.parametrize("log_format", [kopf.LogFormat.FULL, kopf.LogFormat.PLAIN, kopf.LogFormat.JSON])
@pytest.mark.parametrize("prefix", [True, False])
def test_a_record_is_one_line(
    log_format: kopf.LogFormat, prefix: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    about = {"name": ALL, "namespace": ALL, "uid": None}
    with bare():
        kopf.configure(log_format=log_format, log_prefix=prefix)
        one_line_logs()
        one_line_logs()
        logging.getLogger("a").warning("%s and %s", ALL, "more", extra={"k8s_ref": about})
    said = capsys.readouterr().err
    assert_harmless(said)
    assert said.count("\n") == 1
    if log_format is kopf.LogFormat.JSON:
        assert json.loads(said)["message"].endswith(f"{visible(ALL)} and more")


def test_a_traceback_cannot_be_taken_for_records(capsys: pytest.CaptureFixture[str]) -> None:
    with bare():
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
        one_line_logs()
        try:
            raise ValueError(ALL)
        except ValueError:
            logging.getLogger("a").exception("It failed: %s", ALL)
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == f"ERROR a: It failed: {visible(ALL)}"
    assert all(each.startswith("    ") for each in rest)
    assert "Traceback" in rest[0]
    assert_harmless("\n".join(each[4:] for each in rest[:-1]), markup=False)


def test_records_without_a_handler_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with bare():
        one_line_logs()
        logging.getLogger("a").warning("It is so: %s", ALL)
    assert_harmless(capsys.readouterr().err)
