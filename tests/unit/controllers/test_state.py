"""What the operator knows of the cluster, after changes in any order."""

import random

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.controllers.state import ClusterState
from tests.unit.core.composer.test_storage import migration

NAMES = ("a", "b", "c")
RESOURCES = ("databases", "caches")


def test_the_migrations_of_a_resource_are_those_that_name_it_now() -> None:
    dice = random.Random(7)
    state, announced = ClusterState(), list[str]()
    state.listen(lambda kind, name: announced.append(name) if kind == "migrated" else None)
    for _ in range(300):
        name, resource = dice.choice(NAMES), dice.choice((*RESOURCES, None))
        before = state.of(StorageMigration).get(name)
        announced.clear()
        # One that was deleted and created again meanwhile, for another resource, is seen as a change.
        state.saw_migration(name, migration(name, resource) if resource else None)
        for each in RESOURCES:
            crd = str(migration("any", each).spec.resource)
            expected = {
                m.metadata.name for m in state.of(StorageMigration).values() if str(m.spec.resource) == crd
            }
            assert {m.metadata.name for m in state.migrations_of(crd)} == expected
        now = state.of(StorageMigration).get(name)
        concerned = {str(each.spec.resource) for each in (before, now) if each is not None}
        assert set(announced) == concerned
    assert state.migrations_of("unknown.example.com") == ()
