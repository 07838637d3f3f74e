"""Retargeting any managedFields that an API server may store."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.core.migration.managedfields import retarget

GROUP, GOAL = "example.com", "example.com/v2"
OURS = ("example.com/v1", "example.com/v2", "example.com/v3beta1")
OTHERS = ("other.io/v1", "example.com.au/v1", "v1", "")

Entry = dict[str, Any]


def identity(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """As BuildManagerIdentifier of structured-merge-diff: for an applier the version does not count."""
    version = None if entry["operation"] == "Apply" else entry["apiVersion"]
    return (entry["manager"], entry["operation"], version, entry.get("subresource", ""))


names = st.sampled_from(["f:a", "f:b", "f:c", ".", 'k:{"name":"x"}'])
fields = st.recursive(st.just({}), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=6).map(
    lambda each: {"f:spec": each}
)
entries = st.fixed_dictionaries(
    {
        "manager": st.sampled_from(["kubectl", "helm", "controller"]),
        "operation": st.sampled_from(["Apply", "Update"]),
        "apiVersion": st.sampled_from(OURS + OTHERS),
        "fieldsType": st.just("FieldsV1"),
        "fieldsV1": fields,
    },
    optional={
        "subresource": st.sampled_from(["status", "scale"]),
        "time": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
    },
)
# The API server keeps only one entry of each identity.
lists = st.lists(entries, max_size=8, unique_by=identity)


def paths(owned: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Each field that is owned, at any depth."""
    for key, inner in owned.items():
        yield (*above, key)
        yield from paths(inner, (*above, key))


def is_ours(entry: Mapping[str, Any]) -> bool:
    return str(entry["apiVersion"]).startswith(f"{GROUP}/")


def ownership(held: Sequence[Mapping[str, Any]]) -> set[tuple[Any, ...]]:
    """Who owns which field, whatever the version."""
    return {
        (entry["manager"], entry["operation"], entry.get("subresource"), path)
        for entry in held
        if is_ours(entry)
        for path in paths(entry["fieldsV1"])
    }


@given(lists)
def test_nothing_of_another_version_stays(before: list[Entry]) -> None:
    after = retarget(before, GROUP, "v2")
    if after is None:
        assert all(not is_ours(each) or each["apiVersion"] == GOAL for each in before)
    else:
        assert any(is_ours(each) and each["apiVersion"] != GOAL for each in before)
        assert all(not is_ours(each) or each["apiVersion"] == GOAL for each in after)


@given(lists)
def test_it_is_done_once(before: list[Entry]) -> None:
    after = retarget(before, GROUP, "v2")
    assert retarget(after or before, GROUP, "v2") is None


@given(lists)
def test_each_manager_owns_what_it_owned(before: list[Entry]) -> None:
    after = retarget(before, GROUP, "v2") or before
    assert ownership(after) == ownership(before)


@given(lists)
def test_each_identity_is_there_once(before: list[Entry]) -> None:
    after = retarget(before, GROUP, "v2") or before
    assert len({identity(each) for each in after}) == len(after)
    assert {identity(each) for each in after if not is_ours(each)} == {
        identity(each) for each in before if not is_ours(each)
    }


@given(lists)
def test_other_groups_are_left_alone_and_in_order(before: list[Entry]) -> None:
    after = retarget(before, GROUP, "v2") or before
    assert [each for each in after if not is_ours(each)] == [each for each in before if not is_ours(each)]


@given(lists)
def test_a_time_is_never_lost_nor_made_up(before: list[Entry]) -> None:
    after = retarget(before, GROUP, "v2") or before
    for each in after:
        times = [
            other.get("time", "")
            for other in before
            if identity({**other, "apiVersion": GOAL if is_ours(other) else other["apiVersion"]})
            == identity(each)
        ]
        assert each.get("time", "") == max(times)


@given(lists)
def test_what_was_read_is_not_changed(before: list[Entry]) -> None:
    copy = [{**each, "fieldsV1": dict(each["fieldsV1"])} for each in before]
    retarget(before, GROUP, "v2")
    assert before == copy
