"""The story: an API of one's own, what it stands for, and its life from its first object to its deletion."""

import json

from crdkeeper.scripting import StorageMigration
from demo import composingstory, kubelet
from demo.composingstory import FILES
from demo.databases import GROUP, PLURAL
from demo.installing import install
from demo.stage import Stage
from demo.stored import show_stored
from demo.terminal import CommandFailed, eventually

NAME = f"{PLURAL}.{GROUP}"
_DEFINITION = f"cxrd/{NAME}"
_OBJECTS = 2
_V1, _V2 = (f"{PLURAL}.{version}.{GROUP}" for version in ("v1", "v2"))


def play(stage: Stage) -> None:
    """Plays all chapters, with processes on this machine. Raises CommandFailed if something differs."""
    _install(stage)
    tell(stage)


def tell(stage: Stage) -> None:
    """Plays the chapters after the installation, wherever operator, webhook and composer run.

    Raises CommandFailed if something differs from the story.
    """
    with kubelet.stand_in(stage):
        for chapter in (
            _permit,
            _define,
            _use,
            _extend,
            composingstory.compose,
            composingstory.scale,
            composingstory.drift,
            composingstory.canary,
            _break,
            _add_a_version,
            composingstory.move,
            _move_to_it,
            _drop_the_old_one,
            _delete,
        ):
            chapter(stage)


def _install(stage: Stage) -> None:
    install(stage, webhook=True)
    terminal = stage.terminal
    terminal.heading("Install the composer beside it, with an account and permissions of its own")
    terminal.run("kubectl apply --server-side -k manifests/composer")
    terminal.typed("crdkeeper compose run --kubeconfig composer.kubeconfig &")
    composer = stage.start_composer()
    eventually(composer.leading, "the composer leads")


