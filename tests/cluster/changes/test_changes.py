"""DefinitionPolicies with spec.changes: what kubectl shows, and what the API server refuses."""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from crdkeeper.cluster.resources.access import Right
from tests.cluster.changes.scene import ALLOW, CHANGES, CONFIGURATION, Scene, enum, without
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.definitions.protecting import PART_SECONDS, refusal_of, refused_in_time
from tests.cluster.harness import eventually
from tests.cluster.harness.admin import CLUSTER_ROLES, CRDS, POLICIES
from tests.cluster.harness.customkind import SPEC, CustomKind
from tests.cluster.harness.installation import SERVICE_ACCOUNT
from tests.cluster.harness.webhookpod import WEBHOOK_ACCOUNT
from tests.cluster.reports.live.scene import change_versions, let_read
from tests.cluster.reports.reports import report_where

CONFIGURATIONS: Final = ("admissionregistration.k8s.io", "validatingwebhookconfigurations")


def warnings(said: str) -> list[str]:
    return re.findall(r"^Warning: (.*)$", said, re.MULTILINE)


async def databases(scene: Scene, number: int = 2, **spec: str) -> None:
    await scene.admin.apply_definition(scene.kind)
    await scene.admin.create_objects(scene.kind, number, **{"engine": "mysql", **spec})


async def test_kubectl_shows_what_a_change_would_do(scene: Scene) -> None:
    await scene.judge("Warn")
    await databases(scene, 7)
    await scene.admin.create_objects(scene.kind, 3, prefix="noted", engine="mysql", note="by hand")
    changed = scene.kind.changed("v1", spec=without("note"))
    lost = "3 of 10 Database objects would lose spec.note at v1"
    breaking = "breaking[field-removed]: v1: spec.note: the field is gone"
    # There may be time for the objects, and none to compare the CRDs.
    told = warnings(await scene.until_said(lost, changed, also=f"Warning: {breaking}"))
    assert told[0].endswith(", such as default/noted-00000")
    assert all(len(each.encode()) <= 256 for each in told)
    assert "serverside-applied" in scene.apply(changed)
    # The fault is there now: it is not held against the next change.
    described = scene.kind.changed("v1", spec={**without("note"), "description": "Of a database."})
    assert not warnings(await scene.said_in_time(described))
    assert "serverside-applied" in scene.apply(described)


async def test_a_new_definition_is_compared_with_itself(scene: Scene) -> None:
    await scene.judge("Deny")
    said = await scene.until_said("served-field", scene.kind.changed("v1", spec=without("note")))
    assert "serverside-applied" in said
    assert not warnings(await scene.said_in_time(scene.kind))


async def test_what_harms_no_object_is_not_refused(scene: Scene) -> None:
    await scene.judge("Deny")
    await databases(scene, engine="postgres")
    said = await scene.until_said("enum-tightened", scene.kind.changed("v1", spec=enum("postgres")))
    assert "serverside-applied" in said


async def test_what_harms_objects_is_refused_until_it_is_allowed(scene: Scene) -> None:
    await scene.judge("Deny")
    await databases(scene, 3)
    changed = scene.kind.changed("v1", spec=enum("postgres"))
    refused = f"DefinitionPolicy {scene.kind.group} refuses it (spec.changes): 3 of 3 Database objects"
    said = await scene.until_said(refused, changed)
    assert f"To allow it: kubectl annotate crd {scene.kind.name} {ALLOW}=REASON" in said
    assert "serverside-applied" not in said
    await scene.until_said("refuses it", changed, annotations={ALLOW: ""})
    said = await scene.until_said("allowed by", changed, annotations={ALLOW: "all moved away"})
    assert warnings(said)[0].startswith(f"allowed by {ALLOW} (all moved away)")
    assert "serverside-applied" in scene.apply(changed, annotations={ALLOW: "all moved away"})


