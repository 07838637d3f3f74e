"""Text for people, on terminals and in logs."""

import re
from collections.abc import Sequence
from typing import Final

UNSEEN: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: terminals obey them
    "\u00ad\u200b\u2060-\u2064\ufeff"  # invisible, yet part of a name
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # these change the order of the text around them
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff"  # surrogates, which no encoding accepts
    "\ufff9-\ufffb\U000e0000-\U000e007f"
    "]"
)
"""Characters that have an effect instead of a visible form."""
_BUILD_COMMAND: Final = re.compile(r"##(?=\w*\[)")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def count(number: int, noun: str) -> str:
    """`1 object`, `2 objects`, `12,345 objects`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shortened(names: Sequence[str], most: int = 20) -> str:
    """`a, b and 3 more`, with at most so many names."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def visible(text: str) -> str:
    r"""The text as one visible line without effects: `\n`, `\x1b` and so on replace invisible characters.

    Names, versions, messages and file names come from strangers. Unescaped, they could control a terminal,
    forge a log line, or show a name as another. Build systems treat log lines as commands: GitHub `::error …`
    at the beginning of one, GitHub and Azure Pipelines `##[…]` and `##vso[…]` anywhere.

    Idempotent.
    """
    if not (text.isascii() and text.isprintable()):
        text = UNSEEN.sub(_escape, text)
    if "##" in text:
        text = _BUILD_COMMAND.sub(r"#\\x23", text)
    start = len(text) - len(text.lstrip())
    return f"{text[:start]}\\x3a{text[start + 1 :]}" if text.startswith("::", start) else text


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if code <= 0xFF:
        return _SHORT.get(character) or f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
