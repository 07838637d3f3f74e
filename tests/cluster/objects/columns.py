"""Objects and printer columns, with paths that lead somewhere, paths that nearly do, and other texts."""

import copy
import random
from typing import Any

Json = Any
TYPES = ("string", "string", "integer", "number", "boolean", "date")
FORMATS = ("", "", "int32", "int64", "float", "double", "byte", "date", "date-time", "password")
TIMES = (
    "0001-01-01T00:00:00Z",
    "1066-10-14T09:00:00Z",
    "1969-12-31T23:59:59.999Z",
    "2026-01-02T03:04:05Z",
    "2026-01-02T3:04:05Z",
    "2026-01-02T03:04:05,5+02:00",
    "2026-01-02t03:04:05z",
    "2026-01-02T03:04:05",
    "2026-02-29T00:00:00Z",
    "2026-01-02T24:00:00Z",
    "2026-01-02",
    "9999-12-31T23:59:59Z",
    "0000-01-01T00:00:00Z",
    "null",
    "",
    " ",
)
SCALARS = (
    None,
    None,
    True,
    False,
    0,
    1,
    -3,
    2**31,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    2**63,
    10**20,
    0.5,
    -1.5,
    1e-7,
    1e21,
    1e300,
    123456.789,
    1234567.5,
    1.0,
    "",
    "a",
    "Ready",
    "True",
    "1",
    "1.5",
    "é<&>",
    "a\nb",
    "\u2028",
    "x y",
    *TIMES,
)
KEYS = ("a", "b", "c", "type", "status", "n", "a.b", "x-y", "é", "*", "a b", "")
_QUOTED = (
    "'Ready'",
    '"Ready"',
    '"a"',
    "'a'",
    "1",
    "0.5",
    "true",
    "-3",
    "@.a",
    "@.b",
    "@.status",
    "$.a",
    '"\\u0061"',
    "x",
)
_ROOTS = (*(".spec",) * 6, *(".status",) * 4, ".metadata", ".", "..", "..a", "..type", ".kind", ".*")
_BRANCHES = ("0", "1", "-1", "'a'", "'b'", "'x-y'", "*", "0:2")
_OPERATORS = ("==", "==", "==", "!=", "<", "<=", ">", ">=", "=", "=>", "===")
_FITTING: tuple[tuple[type, str], ...] = (
    (object, "string"),
    (bool, "boolean"),
    (int, "integer"),
    (int, "number"),
    (float, "number"),
    (float, "integer"),
    (str, "date"),
)
_NOISE = (
    ".",
    "..",
    "[",
    "]",
    "'",
    '"',
    "*",
    "@",
    "$",
    "{",
    "}",
    "(",
    ")",
    "?",
    ",",
    ":",
    "\\",
    " ",
    "-",
    "1",
    "é",
    "a",
    "range",
    "end",
    "true",
    "+5",
    "}{",
    "{.a}",
    "\t",
    "!",
    "&&",
)


def value(draw: random.Random, depth: int = 0) -> Json:
    """Any JSON."""
    kind = draw.randrange(10)
    if depth < 4 and kind < 3:
        count = draw.choice((0, 1, 1, 2, 3))
        return {draw.choice(KEYS): value(draw, depth + 1) for _ in range(count)}
    if depth < 4 and kind < 6:
        if draw.randrange(3) == 0:
            return [{"type": draw.choice(("Ready", "Synced", 1)), "status": value(draw, 4)} for _ in range(3)]
        return [value(draw, depth + 1) for _ in range(draw.choice((0, 1, 2, 3, 5)))]
    return draw.choice(SCALARS)


def content(draw: random.Random) -> Json:
    """A spec or status."""
    return {key: value(draw, 1) for key in draw.sample(KEYS, 6)}


def changed(draw: random.Random, old: Json) -> Json:
    """The value with a part of it replaced."""
    if not old or not isinstance(old, dict | list) or draw.randrange(8) == 0:
        return value(draw, 3)
    new = copy.copy(old)
    key = draw.choice(sorted(old)) if isinstance(old, dict) else draw.randrange(len(old))
    new[key] = changed(draw, old[key])
    return new


def path(draw: random.Random, objects: list[Json]) -> tuple[str, Json]:
    """The path of a column, and what may be there in one of the objects."""
    found = draw.choice(_ROOTS)
    here = draw.choice(objects).get(found[1:]) if found in (".spec", ".status", ".metadata") else None
    for _ in range(draw.choice((1, 1, 2, 2, 3, 4))):
        step, here = _step(draw, here)
        found += step
    if draw.randrange(10) == 0:
        at = draw.randrange(1, len(found) + 1)
        found = found[:at] + draw.choice(_NOISE) + found[at + draw.randrange(2) :]
    return found, here


def _step(draw: random.Random, here: Json) -> tuple[str, Json]:
    kind = draw.randrange(24)
    if isinstance(here, dict) and here and kind not in (9, 10):
        key = draw.choice(sorted(here))
        return _key(draw, key), here[key]
    if isinstance(here, list) and here and kind not in (9, 10):
        index = draw.randrange(len(here))
        if kind < 3:
            return f"[{index if kind else index - len(here)}]", here[index]
        if kind < 6:
            return _filter(draw), here[index]
        return _bounds(draw), here[index]
    if kind == 9:
        return draw.choice((".*", "[*]", "..", "..*")), next(iter(here.values()), None) if isinstance(
            here, dict
        ) else here
    if kind == 10:
        return _union(draw), None
    return draw.choice((_bounds(draw), _filter(draw), _key(draw, draw.choice(KEYS)))), None


def _key(draw: random.Random, key: str) -> str:
    escaped = key.replace(".", "\\.").replace(" ", "\\ ")
    return draw.choice(
        (f".{escaped}", f".{escaped}", f"['{escaped}']", f".{key}", f"['{key}']", f'["{key}"]')
    )


def _bounds(draw: random.Random) -> str:
    parts = [
        draw.choice(("", "0", "1", "2", "-1", "-2", "7", "-9")) for _ in range(draw.choice((1, 2, 2, 3)))
    ]
    return f"[{':'.join(parts)}]"


def _union(draw: random.Random) -> str:
    branches = [draw.choice(_BRANCHES) for _ in range(draw.choice((2, 2, 3)))]
    return "[" + draw.choice((",", ", ")).join(branches) + "]"


def _filter(draw: random.Random) -> str:
    left = draw.choice(
        ("@.type", "@.type", "@.status", "@.a", "@['type']", "@", "@.a.b", "@[0]", "@.*", "@..a", "1")
    )
    if draw.randrange(4) == 0:
        return f"[?({left})]"
    operator = draw.choice(_OPERATORS)
    if draw.randrange(3) == 0:
        operator = f" {operator} "
    return f"[?({left}{operator}{draw.choice(_QUOTED)})]"


def column(draw: random.Random, objects: list[Json], number: int) -> Json:
    """A column as a CRD has it."""
    where, there = path(draw, objects)
    fitting = [name for type_, name in _FITTING if isinstance(there, type_)]
    type_ = draw.choice(fitting if fitting and draw.randrange(3) else TYPES)
    found: dict[str, Json] = {"name": f"C{number}", "type": type_, "jsonPath": where}
    if chosen := draw.choice(FORMATS):
        found["format"] = chosen
    if draw.randrange(4) == 0:
        found["priority"] = draw.choice((0, 1, 5, -1))
    return found
