"""`crdkeeper rehearse` on a cluster: whose rules count, by what the operator says."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from crdkeeper.cli.rehearse.live import rehearse_all
from crdkeeper.cli.rehearse.objects import RulePair, WebhookRules
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.operations.rehearsal.proof import ShadowUse
from tests.unit.cluster.transport.localserver import failure, json, kubeconfig, serving
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
OBJECTS = {"apiVersion": f"{GROUP}/v1", "kind": "WidgetList", "items": [widget({"a": "x"})], "metadata": {}}
OLDER = "the VersionConversion does not say by which webhook its rules are served: the operator or crds/ are"


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
    async def answer(request: web.Request) -> web.Response:
        if "labelSelector" in request.query:
            return await failure(403)(request)
        last = request.path.rsplit("/", 2)[-2:]
        known = {
            ("versionconversions", NAME): CONVERSION | {"status": status},
            ("customresourcedefinitions", NAME): LIVE,
            ("v1", "selfsubjectaccessreviews"): {"status": {"allowed": True}},
            ("v1", "widgets"): OBJECTS,
        }
        found = known.get((last[0], last[1]))
        return await (failure(404, "NotFound") if found is None else json(found))(request)

    async with serving(answer) as server:
        rules, path = RulePair(WebhookRules(), WebhookRules()), kubeconfig(tmp_path, server.url)
        done = await rehearse_all([LIVE], rules, ShadowUse.NEVER, path, None, lambda _: None)
    assert done.failures == []
    (report,) = done.reports
    if doubt is None:
        assert report.doubts == []
    else:
        (said,) = report.doubts
        assert "Service crdkeeper-system/crdkeeper-webhook:443/convert/widgets.example.com converts" in said
        assert doubt in said
