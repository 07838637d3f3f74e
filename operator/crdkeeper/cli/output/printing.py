"""All output of the commands goes through here, so that data cannot act as anything else.

Names, messages and file names are untrusted, and terminals and build systems would obey them. Lines are
escaped (see `core.text.visible`); documents remain valid data with the same content. The linter bans other
ways to print.
"""

import json
import math
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

import click
import orjson
import yaml

from crdkeeper.core.documents.plainscalars import plain_scalar
from crdkeeper.core.text import UNSEEN, visible

if TYPE_CHECKING:
    from rich.console import Console

MOST_VALUES: Final = 50_000
"""Of a document that is written in YAML's own style: two seconds."""
_LONG_KEY: Final = re.compile(r'^ *"(?:[^"\\]|\\.){1000,}": ', re.MULTILINE)
"""YAML has a limit for keys, 1,024 characters."""
_LAST_OF_FOUR: Final = 0xFFFF
_SUSPICIOUS: Final = re.compile(r"##|::|[^ -~\n]")


class Styled(NamedTuple):
    """A part of a line in a color, if the terminal has colors."""

    text: str
    color: str | None = None
    bold: bool = False


class Trouble(click.ClickException):
    """Ends a command with one or more lines that describe the problem."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def line(*parts: str | Styled, err: bool = False, file: TextIO | None = None) -> None:
    """Print one line."""
    pieces = [each if isinstance(each, Styled) else Styled(each) for each in parts]
    shown = [each._replace(text=visible(each.text)) for each in pieces]
    text = visible("".join(each.text for each in pieces))
    if text == "".join(each.text for each in shown):  # two parts may be dangerous together
        text = "".join(
            click.style(each.text, fg=each.color, bold=each.bold or None)
            if each.color or each.bold
            else each.text
            for each in shown
        )
    click.echo(text, err=err, file=file)


def lines(texts: Iterable[str], *, err: bool = False) -> None:
    """Print each text as one line."""
    for each in texts:
        line(each, err=err)


def as_json(document: Any) -> str:
    """The document as JSON with everything visible; it parses to the document."""
    try:
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        # orjson does not support integers of more than 64 bits, surrogates or 255 levels.
        text = json.dumps(_finite(document), indent=2)
    return UNSEEN.sub(_escape_in_json, text).replace("##", "#\\u0023")  # "##" occurs only in strings


def _escape_in_json(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\n":
        return character  # between fields: in strings it is already escaped
    return f"\\u{ord(character):04x}" if character <= "\uffff" else json.dumps(character)[1:-1]


def _finite(value: Any) -> Any:
    """The value with null for floats that JSON lacks (NaN, infinity), as orjson writes them."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Dumper(yaml.SafeDumper):
    """Quotes what could be misread, also by kubectl, and keeps each text on one line."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = '"' if _SUSPICIOUS.search(text) or not isinstance(plain_scalar(text), str) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        super().write_double_quoted(text, split=False)


_Dumper.add_representer(str, _Dumper.represent_text)


def as_yaml(documents: Iterable[Any], *, width: int = 80) -> str:
    """The documents as YAML with everything visible; it parses to the documents. Raises Trouble.

    A document with very many values is written as JSON, which is YAML too, and takes a hundredth of the time.
    """
    parts = []
    try:
        for each in documents:
            if _has_more_values(each, MOST_VALUES):
                text = _as_flow(each)
            else:
                text = yaml.dump(each, Dumper=_Dumper, sort_keys=False, width=width)
            parts.append(text.replace("##", "#\\x23"))  # which is quoted wherever it occurs
    except RecursionError:
        raise Trouble("nested too deeply for YAML; use -o json") from None
    return "---\n".join(parts)


def _has_more_values(value: Any, limit: int) -> bool:
    """Whether a document has more values than that, those that it shares counted each time."""
    number, waiting = 1, [value]
    while waiting and number <= limit:
        each = waiting.pop()
        inner: Iterable[Any] = ()
        if isinstance(each, dict):
            inner = each.values()
        elif isinstance(each, list | tuple):
            inner = each
        before = len(waiting)
        waiting.extend(inner)
        number += len(waiting) - before
    return number > limit


def _as_flow(document: Any) -> str:
    try:
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        text = json.dumps(_finite(document), indent=2, ensure_ascii=False)
    if _LONG_KEY.search(text):
        raise Trouble("too large for YAML, with a key of more than 1,000 characters; use -o json")
    return f"{UNSEEN.sub(_escape_in_yaml, text)}\n"


def _escape_in_yaml(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] == "\n":
        return found[0]
    return f"\\u{code:04x}" if code <= _LAST_OF_FOUR else f"\\U{code:08x}"


def print_json(document: Any) -> None:
    """Print a document as JSON."""
    click.echo(as_json(document))


def print_yaml(*documents: Any, width: int = 80) -> None:
    """Print documents as YAML, between lines of `---`."""
    click.echo(as_yaml(documents, width=width), nl=False)


def print_page(text: str) -> None:
    """Print a page of the documentation, which contains only our own words."""
    click.echo(text, nl=False)


def terminal_width() -> int | None:
    """The characters in a line of the terminal that shows standard output; None if none does."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def console(stream: TextIO) -> "Console":
    """A terminal for progress; nothing that is shown is interpreted as markup."""
    from rich.console import Console  # Few commands need it.

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def show(error: click.ClickException) -> None:
    """Print on stderr why a command ends, like click."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        lines(error.ctx.get_usage().splitlines(), err=True)
        if error.ctx.command.get_help_option(error.ctx) is not None:
            asked = f"{error.ctx.command_path} {error.ctx.help_option_names[0]}"
            line(f"Try '{asked}' for help.", err=True)
        line(err=True)
    for i, each in enumerate(lines_of(error)):
        line(each if i else f"Error: {each}", err=True)


def lines_of(error: click.ClickException) -> Sequence[str]:
    """The message of an error, line by line."""
    if isinstance(error, Trouble):
        return error.lines
    if isinstance(error, click.MissingParameter):
        return error.format_message().splitlines()  # no data: it lists the choices
    return [error.format_message()]
