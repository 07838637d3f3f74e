"""When a run reviews the rights of its account."""

from tests.unit.operations.migration.scene import About, Cluster, finish, play


def test_rights_are_reviewed_once_the_target_is_pinned() -> None:
    async def main() -> None:
        cluster = Cluster()
        pinned: list[bool] = []

        def happens(about: About, _: int) -> None:
            if about == "rights":
                pinned.append(cluster.stored.status.target is not None)

        cluster.happens = happens
        await finish(cluster)
        assert pinned
        assert all(pinned)

    play(main)
