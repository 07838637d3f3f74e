"""`crdkeeper rehearse` on a cluster: whose rules count, and what is said of shadows that are left."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from click.testing import CliRunner

from crdkeeper.cli import main
from crdkeeper.cli.rehearse.live import LiveRehearsals, rehearse_all
from crdkeeper.cli.rehearse.objects import RulePair, WebhookRules
from crdkeeper.cli.signals import Signalled
from crdkeeper.cluster.transport.client import Unreachable
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.operations.rehearsal import shadow
from crdkeeper.operations.rehearsal.proof import ShadowUse
from tests.unit.cluster.transport.localserver import failure, json, kubeconfig, serving, silent
from tests.unit.core.rehearsal.crds import GROUP, TEXT, crd, version, widget

NAME = f"widgets.{GROUP}"
OURS = WebhookAddress("crdkeeper-system", "crdkeeper-webhook").client_config(NAME)
LIVE: dict[str, Any] = crd(
    version(a=TEXT),
    version("v2", storage=False, b=TEXT),
    conversion={
        "strategy": "Webhook",
        "webhook": {"clientConfig": OURS, "conversionReviewVersions": ["v1"]},
    },
)
LIVE["metadata"] |= {"uid": "u1", "generation": 1, "resourceVersion": "5"}
LIVE["status"] = {"storedVersions": ["v1"]}
CONVERSION: dict[str, Any] = {
    "apiVersion": "crdkeeper.dev/v1alpha1",
    "kind": "VersionConversion",
    "metadata": {"name": NAME, "generation": 3},
    "spec": {
        "resource": {"group": GROUP, "resource": "widgets"},
        "hub": "v1",
        "spokes": [{"version": "v2", "rules": [{"hub": "spec.a", "spoke": "spec.b"}]}],
    },
}
PLAIN = {**LIVE, "spec": {**LIVE["spec"], "conversion": {"strategy": "None"}}}
OBJECTS = {"apiVersion": f"{GROUP}/v1", "kind": "WidgetList", "items": [widget({"a": "x"})], "metadata": {}}
OLDER = "the VersionConversion does not say by which webhook its rules are served: the operator or crds/ are"


async def test_what_is_left_of_a_cancelled_rehearsal_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow, "_PAUSE_SECONDS", 0.0)
    asked, end = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        last = request.path.rsplit("/", 2)[-2:]
        if request.method == "DELETE":
            return await failure(403, "Forbidden", "never")(request)
        if "labelSelector" in request.query:
            return await json({"items": [], "metadata": {}})(request)
        if last[0] == "customresourcedefinitions" and last[1].endswith("rehearsal.crdkeeper.dev"):
            return await json({"status": {"conditions": [{"type": "Established", "status": "True"}]}})(
                request
            )
        if "/rehearsal.crdkeeper.dev/" in request.path:
            asked.set()
            return await silent(end)(request)
        known = {
            ("customresourcedefinitions", NAME): PLAIN,
            ("v1", "selfsubjectaccessreviews"): {"status": {"allowed": True}},
            ("v1", "customresourcedefinitions"): {},
            ("v1", "widgets"): OBJECTS,
        }
        found = known.get((last[0], last[1]))
        return await (failure(404, "NotFound") if found is None else json(found))(request)

    left: list[str] = []
    async with serving(answer) as server:
        rules, path = RulePair(WebhookRules(), WebhookRules()), kubeconfig(tmp_path, server.url)
        rehearsing = asyncio.create_task(
            rehearse_all([PLAIN], rules, ShadowUse.ALWAYS, path, None, lambda _: None, left.append)
        )
        asking = asyncio.create_task(asked.wait())
        await asyncio.wait([rehearsing, asking], return_when=asyncio.FIRST_COMPLETED)
        rehearsing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rehearsing
        end.set()
    (text,) = left
    assert "kubectl delete crd r" in text


LEFT = "the shadow could not be removed: never"


@pytest.mark.parametrize(
    ("left", "error", "exit_code", "said"),
    [
        ([], Signalled(signal.SIGINT), 130, "Stopped. Nothing was left in the cluster.\n"),
        ([LEFT], Signalled(signal.SIGTERM), 143, f"Stopped.\n{LEFT}\n"),
        ([], Unreachable("no answer"), 2, "Error: no answer\n"),
        ([LEFT], Unreachable("no answer"), 2, f"Error: no answer\n{LEFT}\n"),
    ],
)
def test_what_is_left_is_said_at_the_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    left: list[str],
    error: Exception,
    exit_code: int,
    said: str,
) -> None:
    async def fail(*arguments: Any) -> None:
        for each in left:
            arguments[-1](each)
        raise error

    monkeypatch.setattr("crdkeeper.cli.rehearse.live.rehearse_all", fail)
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(PLAIN))
    result = CliRunner().invoke(main, ["rehearse", "-f", str(tmp_path / "crd.yaml")])
    assert (result.exit_code, result.stderr) == (exit_code, said)


async def rehearsed(
    directory: Path, live: dict[str, Any], new: dict[str, Any], status: dict[str, Any]
) -> LiveRehearsals:
    """By the VersionConversion of this status."""

    async def answer(request: web.Request) -> web.Response:
        if "labelSelector" in request.query:
            return await failure(403)(request)
        last = request.path.rsplit("/", 2)[-2:]
        known = {
            ("versionconversions", NAME): CONVERSION | {"status": status},
            ("customresourcedefinitions", NAME): new if request.method == "PUT" else live,
            ("v1", "selfsubjectaccessreviews"): {"status": {"allowed": True}},
            ("v1", "widgets"): OBJECTS,
        }
        found = known.get((last[0], last[1]))
        return await (failure(404, "NotFound") if found is None else json(found))(request)

    async with serving(answer) as server:
        rules, path = RulePair(WebhookRules(), WebhookRules()), kubeconfig(directory, server.url)
        return await rehearse_all([new], rules, ShadowUse.NEVER, path, None, lambda _: None)


@pytest.mark.parametrize(
    ("status", "doubt"),
    [
        ({"servedGeneration": 3, "clientConfig": OURS}, None),
        ({"servedGeneration": 3}, OLDER),
        ({"servedGeneration": 2}, OLDER),
        ({"servedGeneration": 3, "clientConfig": {}}, OLDER),
        ({"servedGeneration": 3, "clientConfig": {"service": {"name": "crdkeeper-webhook"}}}, OLDER),
        ({"servedGeneration": 2, "clientConfig": {"service": {"namespace": "crdkeeper-system"}}}, OLDER),
        ({}, "give its rules with --rules"),
        (
            {"servedGeneration": 2, "clientConfig": OURS},
            "cannot be read from the ConfigMap crdkeeper-system/",
        ),
    ],
)
async def test_rules_count_if_the_operator_says_where(
    tmp_path: Path, status: dict[str, Any], doubt: str | None
) -> None:
    done = await rehearsed(tmp_path, LIVE, LIVE, status)
    assert done.failures == []
    (report,) = done.reports
    if doubt is None:
        assert report.doubts == []
    else:
        (said,) = report.doubts
        assert "Service crdkeeper-system/crdkeeper-webhook:443/convert/widgets.example.com converts" in said
        assert doubt in said


RENAMED = [version(a=TEXT), version("v2", storage=False, c=TEXT)]
UNFIT = {**LIVE, "spec": {**LIVE["spec"], "versions": RENAMED}}
SERVED = {"servedGeneration": 3, "clientConfig": OURS}


async def test_what_makes_the_rules_fit_again_is_rehearsed(tmp_path: Path) -> None:
    """Meanwhile the webhook goes by the former CRD."""
    done = await rehearsed(tmp_path, UNFIT, LIVE, SERVED)
    assert done.failures == []
    (report,) = done.reports
    assert report.doubts == []
    (note,) = report.notes
    assert "converts today, and what it makes of objects is not known" in note


async def test_rules_that_do_not_fit_the_new_crd_are_named_with_it(tmp_path: Path) -> None:
    done = await rehearsed(tmp_path, LIVE, UNFIT, SERVED)
    assert done.reports == []
    (failed,) = done.failures
    assert failed.lines[0].startswith(f"{NAME}: the cluster's VersionConversion: spec.spokes[0]")
