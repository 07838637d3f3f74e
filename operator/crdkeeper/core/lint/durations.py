"""Which strings are to be durations of Go, by their description.

A schema does not show how a program reads a string: controller-gen writes the same for a metav1.Duration and
for any other string. And an example shows users how to write a duration, but promises nothing.
"""

import re
from typing import Final

from crdkeeper.apiserver.golang.durations import parse
from crdkeeper.apiserver.schema.props import Schema

_OF_GO: Final = re.compile(
    r"ParseDuration|\b(?:time|metav1)\.Duration|\bduration string|\bGo(?:lang)? duration"
    r"|\bns\W{1,5}(?:us|µs)\b",
    re.IGNORECASE,
)
"""Go's parser and types, and the units of which only Go's documentation lists all."""
_DEMAND: Final = re.compile(r"\b(?:must|has to|should|format)\b[^.;\n]*", re.IGNORECASE)
"""The rest of a sentence that demands a format."""
_SHOWN: Final = re.compile(r"\b(?:[0-9]+(?:ns|us|ms|s|m|h))+\b")
_OF_DEFAULT: Final = re.compile(r"\bdefault(?:s|ed)?\b[^.;\n]*$", re.IGNORECASE)
_LONGEST_DEFAULT: Final = 60
"""Characters before a value that call it the default."""


def promises_duration(schema: Schema) -> bool:
    """Whether the description names Go's format of durations, or demands one that it shows.

    The default is not enough, wherever it is named: it shows the format, and few set the field.
    """
    text = schema.get("description") or ""
    if _OF_GO.search(text):
        return True
    default = parse(str(schema.get("default")))
    for demand in _DEMAND.finditer(text):
        for each in _SHOWN.finditer(demand[0]):
            before = demand[0][max(0, each.start() - _LONGEST_DEFAULT) : each.start()]
            if parse(each[0]) != default and not _OF_DEFAULT.search(before):
                return True
    return False
