"""What `crdkeeper rehearse` says of versions that come and go, and that the API server does as it says."""

import copy
import json
from typing import Any

from crdkeeper.cluster.transport.client import Answer
from crdkeeper.core.removedversions import APPLY_ANSWER
from crdkeeper.operations.rehearsal.proof import ShadowUse
from tests.cluster.harness import eventually
from tests.cluster.rehearsal.scene import CRDS
from tests.cluster.rehearsal.stage import NUMBER, Json, Stage, crd, with_spec


def versions(group: str, storage: str, **specs: Json) -> Json:
    """The CRD with these versions, each with the schema of its spec."""
    found = crd(group)
    (first,) = found["spec"]["versions"]
    found["spec"]["versions"] = [
        {
            **copy.deepcopy(first),
            "name": name,
            "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        }
        for name, spec in specs.items()
    ]
    return found


async def test_a_version_that_goes_is_harm_without_any_object(stage: Stage) -> None:
    spec = with_spec()
    both = versions(stage.group, "v1", v1=spec, v2=spec)
    assert await stage.scene.put(stage.scene.marked(both)) is None
    await stage.client.request("DELETE", f"/apis/{stage.group}/v1/namespaces/default/widgets")

    done = await stage.shell.run("rehearse", "-f", stage.file("new.yaml", crd(stage.group)))
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        f"{stage.name}: 0 objects rehearsed by the engine",
        "",
        "NotServed (cannot be read or written any more at a version that was served): 0 objects",
        "  v2 will not be served: clients that use it get 404 (v2): 0 objects",
        "",
        "Something is lost or refused.",
    ]


async def test_what_a_new_version_refuses_is_no_outage_of_today(stage: Stage) -> None:
    """The scale subresource is not forgiven what was there before: no write at v2 is accepted."""
    new = versions(stage.group, "v1", v1=with_spec(), v2=with_spec(tags=None))
    new["spec"]["versions"][1]["subresources"] = {
        "scale": {"specReplicasPath": ".spec.host", "statusReplicasPath": ".status.replicas"}
    }
    report = await stage.rehearse(new)
    assert report["verdict"] == "Harmful"
    assert report["affectedToday"] == {}
    assert report["affectedAtNewVersions"] == {"Pruned": NUMBER, "WriteRefused": NUMBER}
    assert all(each["versions"] == ["v2"] and not each["servedToday"] for each in report["findings"])

    done = await stage.shell.run("rehearse", "-f", stage.file("new.yaml", new))
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[2] == "Only for clients that use v2, which is not served today:"
    assert lines[-1] == (
        "Nothing is lost or refused for clients of today, but at a version that is not served today."
    )

    # So it is: who writes at v1 goes on as before, and at v2 every write is refused.
    assert await stage.scene.put(stage.scene.marked(new)) is None
    for version, code in (("v1", 200), ("v2", 422)):
        path = f"/apis/{stage.group}/{version}/namespaces/default/widgets/w1"
        read = await stage.client.send("GET", path)
        answer = await stage.client.send("PUT", f"{path}?dryRun=All", content=read.content)
        assert answer.code == code, answer.content


async def apply(stage: Stage, version: str, name: str, manager: str) -> Answer:
    """A server-side apply of one field."""
    obj = {
        "apiVersion": f"{stage.group}/{version}",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"port": 80},
    }
    path = f"/apis/{stage.group}/{version}/namespaces/default/widgets/{name}"
    return await stage.client.send(
        "PATCH",
        f"{path}?fieldManager={manager}&force=true",
        content=json.dumps(obj).encode(),
        content_type="application/apply-patch+yaml",
    )


async def trim(stage: Stage, *stored: str) -> None:
    """All objects are written by now, so status.storedVersions may say so."""
    body: Any = {"status": {"storedVersions": list(stored)}}
    await stage.client.request(
        "PATCH", f"{CRDS}/{stage.name}/status", body, content_type="application/merge-patch+json"
    )


async def test_server_side_apply_fails_where_managed_fields_name_a_version_that_goes(stage: Stage) -> None:
    spec = with_spec()
    both = versions(stage.group, "v2", v1=spec, v2=spec)
    assert await stage.scene.put(stage.scene.marked(both)) is None
    for version, name in (("v1", "old"), ("v2", "new")):
        assert (await apply(stage, version, name, "gitops")).code == 201
    for each in stage.scene.objects:
        path = f"/apis/{stage.group}/v2/namespaces/default/widgets/{each['metadata']['name']}"
        await stage.client.request("DELETE", path)
    await trim(stage, "v2")
    only = versions(stage.group, "v2", v2=spec)

    report = await stage.rehearse(only, use=ShadowUse.AUTO)
    assert (report["verdict"], report["objects"]) == ("Harmful", 2)
    assert report["affectedToday"] == {"NotServed": 2, "ApplyFails": 1}
    (finding,) = (each for each in report["findings"] if each["effect"] == "ApplyFails")
    assert (finding["count"], [each["name"] for each in finding["examples"]]) == (1, ["old"])
    said = f"{APPLY_ANSWER}: {stage.group}/v1"
    assert said in finding["message"]
    assert any(
        f"crdkeeper migrate {stage.name} --managed-fields retarget" in each for each in report["notes"]
    )

    # So it is, whoever applies, and for that object alone.
    assert await stage.scene.put(stage.scene.marked(only)) is None

    async def fails() -> bool:
        answer = await apply(stage, "v2", "old", "somebody")
        return answer.code == 500 and said in answer.json()["message"]

    await eventually(fails)
    assert (await apply(stage, "v2", "new", "somebody")).code == 200
