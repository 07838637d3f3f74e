"""What the CEL rules of an object compare with the old object, such as `self.size == oldSelf.size`.

Found in the text of a rule, wherever it stands there: a comparison that overlooks something does so in any
expression.
"""

import re
from collections.abc import Iterable
from typing import Final

_BLANK: Final = re.compile(r"\s+")
_COMPARISON: Final = re.compile(
    r"(?<![\w.])(self|oldSelf)((?:\.\w+)*)==(self|oldSelf)((?:\.\w+)*)(?![\w.(\[])"
)


def compared(rules: Iterable[str]) -> frozenset[str]:
    """The paths of the values that the rules compare, such as `.size`; empty for the object itself."""
    found: set[str] = set()
    for rule in rules:
        if "oldSelf" not in rule:
            continue
        for one, path, other, same in _COMPARISON.findall(_BLANK.sub("", rule)):
            if one != other and path == same:
                found.add(path)
    return frozenset(found)