async def test_what_is_refused_can_be_rehearsed(scene: Scene, shell: CommandLine, tmp_path: Path) -> None:
    await scene.judge("Deny")
    await databases(scene, 3)
    changed = scene.kind.changed("v1", spec=without("engine"))
    await scene.until_said("refuses it", changed)
    before = await scene.admin.definition(scene.kind)
    (tmp_path / "crd.json").write_text(json.dumps(changed.to_object()), encoding="utf-8")
    rehearsed = await shell.run("rehearse", "-f", str(tmp_path / "crd.json"))
    assert (rehearsed.exit_code, rehearsed.stderr) == (1, "")
    assert "Pruned (a field is lost for all who read it): 3 objects" in rehearsed.stdout
    assert await scene.admin.definition(scene.kind) == before
    path = f"{CRDS}/{scene.kind.name}"
    said = await refused_in_time(
        lambda: refusal_of(scene.admin.apply(path, changed.to_object())),
        lambda: scene.admin.apply_definition(scene.kind),
        late=PART_SECONDS,
    )
    assert "refuses it" in said


async def test_what_the_present_schema_refuses_is_not_held_against_a_change(scene: Scene) -> None:
    await scene.judge("Deny")
    await databases(scene, 3)
    await scene.admin.create_objects(scene.kind, 2, prefix="noted", engine="mysql", note="by hand")
    said = scene.apply(scene.kind.changed("v1", spec=enum("postgres")), annotations={ALLOW: "to be mended"})
    assert "serverside-applied" in said
    worse = enum("oracle")
    said = await scene.until_said("enum-", scene.kind.changed("v1", spec=worse))
    assert "serverside-applied" in said
    assert "Database objects" not in said
    del worse["properties"]["note"]
    lost = "2 of 5 Database objects would lose spec.note at v1, v2, such as default/noted-00000"
    said = await scene.until_said(
        f"refuses it (spec.changes): {lost}. To allow it", scene.kind.changed("v1", spec=worse)
    )
    assert said.count("Database objects") == 2


async def test_objects_that_would_be_read_differently_are_not_harmed_unseen(scene: Scene) -> None:
    def noting(**note: object) -> CustomKind:
        spec = copy.deepcopy(SPEC)
        spec["properties"]["note"] = {"type": "string", **note}
        return scene.kind.changed("v1", spec=spec)

    await scene.judge("Deny")
    await scene.admin.apply_definition(noting(nullable=True))
    await scene.admin.create_objects(scene.kind, 3, note="by hand")
    await scene.admin.create_objects(scene.kind, 2, prefix="null", note=None)
    changed = noting(default="none")
    told = "2 of 5 Database objects would have another value in spec.note at v1, such as default/null-00000"
    await scene.until_said(f"refuses it (spec.changes): {told}", changed)
    # It was right.
    assert "serverside-applied" in scene.apply(changed, annotations={ALLOW: "nobody reads them"})

    async def notes() -> list[str]:
        found = [await scene.admin.get(scene.kind.path(f"{each}-00000")) for each in ("db", "null")]
        return [each["spec"].get("note") for each in found]

    async def changed_so() -> bool:
        return await notes() == ["by hand", "none"]

    await eventually(changed_so)


async def test_a_change_that_takes_the_label_away_is_judged(scene: Scene) -> None:
    await scene.judge("Deny", selector={"matchLabels": {"guarded": "yes"}})
    kind = replace(scene.kind, labels={"guarded": "yes"})
    await scene.admin.apply_definition(kind)
    await scene.admin.create_objects(kind, 2, engine="mysql")
    await scene.until_said("refuses it", scene.kind.changed("v1", spec=enum("postgres")))
    await scene.admin.apply_definition(scene.kind)
    said = await scene.said_in_time(scene.kind.changed("v1", spec=enum("postgres")))
    assert "serverside-applied" in said
    assert not warnings(said)


async def test_a_version_that_goes_names_who_writes_it(scene: Scene) -> None:
    await scene.judge("Warn")
    await scene.admin.apply_definition(scene.kind)
    await scene.admin.create_objects(scene.kind, 2, version="v2", engine="mysql")
    told = "admin wrote 2 of 2 Database objects at v2, which is not served any more"
    await scene.until_said(told, scene.kind.changed("v2", served=False))


