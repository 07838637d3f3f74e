"""The story: an API of one's own from a file of fifteen lines, kept safe in its changes and its deletion."""

import json

from demo.installing import install
from demo.stage import Stage
from demo.terminal import CommandFailed, eventually

_FILES = "demo/composites"
_NAME = "databases.platform.example.com"
_DEFINITION = f"cxrd/{_NAME}"


def play(stage: Stage) -> None:
    """Plays all chapters. Raises CommandFailed if something differs from the story."""
    for chapter in (_install, _define, _use, _break, _add_a_version, _delete):
        chapter(stage)


def _install(stage: Stage) -> None:
    install(stage, webhook=True)
    terminal = stage.terminal
    terminal.heading("Install the composer beside it: it has an account and permissions of its own")
    terminal.run("kubectl apply --server-side -k manifests/composer")
    terminal.typed("crdkeeper compose run --kubeconfig composer.kubeconfig &")
    composer = stage.start_composer()
    eventually(composer.leading, "the composer leads")
    terminal.comment("It may write CRDs, but not see their objects, until a role of yours says so:")
    terminal.run(f"head -7 {_FILES}/roles.yaml")
    terminal.run(f"kubectl apply --server-side -f {_FILES}/roles.yaml")


def _define(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("An API of your own in fifteen lines")
    terminal.run(f"cat {_FILES}/database.yaml")
    terminal.run(f"kubectl apply --server-side -f {_FILES}/database.yaml")
    terminal.run(f"kubectl wait --for=condition=Established {_DEFINITION}")
    terminal.run("kubectl get cxrd")


def _use(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Use it")
    terminal.run(f"kubectl apply --server-side -f {_FILES}/objects.yaml")
    terminal.run("kubectl get db")
    terminal.comment("The schema counts:")
    terminal.run('kubectl patch db orders --type=merge -p \'{"spec":{"size":"Huge"}}\'', fails=True)


def _break(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("A change that would break what exists is refused, and the API stays as it is")
    terminal.run(
        f"sed 's/Small, Large/Small, Medium/' {_FILES}/database.yaml | kubectl apply --server-side -f -"
    )
    terminal.run(f"kubectl wait --for=condition=Accepted=False {_DEFINITION}")
    terminal.run(_condition("Accepted"))
    terminal.run("kubectl get db")
    terminal.run(f"kubectl apply --server-side -f {_FILES}/database.yaml")
    terminal.run(f"kubectl wait --for=condition=Ready {_DEFINITION}")


def _add_a_version(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("A second version of another shape, with rules instead of a conversion webhook")
    terminal.run(f"cat {_FILES}/conversion.yaml")
    terminal.run(f"diff {_FILES}/database.yaml {_FILES}/two-versions.yaml || true")
    terminal.run(f"kubectl apply --server-side -f {_FILES}/conversion.yaml -f {_FILES}/two-versions.yaml")
    terminal.run(f"kubectl wait --for=condition=Ready vconv/{_NAME} --timeout=60s")
    terminal.run(f"kubectl wait --for=condition=Ready {_DEFINITION} --timeout=60s")
    found = terminal.run("kubectl get databases.v2.platform.example.com orders -o jsonpath='{.spec}'")
    if json.loads(found) != {"storage": "500Gi"}:
        raise CommandFailed("the new version does not show the object that the old one stored")
    terminal.run("kubectl get databases.v1.platform.example.com orders -o jsonpath='{.spec}'")


def _delete(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Deletion is safe: by default it waits until there are no objects")
    terminal.run(f"kubectl delete {_DEFINITION} --wait=false")
    terminal.run(f"kubectl wait --for=condition=Established=False {_DEFINITION}")
    said = terminal.run(_condition("Established"))
    if "2 composites" not in said:
        raise CommandFailed("the deletion does not say what it waits for")
    terminal.run("kubectl get db")
    terminal.run("kubectl delete db --all")
    terminal.run(f"kubectl wait --for=delete {_DEFINITION} crd/{_NAME}")


def _condition(type_: str) -> str:
    fields = "{.type}={.status} {.reason}: {.message}"
    return (
        f'kubectl get {_DEFINITION} -o jsonpath=\'{{range .status.conditions[?(@.type=="{type_}")]}}'
        f'{fields}{{"\\n"}}{{end}}\''
    )
