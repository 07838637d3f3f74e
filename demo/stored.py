"""What etcd stores: only this proves a migration, because the API server converts what it reads."""

from collections.abc import Mapping

from demo.databases import GROUP, PLURAL
from demo.stage import Stage
from demo.terminal import CommandFailed


def show_stored(stage: Stage, expected: Mapping[str, int], *, revision: int | None = None) -> None:
    """Shows how many Databases are stored at which apiVersion, now or at a revision of etcd.

    Raises CommandFailed if that is not as expected.
    """
    if stage.plane is None:
        stage.terminal.comment(
            "Left out, as the demo cannot look into the etcd of a cluster that it did not start:"
        )
        stage.terminal.comment("how many objects are stored at which apiVersion.")
        return
    when = f"What etcd stored at revision {revision}" if revision is not None else "What etcd stores"
    stage.terminal.comment(f"{when} under /registry/{GROUP}/{PLURAL}/, by apiVersion:")
    found = stage.plane.etcd.stored_versions(GROUP, PLURAL, revision=revision)
    for version, count in sorted(found.items()):
        stage.terminal.show(f"{version}  {count:,}")
    if found != expected:
        raise CommandFailed(f"etcd should hold {dict(expected)}")
