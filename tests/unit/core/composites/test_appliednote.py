"""Whether an object is as it was applied, by managedFields as API servers write them."""

import copy
from typing import Any

import pytest

from crdkeeper.core.composites.appliednote import APPLIED, applied_note, is_current, was_applied

MADE: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "x", "namespace": "shop", "labels": {"app": "x"}},
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "spec": {
                "containers": [{"name": "a", "args": ["1"], "ports": [{"containerPort": 80}], "env": []}]
            }
        },
    },
}
FIELDS: dict[str, Any] = {
    "f:metadata": {"f:labels": {"f:app": {}}, "f:annotations": {f"f:{APPLIED}": {}}},
    "f:spec": {
        "f:selector": {},
        "f:template": {
            "f:spec": {
                "f:containers": {
                    'k:{"name":"a"}': {
                        ".": {},
                        "f:name": {},
                        "f:args": {},
                        "f:env": {},
                        "f:ports": {
                            'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                        },
                    }
                }
            }
        },
    },
}


def noted(value: dict[str, Any]) -> dict[str, Any]:
    made = copy.deepcopy(value)
    made["metadata"]["annotations"] = {APPLIED: applied_note(value)}
    return made


def live(fields: dict[str, Any] = FIELDS, **entry: Any) -> dict[str, Any]:
    found = noted(MADE)
    managed = {"manager": "me", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": fields, **entry}
    found["metadata"]["managedFields"] = [managed]
    return found


def without(*path: str) -> dict[str, Any]:
    """The fields without one, and without what has no fields then."""
    fields = copy.deepcopy(FIELDS)
    around = [fields]
    for each in path[:-1]:
        around.append(around[-1][each])
    for inner, each in zip(reversed(around), reversed(path), strict=True):
        if each == path[-1] or not inner[each]:
            del inner[each]
    return fields


def test_an_object_whose_fields_are_all_still_ours_is_current() -> None:
    assert is_current(noted(MADE), live(), "me")


CONTAINER = ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"a"}')


@pytest.mark.parametrize(
    "lost",
    [
        ("f:metadata", "f:labels", "f:app"),
        ("f:spec", "f:selector"),
        (*CONTAINER, "f:args"),
        (*CONTAINER, "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}', "f:containerPort"),
        CONTAINER,
    ],
    ids="/".join,
)
def test_a_field_that_somebody_else_took_is_drift(lost: tuple[str, ...]) -> None:
    assert not is_current(noted(MADE), live(without(*lost)), "me")


@pytest.mark.parametrize(
    "entry",
    [{"manager": "you"}, {"operation": "Update"}, {"subresource": "status"}, {"apiVersion": "apps/v1beta1"}],
    ids=str,
)
def test_what_others_manage_is_not_ours(entry: dict[str, Any]) -> None:
    assert not is_current(noted(MADE), live(**entry), "me")


def test_another_configuration_is_not_current() -> None:
    other = copy.deepcopy(MADE)
    other["spec"]["selector"]["matchLabels"]["app"] = "y"
    assert not is_current(noted(other), live(), "me")


@pytest.mark.parametrize(
    ("field", "was"),
    [
        (".spec.selector", True),
        (".metadata.labels.app", True),
        ('.spec.template.spec.containers[name="a"].args', True),
        (
            '.spec.template.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"].containerPort',
            True,
        ),
        ('.spec.template.spec.containers[name="b"].args', False),
        (".metadata.labels.tier", False),
        (".spec.replicas", False),
    ],
)
def test_a_conflict_is_about_what_was_applied_or_about_what_is_new(field: str, was: bool) -> None:
    assert was_applied(live(), field) is was


PORTS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "x"},
    "spec": {
        "ports": [
            {"port": 80, "targetPort": 8080},
            {"port": 53, "protocol": "UDP", "targetPort": 53},
            {"port": 53, "protocol": "SCTP"},
        ],
        "rules": [{"of": {"kind": "a"}, "weight": 1}, {"of": {"kind": "b"}}],
        "hosts": [{"names": ["a"], "ip": "::1"}],
        "odd": [{"a": 'x,y="]', "b": True, "c": {"d": [{"e": 1}]}}],
    },
}


@pytest.mark.parametrize(
    ("field", "was"),
    [
        ('.spec.ports[port=80,protocol="TCP"].targetPort', True),
        ('.spec.ports[port=53,protocol="UDP"].targetPort', True),
        ('.spec.ports[port=90,protocol="TCP"].targetPort', False),
        ('.spec.ports[port=90,protocol="UDP"].targetPort', False),
        ('.spec.ports[port=90,protocol="TCP"]', False),
        ('.spec.ports[port=80,protocol="TCP"].nodePort', False),
        ('.spec.ports[name="http"].targetPort', False),
        ('.spec.hosts[ip="::1"].names', True),
        ('.spec.hosts[ip="::2"].names', False),
        ('.spec.hosts[ip="::1"].names[="a"]', True),
        (".spec.rules[0].weight", True),
        ('.spec.odd[a="x,y=\\"]",b=true].c.d[e=1].e', True),
        ('.spec.odd[a="x,y=\\"]",b=true].c.d[e=2].e', False),
        ('.spec.odd[a="x,y=\\"]",b=false].c.d[e=1].e', False),
    ],
)
def test_a_new_item_of_a_list_was_not_applied_before(field: str, was: bool) -> None:
    assert was_applied(noted(PORTS), field) is was


@pytest.mark.parametrize("note", ["", "x", "x.%", "x.AAAA", "."])
def test_a_forged_annotation_says_nothing(note: str) -> None:
    found = live()
    found["metadata"]["annotations"][APPLIED] = note
    assert not was_applied(found, ".spec.selector")
    assert not is_current(noted(MADE), found, "me")


def test_an_object_of_many_fields_still_fits_into_its_annotations() -> None:
    many = {**MADE, "spec": {f"f{each}": 1 for each in range(30_000)}}
    assert len(applied_note(many)) < 100
    few = {**MADE, "spec": {f"f{each}": 1 for each in range(19_000)}}
    assert 100_000 < len(applied_note(few)) < 200_000