async def test_a_dead_webhook_holds_up_nothing(scene: Scene) -> None:
    await scene.judge("Deny")
    await databases(scene)
    changed = scene.kind.changed("v1", spec=enum("postgres"))
    await scene.until_said("refuses it", changed)
    scene.pod.process.kill()
    try:
        said = scene.apply(changed, "--dry-run=server")
        assert "serverside-applied" in said
        assert not warnings(said)
        # It looks again at once when a policy has changed, otherwise each minute.
        await scene.admin.merge(f"{POLICIES}/{scene.kind.group}", {"spec": {"changes": "Warn"}})
        assert "does not respond" in (await scene.condition("ChangesJudged", "False"))["message"]
        assert (await scene.condition("Ready", "False"))["reason"] == "ChangesNotJudged"
    finally:
        scene.pod.start()
    await scene.condition("ChangesJudged", "True")


async def test_a_frozen_webhook_holds_up_nothing(scene: Scene) -> None:
    await scene.judge("Deny")
    await databases(scene)
    await scene.until_said("refuses it", scene.kind.changed("v1", spec=enum("postgres")))

    async def waited() -> float:
        """How long a change takes with the frozen webhook, as the API server measures it."""
        before = await scene.waits()
        said = scene.apply(scene.kind.changed("v1", spec=enum("postgres")), "--dry-run=server")
        assert "serverside-applied" in said
        after = await scene.waits()
        assert after.given_up == before.given_up + 1
        return after.seconds - before.seconds

    scene.pod.process.pause()
    try:
        # The entry says two seconds, which a busy machine may exceed by far, but not each time.
        attempts = 5
        while await waited() >= 10.0:
            attempts -= 1
            assert attempts, "it waits as long as it does by default"
    finally:
        scene.pod.process.resume()
    await scene.until_said("refuses it", scene.kind.changed("v1", spec=enum("postgres")))


async def test_the_entry_is_kept_while_a_policy_wants_it(scene: Scene) -> None:
    await scene.judge("Warn")
    before = await scene.admin.get(CONFIGURATION)
    (entry,) = before["webhooks"]
    assert (entry["failurePolicy"], entry["timeoutSeconds"]) == ("Ignore", 2)
    # Somebody else breaks it; the operator looks again when a policy changes, and each minute.
    patch = {"webhooks": [{**entry, "failurePolicy": "Fail", "timeoutSeconds": 30}]}
    await scene.admin.merge(CONFIGURATION, patch)
    await scene.judge("Deny")

    async def mended() -> bool:
        found = await scene.admin.get(CONFIGURATION)
        return bool(found["webhooks"] == before["webhooks"])

    await eventually(mended)
    await scene.admin.delete(f"{POLICIES}/{scene.kind.group}")

    async def gone() -> bool:
        return not (await scene.admin.get(CONFIGURATION)).get("webhooks")

    await eventually(gone)


async def test_without_the_right_to_read_objects_there_are_only_warnings(scene: Scene) -> None:
    await scene.admin.delete(f"{CLUSTER_ROLES}/changes-{scene.kind.group}")
    await scene.judge("Deny")
    await databases(scene)
    changed = scene.kind.changed("v1", spec=enum("postgres"))
    said = await scene.until_said("crdkeeper-webhook may not list them", changed)
    assert "serverside-applied" in said


async def test_what_cannot_be_examined_is_told_from_the_last_census(scene: Scene) -> None:
    admin, kind = scene.admin, scene.kind
    await admin.delete(f"{CLUSTER_ROLES}/changes-{kind.group}")
    await databases(scene, 3)
    await admin.create_objects(kind, 2, version="v2", prefix="newer", engine="mysql")
    await let_read(admin, kind.group)
    # Another revision is counted at once: without the right, the operator may have failed to.
    await change_versions(admin, kind, deprecationWarning=None, additionalPrinterColumns=None)
    await report_where(admin, kind.name, lambda each: each.status.census is not None)
    await scene.judge("Deny")
    said = await scene.until_said("objects named v2 in managedFields at 2", kind.changed("v2", served=False))
    assert "2 of 5 Database objects named v2 in managedFields at 2" in said
    assert re.search(r"no live object was examined: .*; there were 5 at 2", said)
    assert "serverside-applied" in said
    role = f"{CLUSTER_ROLES}/crdkeeper-changes-webhook"
    granted = (await admin.get(role))["rules"]
    await admin.merge(
        role, {"rules": [each for each in granted if "definitionreports" not in each["resources"]]}
    )
    try:
        told = "crdkeeper-webhook may not get DefinitionReports, see docs/changes.md"
        await scene.until_said(told, kind.changed("v2", served=False))
    finally:
        await admin.merge(role, {"rules": granted})


