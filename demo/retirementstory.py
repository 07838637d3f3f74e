"""The story: an API that began as v1alpha1 is served as v1 only, and nobody is surprised on the way."""

from demo.databases import GROUP, PLURAL
from demo.stage import CRD, Stage
from demo.stored import show_stored
from demo.terminal import CommandFailed, eventually

_FILES = "demo/retirement"
_OLD, _NEW = f"{GROUP}/v1alpha1", f"{GROUP}/v1"
_OBJECTS = 2
_FLIPPED = (
    f"sed -e 's/storage: true/storage: was/; s/storage: false/storage: true/; s/was/false/' {_FILES}/crd.yaml"
)
_NEW_OBJECTS = f"sed 's/v1alpha1/v1/' {_FILES}/objects.yaml"
_RETIRE = f"crdkeeper retire {CRD} v1alpha1"
_GET_VERSIONS = (
    f"kubectl get crd {CRD} -o jsonpath='{{range .spec.versions[*]}}{{.name}} served={{.served}} "
    'deprecated={.deprecated}{"\\n"}{end}\''
)


def play(stage: Stage) -> None:
    """Plays all chapters. Raises CommandFailed if something differs."""
    for chapter in (
        _begin,
        _store_the_new_version,
        _look,
        _deprecate,
        _use_it_once_more,
        _take_it_back,
        _retire,
        _look_again,
    ):
        chapter(stage)


def _begin(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading(
        "An API that began as v1alpha1, with objects of teams. crdkeeper's operator is not needed"
    )
    terminal.run("kubectl apply --server-side -k crds")
    terminal.run(f"cat {_FILES}/crd.yaml {_FILES}/objects.yaml")
    terminal.run(f"kubectl apply --server-side -f {_FILES}/crd.yaml")
    terminal.run(f"kubectl wait --for=condition=Established crd/{CRD}")
    eventually(lambda: _is_served(stage), "the API server serves both versions")
    terminal.run(f"kubectl apply --server-side --field-manager=team-orders -f {_FILES}/objects.yaml")
    show_stored(stage, {_OLD: _OBJECTS})


def _store_the_new_version(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("The next release stores v1. That rewrites nothing, and v1alpha1 cannot go yet")
    terminal.run(f"{_FLIPPED} | kubectl apply --server-side -f -")
    show_stored(stage, {_OLD: _OBJECTS})
    terminal.run(
        f'kubectl patch crd {CRD} --type=json -p \'[{{"op":"remove","path":"/spec/versions/0"}}]\'',
        fails=True,
    )


def _look(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Who still uses v1alpha1, and what is due? This changes nothing")
    said = terminal.run(_RETIRE)
    if "team-orders" not in said or "deprecated: true" not in said:
        raise CommandFailed("the plan does not name the writer, and the change that is due")


def _deprecate(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Take the first step. In a cluster of yours, the quiet period is a week")
    terminal.run(f"{_RETIRE} --yes --quiet-period 1h", fails=True)
    terminal.run(_GET_VERSIONS)
    show_stored(stage, {_OLD: _OBJECTS})


def _use_it_once_more(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading(
        "Somebody writes v1alpha1 once more: the API server warns, and the quiet period begins again"
    )
    eventually(lambda: _warns(stage), "the API server warns")
    terminal.run(
        "kubectl patch databases.v1alpha1.platform.example.com billing --type=merge "
        '--field-manager=team-billing -p \'{"spec":{"replicas":2}}\''
    )
    said = terminal.run(f"{_RETIRE} --quiet-period 1h")
    if "team-billing" not in said:
        raise CommandFailed("the new writer is not named")
    show_stored(stage, {_OLD: _OBJECTS - 1, _NEW: 1})


def _take_it_back(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Until the removal, every step can be taken back")
    terminal.run(f"crdkeeper retire undo {CRD} v1alpha1 --yes")
    terminal.run(_GET_VERSIONS)


def _retire(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("The teams write v1 now: take all steps, each after the one before is proved")
    terminal.run(
        f"{_NEW_OBJECTS} | kubectl apply --server-side --force-conflicts --field-manager=team-orders -f -"
    )
    terminal.comment("Here is only one API server, which nobody else uses: nothing has to settle.")
    terminal.run(f"{_RETIRE} --yes --wait --quiet-period 3s --settle-seconds 0 --ignore-api-server-leases")
    show_stored(stage, {_NEW: _OBJECTS})


def _look_again(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("v1alpha1 is gone, and nothing else")
    if terminal.run(_GET_VERSIONS).split() != ["v1", "served=true", "deprecated="]:
        raise CommandFailed("the CRD should have v1 only")
    terminal.run(f"kubectl get crd {CRD} -o jsonpath='{{.status.storedVersions}}'")
    terminal.run(f"kubectl get {PLURAL}")
    terminal.comment("Applies go on, because no object's managedFields name the version that is gone:")
    terminal.run(f"{_NEW_OBJECTS} | kubectl apply --server-side --field-manager=team-orders -f -")


def _is_served(stage: Stage) -> bool:
    """Whether the API server answers: a change of a CRD reaches it a moment later."""
    return stage.cluster.kubectl("get", "--raw", f"/apis/{_OLD}/{PLURAL}", check=False).startswith("{")


def _warns(stage: Stage) -> bool:
    return "Warning: " in stage.cluster.kubectl("get", f"{PLURAL}.v1alpha1.{GROUP}", check=False)
