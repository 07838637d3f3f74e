"""How much a process that is killed has done since it saved its progress."""

from tests.unit.builders import migration
from tests.unit.operations.migration.scene import PAGE, About, Cluster, finish, play


def test_a_killed_process_has_written_little_that_the_next_one_lists_again() -> None:
    async def main() -> None:
        cluster = Cluster(
            objects=40,
            made=migration(settleSeconds=5, limits={"maxObjectsPerSecond": 4, "maxConcurrency": 1}),
        )
        most = 0

        def look(about: About, nth: int) -> None:
            nonlocal most
            sweep = cluster.stored.status.sweep
            if about == "rewrite" and sweep is not None:
                most = max(most, nth - 1 - int(sweep.continue_token or 0))

        cluster.happens = look
        await finish(cluster)
        assert cluster.requests["rewrite"] == 40
        assert most < 2 * PAGE

    play(main)
