"""Every combination of a resource's optional fields that its CRD admits renders to what the fields say."""

from itertools import product
from typing import Any

import pytest

from crdkeeper.core.templates.admission import admit_composition
from tests.unit.core.templates.compositions import DATABASE, named, rendered, server

NAMES = DATABASE["spec"]["names"]
INCLUDES = {"unset": None, "true": "${composite.spec.enabled}", "false": "${!composite.spec.enabled}"}
READY = {"unset": None, "true": "${%s.status.ready == 1}", "false": "${%s.status.ready == 2}"}
EXISTING = {"none": 0, "the first": 1, "all": 2}


def resource(*, external: bool, collection: bool, include: str | None, ready: str | None) -> dict[str, Any]:
    """The resource `a`: an object for each name of the composite, or one for the first."""
    name = "${x}" if collection else "a"
    made = server("a", called=name)
    if external:
        del made["template"]
        made["externalRef"] = {"apiVersion": "example.com/v1", "kind": "Server", "name": name}
    if collection:
        made["forEach"] = [{"x": "${composite.spec.names}"}]
    if include is not None:
        made["includeWhen"] = [include]
    if ready is not None:
        made["readyWhen"] = [ready % ("each" if collection else "a")]
    return made


def there(name: str) -> dict[str, Any]:
    """A Server that exists."""
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "example.com/v1", "kind": "Server", "metadata": metadata, "status": {"ready": 1}}


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("collection", [False, True])
def test_every_combination(external: bool, collection: bool) -> None:
    wanted_names = NAMES if collection else NAMES[:1]
    for include, ready, existing in product(INCLUDES, READY, EXISTING):
        a = resource(external=external, collection=collection, include=INCLUDES[include], ready=READY[ready])
        _, problems = admit_composition(
            {
                "apiVersion": "crdkeeper.dev/v1alpha1",
                "kind": "Composition",
                "metadata": {"name": "x"},
                "spec": {
                    "compositeTypeRef": {"apiVersion": "example.com/v1", "kind": "Database"},
                    "resources": [a],
                },
            }
        )
        assert problems == []
        reads = "${a.map(each, each.metadata.name)}" if collection else "${[a.metadata.name]}"
        observed = [there(each) for each in NAMES[: EXISTING[existing]]]
        rendering = rendered(a, server("b", texts=reads), observed=observed)
        made = named(rendering)

        complete = len(observed) >= len(wanted_names)
        is_ready = ready == "unset" or (ready == "true" and complete)
        state = "rendered" if not external else "read" if complete else "waiting"
        case = (include, ready, existing)
        if include == "false":
            assert (made["a"].state, made["b"].state) == ("excluded", "excluded"), case
            continue
        assert made["a"].state == state, case
        follows = state != "waiting" and is_ready
        assert made["b"].state == ("rendered" if follows else "waiting"), case
        if follows:
            assert rendering.objects[-1]["spec"] == {"texts": wanted_names}, case
