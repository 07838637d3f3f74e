"""How long a text in status, in an Event or in a log may be, and how pydantic's errors are described there.

Texts contain names, keys and messages from users and from other people's webhooks. A status that is too large
can never be written, so the work behind it would be repeated for ever.
"""

from functools import partial
from typing import Annotated, Final

from pydantic import AfterValidator, ValidationError

MESSAGE_BYTES: Final = 4096
"""The longest message of a condition; the API allows 32,768 characters."""
LINE_BYTES: Final = 1024
"""The longest of several texts in status, and the longest note of an Event, as the API requires."""

_CUT: Final = "…"
_ERRORS_SHOWN: Final = 10


def bounded(text: str, most: int = MESSAGE_BYTES) -> str:
    """The text, cut at a character if it takes more than `most` bytes of UTF-8. Idempotent."""
    if 4 * len(text) <= most:
        return text
    content = text.encode(errors="replace")
    if len(content) <= most:
        return text
    return content[: most - len(_CUT.encode())].decode(errors="ignore") + _CUT


def described(error: ValidationError) -> str:
    """Which fields are wrong and why, without their values, which pydantic's own text would show."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in problems[:_ERRORS_SHOWN]]
    more = [f"and {len(problems) - _ERRORS_SHOWN} more"] if len(problems) > _ERRORS_SHOWN else []
    return bounded("; ".join(shown + more), LINE_BYTES)


Message = Annotated[str, AfterValidator(bounded)]
"""A condition's message."""
Line = Annotated[str, AfterValidator(partial(bounded, most=LINE_BYTES))]
"""A text of which status has several, shortened if it is too long."""
