"""The results of JSONPaths, as evaluated by Go."""

from typing import Any

import pytest

from crdkeeper.apiserver.jsonpath.comparison import Native
from crdkeeper.apiserver.jsonpath.evaluation import Chance, EvaluationFailed, Stateful, Unbounded, first
from crdkeeper.apiserver.jsonpath.parser import parse_column

DATA: dict[str, Any] = {
    "one": {"a": 1},
    "list": [{"n": 1, "t": "x"}, {"n": 2, "t": "y"}, {"n": 2.0}, {"n": "2"}],
    "numbers": [5, 6, 7],
    "empty": [],
    "null": None,
    "text": "hé",
    "two": {"a": [], "b": ["b"]},
    "three": {"a": "no list", "b": ["b"], "c": ["c", "c"]},
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".one.a", [1]),
        (".null", [None]),
        (".null.a", []),
        (".text.a", []),
        (".list.n", []),
        (".numbers[-1]", [7]),
        (".numbers[1:]", [6]),
        (".numbers[::2]", [5]),
        (".numbers[1:1]", []),
        (".list[?(@.t)].n", [1]),
        ('.list[?(@.t=="y")].n', [2]),
        (".list[?(@.n>=2)].n", EvaluationFailed),
        (".list[0:2][?(@)]", EvaluationFailed),
        (".numbers[?(@>5)]", [6]),
        (".numbers[7]", EvaluationFailed),
        (".numbers[2:1]", EvaluationFailed),
        (".numbers[::0]", EvaluationFailed),
        (".one[0]", EvaluationFailed),
        (".one[?(@)]", EvaluationFailed),
        (".null[0]", []),
        (".one.*", [1]),
        (".two.*", [[], ["b"]]),
        (".two.*[0]", EvaluationFailed),
        (".two.*[*]", Chance),
        (".three.*[0:-1]", Chance),
        (".two['b','a']", [["b"]]),
        ("..t", ["x"]),
        ("..", [DATA]),
        (".text.*", [Native(ord("h"))]),
        (".one 5", [Native(5)]),
        (".numbers word", EvaluationFailed),
        (".numbers end", EvaluationFailed),
        (".numbers range", []),
        (".one.a}{.text", [1]),
        (".one.a}{.numbers[9]", EvaluationFailed),
        (".one.a}{range .numbers[*]}{.x}{end", Stateful),
    ],
)
def test_first(path: str, values: list[Any] | type[Exception]) -> None:
    if isinstance(values, type):
        with pytest.raises(values):
            first(parse_column(path), DATA)
    else:
        assert first(parse_column(path), DATA) == values


def test_a_path_that_multiplies_is_bounded() -> None:
    data: Any = {"a": 1}
    for _ in range(100):
        data = {"a": data, "b": data}
    with pytest.raises(Unbounded):
        first(parse_column("..a..a..a"), data)
    with pytest.raises(Unbounded):
        first(parse_column(".a" + ".*" * 5000), {"a": "x" * 300_000})
