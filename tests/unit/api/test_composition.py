"""The kind Composition: the names that its resources cannot have are those of our own CEL engine."""

from crdkeeper.api.composition import TYPE_NAMES, VARIABLES, WORDS
from crdkeeper.apiserver.cel.library import conversion
from crdkeeper.apiserver.cel.syntax.grammar import RESERVED

LITERALS = {"true", "false", "null"}


def test_the_words_of_cel_are_reserved() -> None:
    assert set(WORDS) == RESERVED | LITERALS | {"in"}


def test_the_types_of_cel_are_reserved() -> None:
    assert set(TYPE_NAMES) == {each for each in conversion.TYPE_NAMES if "." not in each}


def test_no_name_is_reserved_twice() -> None:
    names = (*WORDS, *TYPE_NAMES, *VARIABLES)
    assert len(set(names)) == len(names)
