"""The story: an API that began as v1alpha1 is served as v1 only, and nobody is surprised on the way."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from demo.databases import GROUP, PLURAL
from demo.stage import CRD, Stage
from demo.stored import show_stored
from demo.terminal import CommandFailed, eventually

_FILES = "demo/retirement"
_OLD, _NEW = f"{GROUP}/v1alpha1", f"{GROUP}/v1"
_OBJECTS = 2
_CRDS = "customresourcedefinitions"
_BOTH = ["v1alpha1", "v1"]
_HALF = {_OLD: _OBJECTS - 1, _NEW: 1}
_STEPS = {
    "v1alpha1 deprecated served, v1 served, storedVersions=['v1alpha1', 'v1']": _HALF,
    "v1alpha1 deprecated not served, v1 served, storedVersions=['v1alpha1', 'v1']": _HALF,
    "v1alpha1 deprecated not served, v1 served, storedVersions=['v1']": {_NEW: _OBJECTS},
    "v1 served, storedVersions=['v1']": {_NEW: _OBJECTS},
}
"""How the CRD is after each step, and what is stored then: Deprecated, NotServed, Migrated, Removed."""
_FLIPPED = (
    f"sed -e 's/storage: true/storage: was/; s/storage: false/storage: true/; s/was/false/' {_FILES}/crd.yaml"
)
_NEW_OBJECTS = f"sed 's/v1alpha1/v1/' {_FILES}/objects.yaml"
_RETIRE = f"crdkeeper retire {CRD} v1alpha1"
_GET_STORED = f"kubectl get crd {CRD} -o jsonpath='{{.status.storedVersions}}'"
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
    _show_truth(stage, ["v1alpha1"], {_OLD: _OBJECTS})


def _store_the_new_version(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("The next release stores v1. That rewrites nothing, and v1alpha1 cannot go yet")
    terminal.run(f"{_FLIPPED} | kubectl apply --server-side -f -")
    _show_truth(stage, _BOTH, {_OLD: _OBJECTS})
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
    _show_truth(stage, _BOTH, {_OLD: _OBJECTS})


def _deprecate(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Take the first step. In a cluster of yours, the quiet period is a week")
    terminal.run(f"{_RETIRE} --yes --quiet-period 1h", fails=True)
    terminal.run(_GET_VERSIONS)
    _show_truth(stage, _BOTH, {_OLD: _OBJECTS})


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
    _show_truth(stage, _BOTH, _HALF)


def _take_it_back(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Until the removal, every step can be taken back")
    terminal.run(f"crdkeeper retire undo {CRD} v1alpha1 --yes")
    terminal.run(_GET_VERSIONS)
    _show_truth(stage, _BOTH, _HALF)


def _retire(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Nobody writes v1alpha1 any more: take all steps, each after the one before is proved")
    before = json.loads(stage.cluster.kubectl("get", "crd", CRD, "--output=json"))
    terminal.comment("Here is only one API server, which nobody else uses: nothing has to settle.")
    terminal.run(f"{_RETIRE} --yes --wait --quiet-period 3s --settle-seconds 0 --ignore-api-server-leases")
    _show_steps(stage, before["metadata"]["resourceVersion"])


def _look_again(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("v1alpha1 is gone, and nothing else")
    if terminal.run(_GET_VERSIONS).split() != ["v1", "served=true", "deprecated="]:
        raise CommandFailed("the CRD should have v1 only")
    _show_truth(stage, ["v1"], {_NEW: _OBJECTS})
    terminal.comment("Only now it cannot be taken back:")
    terminal.run(f"crdkeeper retire undo {CRD} v1alpha1 --yes", fails=True)
    terminal.run(f"kubectl get {PLURAL}")
    terminal.comment("Applies go on, because no object's managedFields name the version that is gone:")
    terminal.run(
        f"{_NEW_OBJECTS} | kubectl apply --server-side --force-conflicts --field-manager=team-orders -f -"
    )


def _show_truth(stage: Stage, listed: Sequence[str], stored: Mapping[str, int]) -> None:
    """Shows what the CRD says is stored, and what is. Raises CommandFailed if not as expected."""
    if json.loads(stage.terminal.run(_GET_STORED)) != listed:
        raise CommandFailed(f"storedVersions should be {listed}")
    show_stored(stage, stored)


def _show_steps(stage: Stage, since: str) -> None:
    """Shows the CRD after each step that was taken since, and what etcd stored at that moment."""
    terminal = stage.terminal
    terminal.comment("The CRD after each of these steps, at the revision of etcd that the step has made:")
    query = f"fieldSelector=metadata.name={CRD}&watch=1&resourceVersion={since}&timeoutSeconds=2"
    events = stage.cluster.kubectl("get", "--raw", f"/apis/apiextensions.k8s.io/v1/{_CRDS}?{query}")
    seen: list[str] = []
    for each in map(json.loads, events.splitlines()):
        crd = each["object"]
        standing = [*map(_said, crd["spec"]["versions"]), f"storedVersions={crd['status']['storedVersions']}"]
        if seen[-1:] == [", ".join(standing)]:
            continue  # another field has changed
        seen.append(", ".join(standing))
        terminal.show(seen[-1])
        wanted = _STEPS.get(seen[-1])
        if wanted is None:
            raise CommandFailed("that is none of the steps")
        show_stored(stage, wanted, revision=int(crd["metadata"]["resourceVersion"]))
    if seen != list(_STEPS):
        raise CommandFailed("the steps were not taken one after the other")


def _said(version: Mapping[str, Any]) -> str:
    marks = ("deprecated " if version.get("deprecated") else "") + ("" if version["served"] else "not ")
    return f"{version['name']} {marks}served"


def _is_served(stage: Stage) -> bool:
    """Whether the API server answers: a change of a CRD reaches it a moment later."""
    return stage.cluster.kubectl("get", "--raw", f"/apis/{_OLD}/{PLURAL}", check=False).startswith("{")


def _warns(stage: Stage) -> bool:
    return "Warning: " in stage.cluster.kubectl("get", f"{PLURAL}.v1alpha1.{GROUP}", check=False)