def _permit(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Say whose objects crdkeeper may touch: until a role of yours does, none")
    terminal.run(f"cat {FILES}/roles.yaml")
    terminal.run(f"kubectl apply --server-side -f {FILES}/roles.yaml")


def _define(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("An API of your own in fifteen lines")
    terminal.run(f"cat {FILES}/database.yaml")
    terminal.run(f"kubectl apply --server-side -f {FILES}/database.yaml")
    terminal.run(f"kubectl wait --for=condition=Established {_DEFINITION} --timeout=180s")
    terminal.run("kubectl get cxrd")


def _use(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Use it")
    terminal.run(f"cat {FILES}/objects.yaml")
    terminal.run(f"kubectl apply --server-side -f {FILES}/objects.yaml")
    terminal.run("kubectl get db")
    terminal.comment("Objects have to follow your schema:")
    terminal.run('kubectl patch db orders --type=merge -p \'{"spec":{"size":"Huge"}}\'', fails=True)


def _extend(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Extend it while it is in use: columns, and replicas that kubectl can scale")
    terminal.run(f"diff {FILES}/database.yaml {FILES}/with-replicas.yaml || true")
    terminal.run(f"kubectl apply --server-side -f {FILES}/with-replicas.yaml")
    terminal.run(f"kubectl wait --for=condition=Ready {_DEFINITION} --timeout=180s")
    eventually(lambda: _is_served(stage, "v1", "orders/scale"), "the API server has the subresource scale")
    terminal.run("kubectl scale db orders --replicas=3")
    shown = terminal.run("kubectl get db")
    if "Large" not in shown or "3" not in shown:
        raise CommandFailed("the columns do not show what was scaled")


def _break(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("A change that would break what exists is refused, and the API stays as it is")
    terminal.run(
        f"sed 's/Small, Large/Small, Medium/' {FILES}/with-replicas.yaml | kubectl apply --server-side -f -"
    )
    terminal.run(f"kubectl wait --for=condition=Accepted=False {_DEFINITION} --timeout=180s")
    said = terminal.run(_condition("Accepted"))
    if "default/orders" not in said or "breakingChanges" not in said:
        raise CommandFailed("the refusal does not say whom the change hurts, and what to do")
    terminal.run("kubectl get cxrd")
    terminal.comment("The objects work as before. Take the change back:")
    terminal.run("kubectl get db")
    terminal.run(f"kubectl apply --server-side -f {FILES}/with-replicas.yaml")
    terminal.run(f"kubectl wait --for=condition=Ready {_DEFINITION} --timeout=180s")


def _add_a_version(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("A second version of another shape, with rules instead of a conversion webhook of yours")
    terminal.run(f"diff {FILES}/with-replicas.yaml {FILES}/two-versions.yaml || true")
    terminal.run(f"cat {FILES}/conversion.yaml")
    terminal.run(f"kubectl apply --server-side -f {FILES}/conversion.yaml -f {FILES}/two-versions.yaml")
    terminal.run(f"kubectl wait --for=condition=Ready vconv/{NAME} --timeout=180s")
    terminal.run(f"kubectl wait --for=condition=Ready {_DEFINITION} --timeout=180s")
    eventually(lambda: _is_served(stage, "v2"), "the API server serves v2")
    terminal.comment("The same object in both versions:")
    terminal.run(f"kubectl get {_V1} orders -o jsonpath='{{.spec}}'")
    found = terminal.run(f"kubectl get {_V2} orders -o jsonpath='{{.spec}}'")
    if json.loads(found) != {"replicas": 4, "storage": "500Gi"}:
        raise CommandFailed("the new version does not show the object that the old one stored")
    show_stored(stage, {f"{GROUP}/v1": _OBJECTS})


def _move_to_it(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Store the objects in v2: those that exist are migrated")
    terminal.run(f"diff {FILES}/two-versions.yaml {FILES}/v2-stored.yaml || true")
    terminal.run(f"kubectl apply --server-side -f {FILES}/v2-stored.yaml")
    eventually(lambda: len(_migrations(stage)) == 1, "the composer has created a StorageMigration")
    terminal.run(_condition("StorageCurrent"))
    terminal.comment("It waits for 65 s, by default, so that every API server has seen the change.")
    terminal.comment("Here is only one, which nobody else uses:")
    (migration,) = _migrations(stage)
    terminal.run(f'kubectl patch smig {migration} --type=merge -p \'{{"spec":{{"settleSeconds":1}}}}\'')
    terminal.run(f"kubectl wait --for=condition=StorageCurrent {_DEFINITION} --timeout=180s")
    terminal.run("kubectl get smig")
    composingstory.moved(stage)
    show_stored(stage, {f"{GROUP}/v2": _OBJECTS})


def _drop_the_old_one(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Drop v1. Nobody loses it without a warning: it has to be deprecated, then not served")
    terminal.run(f"kubectl apply --server-side -f {FILES}/v2-only.yaml")
    terminal.run(f"kubectl wait --for=condition=Accepted=False {_DEFINITION} --timeout=180s")
    terminal.run(_condition("Accepted"))
    terminal.comment("v1 is deprecated since the last chapter: its clients get a warning.")
    terminal.run(f"kubectl get {_V1} orders")
    terminal.run(
        f"sed 's/served: true/served: false/' {FILES}/v2-stored.yaml | kubectl apply --server-side -f -"
    )
    terminal.run(f"kubectl wait --for=condition=Accepted {_DEFINITION} --timeout=180s")
    eventually(lambda: not _is_served(stage, "v1"), "the API server no longer serves v1")
    terminal.run(f"kubectl get {_V1} orders", fails=True)
    terminal.run(f"kubectl apply --server-side -f {FILES}/v2-only.yaml")
    terminal.run(f"kubectl wait --for=condition=Ready {_DEFINITION} --timeout=180s")
    terminal.run("kubectl get db")
    terminal.comment("One version needs no conversion:")
    terminal.run(f"kubectl wait --for=condition=InUse=False vconv/{NAME} --timeout=180s")
    terminal.run(f"kubectl delete vconv {NAME}")


def _delete(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Deletion is safe: by default it waits until there are no objects")
    terminal.run(f"kubectl delete {_DEFINITION} --wait=false")
    terminal.run(f"kubectl wait --for=condition=Established=False {_DEFINITION} --timeout=180s")
    said = terminal.run(_condition("Established"))
    if f"{_OBJECTS} composites" not in said:
        raise CommandFailed("the deletion does not say what it waits for")
    composingstory.delete(stage)
    terminal.run(f"kubectl wait --for=delete {_DEFINITION} crd/{NAME} --timeout=180s")
    terminal.run("kubectl delete compositions --all")


def _condition(type_: str) -> str:
    fields = "{.type}={.status} {.reason}: {.message}"
    return (
        f'kubectl get {_DEFINITION} -o jsonpath=\'{{range .status.conditions[?(@.type=="{type_}")]}}'
        f'{fields}{{"\\n"}}{{end}}\''
    )


def _is_served(stage: Stage, version: str, *below: str) -> bool:
    """Whether the API server answers: a change of a CRD reaches it a moment later."""
    path = "/".join((f"/apis/{GROUP}/{version}/namespaces/default/{PLURAL}", *below))
    return stage.cluster.kubectl("get", "--raw", path, check=False).startswith("{")


def _migrations(stage: Stage) -> list[str]:
    """The names of the StorageMigrations of the API."""
    found = StorageMigration.objects(stage.api)
    return [each.metadata["name"] for each in found if str(each.spec.resource) == NAME]
