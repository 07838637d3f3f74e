"""Semantic versions, as github.com/blang/semver/v4 reads and compares them (library/semverlib.go, version
1).
"""

from typing import Final

from crdkeeper.apiserver.cel.values.overloads import Overload, Table
from crdkeeper.apiserver.cel.values.values import EvaluationError, Opaque, Value, no_overload
from crdkeeper.apiserver.golang.numbers import MAX_INT, MAX_UINT
from crdkeeper.apiserver.golang.text import quote

_NUMBERS: Final = frozenset("0123456789")
_ALPHANUMERIC: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")

_Part = tuple[int, int | str]


class Semver(Opaque):
    """Major, minor, patch and the parts of the pre-release; build metadata does not count."""

    __slots__ = ("numbers", "prerelease")
    type_name = "kubernetes.Semver"

    def __init__(self, numbers: tuple[int, int, int], prerelease: tuple[_Part, ...]) -> None:
        self.numbers = numbers
        self.prerelease = prerelease

    def equals(self, other: Value) -> bool:
        """Versions are equal if neither precedes the other; there is no overload for other types."""
        if type(other) is not Semver:
            raise no_overload()
        return self.compare(other) == 0

    def compare(self, other: "Semver") -> int:
        """-1, 0 or 1 by the rules of semantic versions."""
        if self.numbers != other.numbers:
            return 1 if self.numbers > other.numbers else -1
        one, two = self.prerelease, other.prerelease
        if not one or not two:
            return bool(two) - bool(one)
        return (one > two) - (one < two)


def _number(text: str, name: str) -> int:
    if not _NUMBERS.issuperset(text):
        raise EvaluationError(f"Invalid character(s) found in {name.lower()} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name} number must not contain leading zeroes {quote(text)}")
    return _uint(text)


def _uint(text: str) -> int:
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    value = int(text) if len(text) < 100 else MAX_UINT + 1
    if value > MAX_UINT:
        raise EvaluationError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return value


def _prerelease(text: str) -> _Part:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if _NUMBERS.issuperset(text):
        if len(text) > 1 and text[0] == "0":
            reason = "Numeric PreRelease version must not contain leading zeroes"
            raise EvaluationError(f"{reason} {quote(text)}")
        return 0, _uint(text)
    if not _ALPHANUMERIC.issuperset(text):
        raise EvaluationError(f"Invalid character(s) found in prerelease {quote(text)}")
    return 1, text


def parse_semver(text: str) -> Semver:
    """A semantic version (semver.Parse). Raises EvaluationError."""
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "Major"), _number(parts[1], "Minor")
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, prerelease = rest.partition("-")
    patch = _number(patch_text, "Patch")
    identifiers = tuple(map(_prerelease, prerelease.split("."))) if dash else ()
    for each in build.split(".") if plus else ():
        if not each:
            raise EvaluationError("Build meta data is empty")
        if not _ALPHANUMERIC.issuperset(each):
            raise EvaluationError(f"Invalid character(s) found in build meta data {quote(each)}")
    return Semver((major, minor, patch), identifiers)


def _normalized(text: str) -> str:
    """Without a leading v and leading zeros, and with all three numbers (normalizeAndParse)."""
    parts = text.removeprefix("v").split(".", 2)
    for at, each in enumerate(parts):
        if len(each) > 1:
            stripped = each.lstrip("0")
            parts[at] = stripped if stripped and stripped[0] in _NUMBERS else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _semver(text: str, normalize: bool = False) -> Semver:
    return parse_semver(_normalized(text) if normalize else text)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvaluationError:
        return False
    return True


def _signed(value: int) -> int:
    return value if value <= MAX_INT else value - MAX_UINT - 1


_S: Final = Semver.type_name

MEMBERS: Final[Table] = {
    "isGreaterThan": (Overload((_S, _S), lambda one, two: one.compare(two) == 1),),
    "isLessThan": (Overload((_S, _S), lambda one, two: one.compare(two) == -1),),
    "compareTo": (Overload((_S, _S), Semver.compare),),
    "major": (Overload((_S,), lambda version: _signed(version.numbers[0])),),
    "minor": (Overload((_S,), lambda version: _signed(version.numbers[1])),),
    "patch": (Overload((_S,), lambda version: _signed(version.numbers[2])),),
}
GLOBALS: Final[Table] = {
    "semver": (Overload(("string",), _semver), Overload(("string", "bool"), _semver)),
    "isSemver": (Overload(("string",), _is_semver), Overload(("string", "bool"), _is_semver)),
}