async def test_a_webhook_without_its_rights_is_told_of(scene: Scene) -> None:
    await scene.judge("Warn")
    await scene.admin.delete(f"{CLUSTER_ROLES}/crdkeeper-changes-webhook")
    await scene.until_denied(Right("list", *CONFIGURATIONS), WEBHOOK_ACCOUNT)
    scene.pod.process.kill()  # it still knows what it has read
    scene.pod.start()
    try:
        await scene.admin.merge(f"{POLICIES}/{scene.kind.group}", {"spec": {"changes": "Deny"}})
        message = ""

        async def told() -> bool:
            nonlocal message
            message = (await scene.condition("ChangesJudged", "False"))["message"]
            return "has not read the ValidatingWebhookConfiguration crdkeeper-changes yet" in message

        await eventually(told, otherwise=lambda: message)
        assert 'resourceNames: ["crdkeeper-changes"], verbs: ["list", "watch"]' in message
    finally:
        scene.kubectl("apply", "--server-side", "--force-conflicts", f"--kustomize={CHANGES}")
        scene.pod.process.kill()
        scene.pod.start()
    await scene.condition("ChangesJudged", "True")


async def test_an_operator_without_its_rights_is_told_of(scene: Scene) -> None:
    await scene.judge("Warn")
    await databases(scene)
    role = f"{CLUSTER_ROLES}/crdkeeper-changes-operator"
    (rule,) = (await scene.admin.get(role))["rules"]
    message = ""

    async def told(text: str) -> None:
        async def look() -> bool:
            nonlocal message
            message = (await scene.condition("ChangesJudged", "False"))["message"]
            return text in message

        await eventually(look, otherwise=lambda: message)
        assert 'resourceNames: ["crdkeeper-changes"], verbs: ["get", "patch"]' in message

    async def leave(verb: str, other: str) -> None:
        await scene.admin.merge(role, {"rules": [{**rule, "verbs": [verb]}]})
        await scene.until_denied(Right(other, *CONFIGURATIONS, name="crdkeeper-changes"), SERVICE_ACCOUNT)

    try:
        await leave("patch", "get")
        # It looks again when a policy has changed.
        await scene.admin.merge(f"{POLICIES}/{scene.kind.group}", {"spec": {"changes": "Deny"}})
        await told("the operator may not read the ValidatingWebhookConfiguration crdkeeper-changes")
        # The entry is there all the same.
        await scene.until_said("refuses it", scene.kind.changed("v1", spec=enum("postgres")))
        (entry,) = (await scene.admin.get(CONFIGURATION))["webhooks"]
        await scene.admin.merge(CONFIGURATION, {"webhooks": [{**entry, "timeoutSeconds": 1}]})
        await leave("get", "patch")
        await told("the operator may not write the ValidatingWebhookConfiguration crdkeeper-changes")
    finally:
        scene.kubectl("apply", "--server-side", "--force-conflicts", f"--kustomize={CHANGES}")
    await scene.condition("ChangesJudged", "True")
    assert (await scene.admin.get(CONFIGURATION))["webhooks"] == [entry]


@pytest.mark.parametrize("path", ["/changes/", "/changes/guessed", "/changes/" + "a" * 48])
async def test_nobody_else_can_ask(scene: Scene, path: str) -> None:
    await scene.judge("Warn")
    assert scene.post(path, b"{}") == (404, b"only conversions are served here\n")
