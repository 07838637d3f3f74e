"""The chapters of the story of composites about what they stand for."""

import json
from typing import Any, Final

from demo.stage import Stage
from demo.terminal import CommandFailed, eventually

FILES: Final = "demo/composites"
_OBJECTS: Final = "kubectl get configmaps,deployments,services -l crdkeeper.dev/composite-uid"
_REVISIONS: Final = (
    "kubectl get db -o custom-columns="
    "NAME:.metadata.name,REVISION:.status.crdkeeper.revision,"
    "READY:'.status.conditions[?(@.type==\"Ready\")].status'"
)
_TRACE: Final = "crdkeeper compose trace db orders"
_HOLD: Final = "example.com/hold"


def compose(stage: Stage) -> None:
    """A Composition, and the objects of both composites."""
    terminal = stage.terminal
    terminal.heading("Say what a Database stands for, instead of writing a controller")
    terminal.run(f"cat {FILES}/composition.yaml")
    terminal.run(f"kubectl apply --server-side -f {FILES}/composition.yaml")
    terminal.run("kubectl wait --for=condition=Ready composition/databases --timeout=180s")
    if not stage.has_nodes:
        terminal.comment("Here are no nodes: a few lines of Python say of each pod that it runs.")
    wait_ready(stage)
    terminal.run("kubectl get db")
    terminal.comment("The Service came last: it refers to the Deployment, which had to be ready first.")
    terminal.run(_OBJECTS)
    terminal.run(_TRACE)


def scale(stage: Stage) -> None:
    """kubectl scale on a composite."""
    terminal = stage.terminal
    terminal.heading("Scale it like a Deployment: kubectl and HorizontalPodAutoscalers work on the Database")
    terminal.run("kubectl scale db orders --replicas=4")
    wait_ready(stage)
    if "4/4" not in terminal.run("kubectl get deployment orders"):
        raise CommandFailed("the Deployment does not follow the Database")


def drift(stage: Stage) -> None:
    """What somebody else changes or deletes."""
    terminal = stage.terminal
    terminal.heading("What somebody else changes or deletes is put back")
    terminal.run('kubectl patch configmap orders-settings --type=merge -p \'{"data":{"memory":"1Gi"}}\'')
    eventually(lambda: _memory(stage) == "8Gi", "the ConfigMap is put back")
    terminal.run("kubectl get configmap orders-settings -o jsonpath='{.data}'")
    terminal.run("kubectl delete deployment search --wait=false")
    eventually(lambda: "search" in _names(stage, "deployments"), "the Deployment is created again")
    wait_ready(stage)
    terminal.run("kubectl get deployments")


def canary(stage: Stage) -> None:
    """A new revision for one composite, then for all."""
    terminal = stage.terminal
    terminal.heading("Change what they stand for, and try that on one of them first: a canary")
    terminal.run(f"diff {FILES}/composition.yaml {FILES}/composition-canary.yaml || true")
    terminal.comment("What would it change in Databases that exist? Dry runs tell, and store nothing:")
    preview = "crdkeeper compose preview -f -"
    shown = terminal.run(f"sed 's/canary:/stable:/' {FILES}/composition-canary.yaml | {preview}", fails=True)
    if "database:17" not in shown:
        raise CommandFailed("the preview does not show the other image")
    terminal.run(f"kubectl apply --server-side -f {FILES}/composition-canary.yaml")
    eventually(lambda: "databases-2" in _names(stage, "comprev"), "the Composition has a second revision")
    terminal.comment(
        "A revision is immutable. Databases follow those with the label stable, by the definition:"
    )
    terminal.run("kubectl get comprev --show-labels")
    terminal.run(_REVISIONS)
    chosen = {"spec": {"crdkeeper": {"compositionRevisionSelector": {"matchLabels": {"canary": "true"}}}}}
    terminal.run(f"kubectl patch db search --type=merge -p '{_typed(chosen)}'")
    eventually(lambda: _revision(stage, "search") == "databases-2", "search runs by the canary")
    wait_ready(stage)
    terminal.run(_REVISIONS)
    if _revision(stage, "orders") != "databases-1":
        raise CommandFailed("the canary is for one Database, but another one follows it")
    terminal.comment("It works. A label lets all others have it:")
    terminal.run("kubectl label comprev databases-2 stable=true")
    eventually(lambda: _revision(stage, "orders") == "databases-2", "orders follows")
    wait_ready(stage)
    terminal.run(_REVISIONS)


def move(stage: Stage) -> None:
    """A Composition that reads the composites at their new version."""
    terminal = stage.terminal
    terminal.heading("A Composition for v2. Until Databases use it, that for v1 serves them as before")
    terminal.run(f"diff {FILES}/composition-canary.yaml {FILES}/composition-v2.yaml || true")
    terminal.run(f"kubectl apply --server-side -f {FILES}/composition-v2.yaml")
    terminal.run("kubectl wait --for=condition=Ready composition/databases-v2 --timeout=180s")


def moved(stage: Stage) -> None:
    """What became of the objects when the composites changed over to the other Composition."""
    terminal = stage.terminal
    both = ("orders", "search")
    eventually(lambda: all(_revision(stage, each) == "databases-v2-1" for each in both), "both follow")
    wait_ready(stage)
    terminal.comment("They stand for the same objects as before, by the other Composition:")
    terminal.run(_REVISIONS)
    terminal.run("kubectl get deployments")


def delete(stage: Stage) -> None:
    """Deletes all composites; the objects of one are held up, so that the order shows."""
    terminal = stage.terminal
    terminal.comment("Their objects go in reverse order. To see it, somebody holds one of them:")
    hold = _typed({"metadata": {"finalizers": [_HOLD]}})
    terminal.run(f"kubectl patch deployment orders --type=merge -p '{hold}'")
    terminal.run("kubectl delete db --all --wait=false")
    eventually(lambda: _HOLD in _said(stage), "orders says what it waits for")
    eventually(lambda: _names(stage, "db") == ["orders"], "search is gone")
    terminal.run("kubectl get db")
    if _HOLD not in terminal.run(_TRACE, fails=True):
        raise CommandFailed("the tree does not say what the deletion waits for")
    found = terminal.run(_OBJECTS)
    if "configmap/orders-settings" not in found or "service/" in found:
        raise CommandFailed("the Service should be gone, and the ConfigMap still be there")
    free = _typed({"metadata": {"finalizers": None}})
    terminal.run(f"kubectl patch deployment orders --type=merge -p '{free}'")
    terminal.run("kubectl wait --for=delete db/orders configmap/orders-settings --timeout=180s")


def wait_ready(stage: Stage) -> None:
    """Waits until all composites are ready, as they are now."""
    stage.terminal.run("kubectl wait --for=condition=Ready db --all --timeout=180s")


def _typed(patch: dict[str, Any]) -> str:
    return json.dumps(patch, separators=(",", ":"))


def _names(stage: Stage, kind: str) -> list[str]:
    found = stage.cluster.kubectl("get", kind, "--output=jsonpath={.items[*].metadata.name}")
    return found.split()


def _database(stage: Stage, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stage.cluster.kubectl("get", "db", name, "--output=json"))
    return found


def _revision(stage: Stage, name: str) -> str:
    return str(_database(stage, name)["status"]["crdkeeper"]["revision"])


def _said(stage: Stage) -> str:
    conditions = _database(stage, "orders")["status"]["conditions"]
    return next(str(each["message"]) for each in conditions if each["type"] == "Ready")


def _memory(stage: Stage) -> str:
    return stage.cluster.kubectl("get", "configmap", "orders-settings", "--output=jsonpath={.data.memory}")
