"""The sample Job migrates in a pod, which is deleted during the run: the next one resumes."""

import asyncio
import json

from pykube.http import HTTPClient

from crdkeeper.api.meta import CLI
from crdkeeper.scripting import StorageMigration
from tests.cluster.cli import jobsample
from tests.cluster.harness import NAMESPACE, Admin, CustomKind, outdated
from tests.node.deployment import Deployment, until

OBJECTS = 200
SLOW, FAST = 3, 1000  # objects a second: slowly, the run lasts longer than a pod takes to start


async def test_a_job_whose_pod_is_deleted_goes_on(
    deployment: Deployment, admin: Admin, scripts: HTTPClient, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), OBJECTS, opt_in=False)
    await jobsample.account(admin, kind)
    (job,) = (each for each in jobsample.documents(kind) if each["kind"] == "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"] == jobsample.arguments(kind)
    container["args"] += ["--settle-seconds=1", f"--max-objects-per-second={SLOW}"]
    name = job["metadata"]["name"]
    await admin.create(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", job)
    migration = StorageMigration.named(f"{kind.name}-cli", api=scripts)
    await asyncio.to_thread(
        migration.wait_until, lambda found: found.status.progress.rewritten > 0, timeout=120
    )
    before = pods_of(deployment, name)
    deployment.kubectl("delete", "pod", *before, "--grace-period=0", "--force")
    stored = admin.stored(kind)["v2"]
    assert 0 < stored < OBJECTS

    until(lambda: set(pods_of(deployment, name)) - set(before), 120)
    # Its pod has taken its own options over: it is the next one that writes so many more.
    until(lambda: admin.stored(kind)["v2"] > stored + 10 * SLOW, 120)
    await admin.patch_migration(migration.name, limits={"maxObjectsPerSecond": FAST})
    await asyncio.to_thread(migration.wait, "Succeeded", timeout=240)

    deployment.kubectl("wait", f"job/{name}", "--for=condition=Complete", "--timeout=180s")
    assert admin.stored(kind) == {"v2": OBJECTS}
    migration.reload()
    assert migration.spec.managed_by == CLI
    deployment.kubectl("delete", "job", name)


def pods_of(deployment: Deployment, job: str) -> list[str]:
    selector = f"--selector=batch.kubernetes.io/job-name={job}"
    found = json.loads(deployment.kubectl("get", "pods", selector, "--output=json"))
    return [each["metadata"]["name"] for each in found["items"]]
