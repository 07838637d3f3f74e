"""The order of resources."""

from crdkeeper.core.templates.graph import cycle, waves


def test_waves_are_in_the_order_of_the_composition() -> None:
    needs = {"c": {"a"}, "a": set[str](), "b": {"a"}, "d": {"b", "c"}, "e": set[str]()}
    assert waves(needs) == (("a", "e"), ("c", "b"), ("d",))
    assert cycle(needs) is None


def test_what_does_not_exist_is_not_waited_for() -> None:
    assert waves({"a": {"x"}}) == (("a",),)


def test_a_cycle_is_named_from_its_first_resource() -> None:
    needs = {"x": {"c"}, "a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert cycle(needs) == ["a", "b", "c", "a"]
    assert cycle({"a": {"a"}}) == ["a", "a"]
