"""Problems that a change of a schema causes: they hold the resources concerned, and nothing else."""

from typing import Any

from crdkeeper.core.templates.kinds import TargetKind
from crdkeeper.core.templates.rendering import render
from tests.unit.core.templates.compositions import DATABASE, config_map, in_files, result, server, summary

NARROW = TargetKind({"type": "object", "properties": {"spec": {"type": "object", "properties": {}}}}, True)


def test_a_schema_that_no_longer_fits_holds_the_resources_that_it_concerns() -> None:
    resources = (
        server("a", text="x"),
        server("b", text="${a.metadata.name}"),
        config_map("c", x="${a.spec.text}"),
        config_map("d", x="${a.metadata.name}", y="${composite.spec.engine}"),
        config_map("e", x="${c.metadata.name}"),
    )
    kinds = {("example.com/v1", "Server"): NARROW}
    found = result(*resources, kinds=kinds, status={"address": "${a.status.phase}"})
    assert {name: [each.message for each in held] for name, held in found.target_problems.items()} == {
        "a": ["there is no such field"],
        "b": ["there is no such field"],
        "c": ["undefined field 'text'"],
        "": ["undefined field 'status'"],
    }
    assert not found.own_problems
    assert len(found.problems) == 4
    assert found.composition is not None
    assert found.composition.waves == (("a",), ("b", "c", "d"), ("e",))
    live = {"address": "before"}
    made = render(found.composition, {**DATABASE, "status": live}, in_files())
    assert summary(made) == {
        "a": "failed there is no such field",
        "b": "failed there is no such field",
        "c": "failed undefined field 'text'",
        "d": "waiting a, which has an error",
        "e": "waiting c, which has an error",
    }
    assert [(each.status_path, each.kind) for each in made.gaps] == [((), "failed")]


def test_what_is_wrong_with_any_schema_is_the_compositions_own_problem() -> None:
    resources = (server("a", text="x"), server("b", replicas="${composite.spec.engin}"))
    kinds = {("example.com/v1", "Server"): NARROW}
    found = result(*resources, kinds=kinds)
    assert [str(each.path) for each in found.own_problems] == ["spec.resources[1].template.spec.replicas"]
    assert (found.composition, found.target_problems) == (None, {})
    assert len(found.problems) == 3


def test_more_problems_than_are_listed_hold_everything() -> None:
    wrong: dict[str, Any] = {f"x{j}": 1 for j in range(100)}
    found = result(server("a", **wrong), server("b"))
    assert (found.composition, len(found.own_problems), found.target_problems) == (None, 100, {})
