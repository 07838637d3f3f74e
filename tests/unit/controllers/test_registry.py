"""The registry of controllers: one for each kind, and Kopf watches what they do not watch themselves."""

from pathlib import Path
from typing import Any

import kopf
import pytest

from crdkeeper import handlers
from crdkeeper.api.kinds import KINDS
from crdkeeper.api.meta import GROUP
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.controllers.entry import Controller
from crdkeeper.controllers.registry import CONTROLLERS
from crdkeeper.controllers.state import ClusterState
from tests.unit.builders import migration, policy
from tests.unit.cluster.transport.localserver import kubeconfig

OBJECTS: dict[str, dict[str, Any]] = {
    "StorageMigration": migration("a").to_object(),
    "DefinitionPolicy": policy("a").to_object(),
    "BuiltinPolicy": {"metadata": {"name": "a"}, "spec": {"resources": ["secrets"]}},
    "VersionConversion": {"metadata": {"name": "a", "generation": 3}, "spec": "not to be understood"},
    "VersionRetirement": {
        "metadata": {"name": "a"},
        "spec": {"resource": {"group": "example.com", "resource": "crontabs"}, "version": "v1beta1"},
    },
}
WATCHED = [each for each in CONTROLLERS if each.watch is not None]


def test_each_kind_has_one_controller() -> None:
    assert [each.kind for each in CONTROLLERS] == list(KINDS)
    assert len({each.name for each in CONTROLLERS}) == len(CONTROLLERS)


@pytest.mark.parametrize("controller", WATCHED, ids=lambda each: each.name)
def test_the_state_hears_of_a_watched_object(controller: Controller) -> None:
    assert controller.watch is not None
    state, heard = ClusterState(), list[tuple[str, str]]()
    state.listen(lambda kind, name: heard.append((kind, name)))
    kept = controller.watch.keep(OBJECTS[controller.kind.__name__])
    controller.watch.saw(state, "a", kept)
    controller.watch.saw(state, "a", None)
    assert [name for _, name in heard].count("a") == 2


async def test_kopf_watches_these_and_crds_and_nothing_else(tmp_path: Path) -> None:
    async def end() -> None:
        pass

    registry = kopf.OperatorRegistry()
    connection = Connection(kubeconfig(tmp_path, "https://127.0.0.1:1"))
    handlers.register(registry, connection, ClusterState(), CONTROLLERS, on_exit=end)
    watched = [(each.group, each.any_name) for each in registry._watching.get_all_selectors()]
    assert sorted(watched, key=str) == sorted(
        [
            ("apiextensions.k8s.io", "customresourcedefinitions"),
            *((GROUP, each.kind.plural) for each in WATCHED),
        ]
    )
