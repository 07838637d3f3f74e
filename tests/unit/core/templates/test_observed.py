"""What a rendering sees of the objects that exist: those of the composite, and what could not be read."""

from typing import Any

import pytest

from crdkeeper.core.templates.observed import Observed
from crdkeeper.core.templates.rendered import ReadinessState
from crdkeeper.core.templates.rendering import render
from tests.unit.core.templates.compositions import (
    DATABASE,
    by_identity,
    compiled,
    named,
    rendered,
    server,
    summary,
)

UNREADABLE = frozenset((("example.com", "Server"),))
ADDRESS = {"address": "${a.status.phase}"}
READY: dict[str, Any] = {"ReadyWhen": ["${a.status.ready == 1}"]}


def there(name: str, version: str = "v1", **fields: Any) -> dict[str, Any]:
    """A Server that exists."""
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": f"example.com/{version}", "kind": "Server", "metadata": metadata, **fields}


def own(**objects: Any) -> Observed:
    """Objects of the composite by the names of their resources."""
    return Observed(own={name: by_identity(each) for name, each in objects.items()})


def test_an_object_of_somebody_else_is_not_read() -> None:
    secret = there("postgres", status={"phase": "secret"})
    a = server("a", called="${composite.spec.engine}")
    foreign = Observed(own={"other": by_identity(secret)}, external=by_identity(secret))
    made = rendered(a, status=ADDRESS, observed=foreign)
    assert (made.status, summary(made)) == ({}, {"a": "rendered"})
    assert rendered(a, status=ADDRESS, observed=own(a=secret)).status == {"address": "secret"}


def test_what_exists_is_in_the_status_although_it_waits_now() -> None:
    a, b = server("a", ReadyWhen=["${a.status.ready == 1}"]), server("b", text="${a.metadata.name}")
    updating = own(a=there("orders-a", status={"ready": 0}), b=there("orders-b", status={"phase": "up"}))
    made = rendered(a, b, status={"address": "${b.status.phase}"}, observed=updating)
    assert summary(made)["b"].startswith("waiting a to be ready")
    assert (made.status, made.gaps) == ({"address": "up"}, [])
    c = server("c", text="${b.metadata.name}")
    assert summary(rendered(a, b, c, observed=updating))["c"] == "waiting b"


def test_what_could_not_be_read_is_waited_for() -> None:
    unknown = Observed(unknown=UNREADABLE)
    a, said = server("a", text="x", **READY), "Server shop/orders-a, which cannot be read"
    made = rendered(
        a,
        server("b", text="${a.spec.text}"),
        server("c", text="${a.?spec.?text}"),
        server("d", IncludeWhen=["${a.?status.?ready.orValue(0) > 0}"]),
        status=ADDRESS,
        observed=unknown,
    )
    assert summary(made) == {
        "a": "rendered",
        "b": f"waiting {said}",
        "c": f"waiting {said}",
        "d": f"pending {said}",
    }
    assert [(each.kind, each.text) for each in made.gaps] == [("not yet", f"waits for {said}")]
    (a_object,) = named(made)["a"].objects
    assert a_object.readiness is not None
    assert a_object.readiness.state is ReadinessState.UNKNOWN
    zone = {"name": "zone", "externalRef": {"apiVersion": "example.com/v1", "kind": "Server", "name": "z"}}
    made = rendered(zone, observed=unknown)
    assert summary(made) == {"zone": "waiting Server shop/z, which cannot be read"}
    assert [str(each.identity) for each in named(made)["zone"].objects] == ["Server shop/z"]
    single = Observed(unread={named(made)["zone"].objects[0].identity})
    assert summary(rendered(zone, observed=single)) == {"zone": "waiting Server shop/z, which cannot be read"}


def test_an_object_at_another_version_is_not_read() -> None:
    a, b = server("a", text="x"), server("b", text="${a.spec.text}")
    made = rendered(a, b, status=ADDRESS, observed=own(a=there("orders-a", "v2", status={"phase": "up"})))
    assert summary(made)["b"] == "waiting Server shop/orders-a at example.com/v1"
    assert made.status == {}


def test_an_object_in_a_file_that_is_in_deletion_does_not_exist() -> None:
    going = there("orders-a", status={"phase": "up"})
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert rendered(server("a"), status=ADDRESS, observed=[going]).status == {}


@pytest.mark.parametrize(
    ("condition", "observed", "state"),
    [
        ("a.status.ready == 1", own(), "absent"),
        ("a.status.ready == 1", own(a=there("orders-a")), "not ready"),
        ("a.status.ready == 1", own(a=there("orders-a", status={"ready": 0})), "not ready"),
        ("a.status.ready == 1", own(a=there("orders-a", status={"ready": 1})), "ready"),
        ("int(a.status.phase) == 1", own(a=there("orders-a", status={"phase": "up"})), "failed"),
    ],
)
def test_readiness(condition: str, observed: Observed, state: str) -> None:
    made = named(rendered(server("a", ReadyWhen=[f"${{{condition}}}"]), observed=observed))["a"]
    (found,) = made.objects
    assert found.readiness is not None
    assert found.readiness.state == state
    assert (found.readiness.why == "") == (state == "ready") == (made.unready is None)


def test_waves() -> None:
    made = rendered(server("a"), server("b", text="${a.metadata.name}"), server("c"))
    assert [(each.name, each.wave) for each in made.resources] == [("a", 0), ("c", 0), ("b", 1)]


def test_gaps_lead_to_the_field_of_the_status() -> None:
    kinds = {"address": "${a.status.phase}", "replicas": "${int(composite.spec.engine)}"}
    made = rendered(server("a"), status=kinds)
    assert [(each.status_path, each.kind) for each in made.gaps] == [
        (("address",), "not yet"),
        (("replicas",), "failed"),
    ]


def test_a_composite_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the Composition is for Database at example\.com/v1"):
        render(compiled(server("a")), {**DATABASE, "apiVersion": "example.com/v2"}, Observed())


def test_what_the_composer_needs_to_know_of_resources() -> None:
    made = compiled(server("a", Conflicts="Force", Deletion="Orphan", Recreate=True))
    (a,) = made.resources
    assert (a.conflicts, a.deletion, a.recreate) == ("Force", "Orphan", True)
