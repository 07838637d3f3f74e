"""Compositions and composites that are made to take long, or to fill the memory.

Each has to end in a second or two, with an error. The limits of time leave room for a busy machine.
"""

import resource
import time
from collections.abc import Iterator
from typing import Any

import pytest

from crdkeeper.core.templates.kinds import TargetKind
from crdkeeper.core.templates.rendered import Rendering
from tests.unit.core.templates.compositions import (
    COMPOSITE,
    DATABASE,
    config_map,
    problems,
    rendered,
    server,
    summary,
)

MOST_SECONDS = 20
MOST_MEBIBYTES = 500
SPEC = DATABASE["spec"]
MANY = {**DATABASE, "spec": {**SPEC, "names": [str(i) for i in range(100_000)]}}
LONG = {**DATABASE, "spec": {**SPEC, "engine": "x" * 1_000_000}}
SHORT = {**DATABASE, "spec": {**SPEC, "engine": "x"}}


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    start, memory = time.process_time(), _memory()
    yield
    assert time.process_time() - start < MOST_SECONDS
    assert _memory() - memory < MOST_MEBIBYTES


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def first_failure(made: Rendering) -> str:
    return next(each.why for each in made.resources if each.state == "failed")


def test_products_of_lists() -> None:
    a = server("a", ForEach=[{f"v{i}": "${composite.spec.names}"} for i in range(10)])
    assert "objects: a composite has at most 1,000 in total" in first_failure(rendered(a, given=MANY))
    assert "at most 1,000" in first_failure(rendered(*_of(300)))


def _of(number: int) -> list[Any]:
    """Several resources with that many objects each."""
    each = [{"v": f"${{lists.range({number}).map(i, string(i))}}"}]
    return [server(f"r{i}", called=f"r{i}-${{v}}", ForEach=each) for i in range(4)]


def test_a_thousand_objects_are_allowed() -> None:
    assert len(rendered(*_of(250)).objects) == 1_000


def test_a_list_of_a_million() -> None:
    a = server("a", ForEach=[{"v": "${lists.range(1000000)}"}])
    assert first_failure(rendered(a)) == (
        "it is too expensive: let the lists or texts that it reads be shorter"
    )


@pytest.mark.parametrize(
    "joined", ["${{r{0}.spec.text}}${{r{0}.spec.text}}", "${{r{0}.spec.text + r{0}.spec.text}}"]
)
def test_texts_that_double(joined: str) -> None:
    first = server("r0", text="${composite.spec.engine}")
    made = rendered(first, *[server(f"r{i}", text=joined.format(i - 1)) for i in range(1, 60)], given=SHORT)
    assert any(reason in first_failure(made) for reason in ("more than", "too expensive"))
    assert len(made.objects) < 30


def test_lists_that_contain_themselves_many_times() -> None:
    items = ", ".join(["r{0}.data.x"] * 20)
    last = [config_map(f"r{i}", x="${[" + items.format(i - 1) + "]}") for i in range(1, 60)]
    made = rendered(config_map("r0", x="${['x', 'x']}"), *last)
    assert "more than" in first_failure(made)


@pytest.mark.parametrize("wide", [10, 100])
def test_a_list_that_contains_itself_in_one_expression(wide: int) -> None:
    doubling = f".optMap(x, [{', '.join(['x'] * wide)}])"
    made = rendered(config_map("a", x="${optional.of([1])" + doubling * 8 + ".value()}"))
    assert first_failure(made) == "does not fit: too many values"


def test_values_that_get_deeper() -> None:
    deeper = "${" + '{"a": ' * 90 + "r%d.data.x" + "}" * 90 + "}"
    last = [config_map(f"r{i}", x=deeper % (i - 1)) for i in range(1, 60)]
    assert first_failure(rendered(config_map("r0", x="y"), *last)) == "does not fit: more than 100 levels"


def test_a_composite_that_is_deep() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = {"a": deep}
    given = {**DATABASE, "metadata": {**DATABASE["metadata"], "labels": deep}}
    assert summary(rendered(config_map("a", x="${composite.metadata.labels}"), given=given))["a"].startswith(
        "failed"
    )


