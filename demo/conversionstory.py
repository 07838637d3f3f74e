"""The story: an API gets a second version, and rules instead of a new webhook convert between the two."""

import json

from crdkeeper.scripting import VersionConversion
from demo.installing import install
from demo.stage import Stage
from demo.terminal import CommandFailed

_FILES = "demo/conversion"
_NAME = "crontabs.stable.example.com"
_NEW, _OLD = (f"crontabs.{version}.stable.example.com" for version in ("v1", "v1beta1"))


def play(stage: Stage) -> None:
    """Plays all chapters. Raises CommandFailed if something differs from the story."""
    for chapter in (
        _look_at_two_schemas,
        _begin_without_rules,
        _try_the_rules,
        _install,
        _apply,
        _use_both_versions,
        _spoil_the_rules,
        _change_the_schema,
    ):
        chapter(stage)


def _look_at_two_schemas(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Two versions of one kind, and objects of it")
    terminal.run(f"cat {_FILES}/crd.yaml {_FILES}/objects.yaml")


def _begin_without_rules(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading(
        "Begin without rules: what differs is named, with a rule that would fit. No cluster is needed"
    )
    terminal.run(f"cat {_FILES}/begin.yaml")
    terminal.run(_test("begin.yaml"), fails=True)


def _try_the_rules(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("With rules: each object to every version and back, nothing may be lost")
    terminal.run(f"cat {_FILES}/rules.yaml")
    terminal.run(_test("rules.yaml"))


def _install(stage: Stage) -> None:
    install(stage, webhook=True)


def _apply(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Apply them: compiled, verified on every live object, served, and only then used")
    terminal.run(f"kubectl apply --server-side -f {_FILES}/crd.yaml")
    terminal.run(f"kubectl wait --for=condition=Established crd/{_NAME}")
    terminal.run(f"kubectl apply --server-side -f {_FILES}/converter-role.yaml -f {_FILES}/objects.yaml")
    terminal.run(f"kubectl apply --server-side -f {_FILES}/rules.yaml")
    terminal.run(f"kubectl wait --for=condition=Ready vconv/{_NAME} --timeout=180s")
    terminal.run("kubectl get versionconversions")
    terminal.run(
        f"kubectl get vconv {_NAME} "
        "-o jsonpath='{range .status.conditions[*]}{.type}={.status}: {.message}{\"\\n\"}{end}'"
    )
    if _conversion(stage).status.verification.objects == 0:
        raise CommandFailed("the rules were not verified on the objects that exist")


def _use_both_versions(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Read at both versions, edit at the old one")
    terminal.run(f"kubectl get {_OLD} nightly -o yaml")
    patch = '{"spec":{"hostPort":"reports.example.com:9443"}}'
    terminal.run(f"kubectl patch {_OLD} nightly --type=merge -p '{patch}'")
    terminal.comment(
        "The old version knows neither replicas nor that 1Gi is not written 1024Mi. Nothing is lost:"
    )
    found = json.loads(terminal.run(f"kubectl get {_NEW} nightly -o jsonpath='{{.spec}}'"))
    if (found["port"], found["replicas"], found["containers"][0]["memory"]) != (9443, 3, "1Gi"):
        raise CommandFailed("something was lost")


def _spoil_the_rules(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Bad rules never replace good ones")
    terminal.run(f"kubectl apply --server-side -f {_FILES}/begin.yaml")
    terminal.run(f"kubectl wait --for=condition=Compiled=False vconv/{_NAME} --timeout=180s")
    terminal.run(f"kubectl get {_OLD} nightly -o jsonpath='{{.spec.hostPort}}'")
    conversion = _conversion(stage)
    if conversion.status.served_generation != conversion.metadata["generation"] - 1:
        raise CommandFailed("the webhook was not left with the good rules")
    terminal.run(f"kubectl apply --server-side -f {_FILES}/rules.yaml")
    conversion.wait("Ready", timeout=180)


def _change_the_schema(stage: Stage) -> None:
    terminal = stage.terminal
    terminal.heading("Rehearse a new schema before it is applied: ports below 1024 shall go")
    terminal.run(
        f"sed 's/minimum: 1, /minimum: 1024, /' {_FILES}/crd.yaml | crdkeeper rehearse -f - --rules "
        f"{_FILES}/rules.yaml",
        fails=True,
    )


def _conversion(stage: Stage) -> VersionConversion:
    return VersionConversion.named(_NAME, api=stage.api).reload()


def _test(rules: str) -> str:
    return (
        f"crdkeeper convert test --definition {_FILES}/crd.yaml --rules {_FILES}/{rules} "
        f"-f {_FILES}/objects.yaml"
    )
