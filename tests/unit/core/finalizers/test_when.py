"""The condition that an object must meet, also on objects made to be expensive or odd."""

import pytest

from crdkeeper.core.conversion.nesting import loads
from crdkeeper.core.finalizers.when import compile_when


@pytest.mark.parametrize(
    ("when", "met"),
    [
        ("object.spec.engine == 'mysql'", True),
        ("object.metadata.name == 'other'", False),
        ("!has(object.status)", True),
        ("object.status.state == 'gone'", False),
        ("object.spec.flag", True),
        ("object.spec.engine", False),
        ("object.spec.number == 1", True),
        ("int(object.spec.engine) == 1", False),
        ("object.spec.list.all(a, object.spec.list.all(b, object.spec.list.all(c, true)))", False),
        ("object.spec.long.matches('(a|aa)+$')", False),
    ],
)
def test_objects(when: str, met: bool) -> None:
    items = ",".join(map(str, range(5000)))
    text = (
        '{"metadata":{"name":"one"},"spec":{"engine":"mysql","flag":true,"number":1,'
        f'"list":[{items}],"long":"{"a" * 1_000_000}!"}}}}'
    )
    assert compile_when(when)(loads(text)) is met


def test_what_is_nested_too_deep_for_cel() -> None:
    deep = loads('{"metadata":{"name":"one"},"spec":' + '{"a":' * 9000 + "1" + "}" * 9000 + "}")
    for when in ("object.spec == object.spec", "true"):
        assert not compile_when(when)(deep)


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("object.", "Syntax error"),
        ("1 + 1", "it is a int, not a bool"),
        ("other.spec == 1", "undeclared reference"),
        ("object" + ".optMap(x, x)" * 5, "more than 4 of optMap"),
        ("(" * 500 + "true" + ")" * 500, r"nest|deep|recursion|Syntax"),
        ("object.a == '\ud800'", "surrogate"),
    ],
)
def test_what_is_no_condition(when: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compile_when(when)