def test_large_objects() -> None:
    a = server("a", called="x-${v}", text="${composite.spec.engine}", ForEach=[{"v": "${lists.range(900)}"}])
    assert first_failure(rendered(a, given=LONG)) == "more than 33,554,432 bytes in all objects"
    wide = server("a", texts=["${composite.spec.engine}"] * 100)
    assert first_failure(rendered(wide, given=LONG)).startswith("does not fit: more than")


def test_deep_templates_and_expressions() -> None:
    deep: Any = {}
    for _ in range(250):
        deep = {"a": deep}
    assert problems(server("a", open=deep))[0].endswith("more than 100 levels | Nest less.")
    brackets = "${" + "(" * 4_000 + "1" + ")" * 4_000 + "}"
    assert "too deep" in problems(server("a", replicas=brackets))[0]


def test_very_many_expressions() -> None:
    conditions = ["${" + "true && " * 900 + "true}"] * 16
    many = [server(f"r{i}", IncludeWhen=conditions) for i in range(100)]
    assert "more than 200,000 characters in total" in problems(*many)[0]
    long = "${composite.spec.engine}" * 12_000
    assert "more than 5,000 expressions in total" in problems(server("a", text=long))[0]


@pytest.mark.parametrize("text", ["${1}", "${composite.spec.replicas}"])
def test_very_many_short_expressions(text: str) -> None:
    start = time.process_time()
    assert "more than 5,000 expressions in total" in problems(server("a", text=text * 200_000))[0]
    assert problems(server("a", text=text * 4_999)) == []
    assert time.process_time() - start < MOST_SECONDS / 2


@pytest.mark.parametrize(
    "condition",
    [
        "composite.spec.names.exists(a, composite.spec.names.exists(b, composite.spec.names.all(c, a == c)))",
        "composite.spec.engine.matches('(x+x+)+y')",
        "composite.spec.names.map(a, composite.spec.names).size() == 0",
        "composite.spec.engine.replace('x', composite.spec.engine) == ''",
    ],
)
def test_expensive_conditions(condition: str) -> None:
    given = {**DATABASE, "spec": {**MANY["spec"], "engine": LONG["spec"]["engine"]}}
    assert summary(rendered(server("a", IncludeWhen=["${" + condition + "}"]), given=given))["a"].startswith(
        "failed"
    )


def test_many_conditions_that_are_almost_too_expensive() -> None:
    costly = "${lists.range(20000).all(x, x + 1 > x)}"
    made = rendered(*[server(f"r{i}", IncludeWhen=[costly]) for i in range(100)])
    states = [each.state for each in made.resources]
    assert states[0] == "rendered"
    assert states[-1] == "failed"


def test_references_from_each_to_all() -> None:
    dense = [server(f"r{i}", text="".join(f"${{r{j}.metadata.name}}" for j in range(i))) for i in range(60)]
    assert len(rendered(*dense).objects) == 60


def test_a_status_of_many_fields_that_are_too_large() -> None:
    given = {
        **DATABASE,
        "metadata": {**DATABASE["metadata"], "labels": {str(i): "x" for i in range(150_000)}},
    }
    status = {str(i): "${composite.metadata.labels}" for i in range(4_999)}
    anything = {"status": {"x-kubernetes-preserve-unknown-fields": True}}
    composite = TargetKind({**COMPOSITE, "properties": anything}, True)
    made = rendered(server("a"), given=given, composite=composite, status=status)
    assert (made.status, len(made.gaps)) == ({}, 4_999)
    repeated = "${optional.of([1])" + f".optMap(x, [{', '.join('x' * 100)}])" * 4 + ".value()}"
    made = rendered(server("a"), composite=composite, status={str(i): repeated for i in range(120)})
    assert (made.status, len(made.gaps)) == ({}, 120)


def test_macros_that_double() -> None:
    repeated = "${optional.of(1)" + ".optMap(x, x)" * 9 + ".value()}"
    found = problems(*[server(f"r{i}", replicas=repeated) for i in range(100)])
    assert "too many of optMap and optFlatMap" in found[0]
