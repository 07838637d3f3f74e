"""The story: an API in use gets a new storage version, crdkeeper migrates, and the old version can go."""

import json

from crdkeeper.scripting import StorageMigration, report_of
from demo.databases import GROUP, NAMESPACES, PLURAL
from demo.installing import install
from demo.stage import CRD, Stage
from demo.stored import show_stored
from demo.terminal import CommandFailed

OBJECTS = 2000
_SECONDS = 180.0
_OLD, _NEW = f"{GROUP}/v1", f"{GROUP}/v2"

_GET_STORED_VERSIONS = f"kubectl get crd {CRD} -o jsonpath='{{.status.storedVersions}}'"
_GET_PROOF = (
    "kubectl get storagemigrations -o "
    "jsonpath='{range .items[*].status.conditions[*]}{.type}={.status}: {.message}{\"\\n\"}{end}'"
)


def play(stage: Stage) -> None:
    """Plays all chapters. Raises CommandFailed if something differs from the story."""
    for chapter in (
        install,
        _say_what_is_wanted,
        _use_the_api,
        _change_the_storage_version,
        _look_on,
        _look_at_the_proof,
        _remove_the_old_version,
    ):
        chapter(stage)


def _say_what_is_wanted(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Say what it shall look after, and what it may rewrite")
    terminal.run("cat demo/policy.yaml demo/rewriter-role.yaml")
    terminal.run("kubectl apply --server-side -f demo/policy.yaml -f demo/rewriter-role.yaml")
    if stage.plane is not None and stage.plane.controller_manager is None:
        terminal.comment(
            "Without a controller manager nothing aggregates ClusterRoles: bind this one by hand."
        )
        terminal.run(
            "kubectl create clusterrolebinding crdkeeper-rewrite-platform "
            "--clusterrole=crdkeeper-rewrite-platform --serviceaccount=crdkeeper-system:crdkeeper-operator"
        )


def _use_the_api(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("An API with versions v1 and v2, stored at v1, and objects of it")
    terminal.run("kubectl apply --server-side -k demo/crd/v1-stored")
    terminal.run(f"kubectl wait --for=condition=Established crd/{CRD}")
    terminal.run(f"for each in {' '.join(NAMESPACES)}; do kubectl create namespace $each; done")
    terminal.run(f"python -m demo.databases {OBJECTS}")
    terminal.run(f"kubectl get {PLURAL} -A | head -4")
    show_stored(stage, {_OLD: OBJECTS})


def _change_the_storage_version(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("The next release stores v2")
    terminal.run("kubectl apply --server-side -k demo/crd/v2-stored")
    terminal.run(_GET_STORED_VERSIONS)
    terminal.comment("That rewrites no objects, so the API server does not let you remove v1:")
    terminal.run("kubectl apply --server-side -k demo/crd/v2-only", fails=True)


def _look_on(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("crdkeeper migrates automatically: watch")
    terminal.watch("kubectl get storagemigrations --watch", until=lambda: _wait_until_migrated(stage))


def _wait_until_migrated(stage: Stage) -> None:
    """The operator creates the migration, so the report shows its end before anyone knows its name."""
    report_of(CRD, api=stage.api).wait_until(
        lambda report: report.status.stored_versions == ["v2"], timeout=_SECONDS
    )
    (migration,) = StorageMigration.objects(stage.api)
    progress = migration.wait("Succeeded", timeout=_SECONDS).status.progress
    if progress.rewritten != OBJECTS:
        raise CommandFailed(f"{progress.rewritten:,} instead of {OBJECTS:,} objects were rewritten")


def _look_at_the_proof(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("The proof")
    terminal.run(_GET_PROOF)
    show_stored(stage, {_NEW: OBJECTS})
    if json.loads(terminal.run(_GET_STORED_VERSIONS)) != ["v2"]:
        raise CommandFailed("status.storedVersions was not trimmed")
    terminal.run("crdkeeper status")


def _remove_the_old_version(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Now v1 can go")
    terminal.run("kubectl apply --server-side -k demo/crd/v2-only")
    terminal.run(f"kubectl get {PLURAL} -A | head -4")
    if int(terminal.run(f"kubectl get {PLURAL} -A --no-headers | wc -l")) != OBJECTS:
        raise CommandFailed("objects were lost")
