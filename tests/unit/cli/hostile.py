"""Malicious data, and what must be true of all output about it."""

import re

TITLE = "\x1b]0;owned\x07"
CLEAR = "\x1b[2J\x1b[31m"
COMMAND = "\n::error file=app.py,line=1::owned"
RETURNED = "\r::stop-commands::owned"
AZURE = "##vso[task.setvariable variable=PATH]/owned"
OLD_GITHUB = "##[error]owned"
SEPARATORS = "\u2028::debug::owned\u2029\x85::debug::owned\x0b\x0c"
REVERSED = "\u202edlrow\u2066\u200f\u061c"
C1 = "\x9b31m\x9d0;owned\x9c"
UNSEEN = "\u200b\u00ad\ufeff\U000e0041\x7f\x00"
MARKUP = "[red]owned[/red][link=https://evil.example]x[/link]:boom:"

ALL = f"a{TITLE}{CLEAR}{COMMAND}{RETURNED}{AZURE}{OLD_GITHUB}{SEPARATORS}{REVERSED}{C1}{UNSEEN}{MARKUP}z"
FILE = f"::error file=x::owned {CLEAR}{COMMAND.replace('/', '')}{AZURE.replace('/', '')}{REVERSED}{C1}.yaml"
"""The name of a file: it may contain anything but / and NUL."""

_OBEYED = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def assert_harmless(text: str, *, markup: bool = True) -> None:
    """Nothing in it controls a terminal or a build system; with `markup`, it is printed as written."""
    found = _OBEYED.search(text)
    assert found is None, f"{found[0]!r} in {text[max(0, found.start() - 60) : found.end() + 60]!r}"
    for line in text.split("\n"):
        assert not line.lstrip().startswith("::"), line
    assert not re.search(r"##\w*\[", text)
    if markup:
        assert MARKUP in text
