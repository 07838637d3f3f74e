"""A DefinitionPolicy migrates objects with pods: etcd proves it."""

from pykube.http import HTTPClient

from crdkeeper.scripting import report_of
from tests.cluster.harness import Admin, CustomKind, condition
from tests.cluster.harness.admin import MIGRATIONS, POLICIES, QUICK

OBJECTS = 2000


async def test_a_policy_migrates_objects(admin: Admin, scripts: HTTPClient, group: str) -> None:
    kind = CustomKind(group, labels={"migrate": group})
    policy = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "DefinitionPolicy",
        "metadata": {"name": group},
        "spec": {
            "selector": {"matchLabels": {"migrate": group}},
            "storageMigration": {"mode": "Automatic", "template": dict(QUICK)},
        },
    }
    await admin.create(POLICIES, policy)
    await admin.apply_definition(kind)
    await admin.opt_in(group)
    await admin.create_objects(kind, OBJECTS)
    assert admin.stored(kind) == {"v1": OBJECTS}

    await admin.apply_definition(kind.storing("v2"))

    report = report_of(kind.name, api=scripts)
    report.wait_until(lambda found: found.status.stored_versions == ["v2"], timeout=120)
    assert admin.stored(kind) == {"v2": OBJECTS}
    (name,) = [
        each["metadata"]["name"]
        for each in (await admin.get(MIGRATIONS))["items"]
        if each["spec"]["resource"]["group"] == group
    ]
    migration = await admin.wait_for_condition(name, "Succeeded", "True")
    assert condition(migration, "Verified").status == "True"
    assert migration.status.progress.rewritten == OBJECTS
