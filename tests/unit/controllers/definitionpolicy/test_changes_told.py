"""Why changes of CRDs are not judged, and when a new CA need not wait for the configuration."""

import asyncio
import itertools
from typing import cast

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.probes.changewebhook import JudgingReply
from crdkeeper.cluster.resources.changewebhook import COLLECTION, NAME
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.definitionpolicy import changes
from crdkeeper.controllers.definitionpolicy.changes import ChangeGuard
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.policy.selection import guarding_digest
from tests import virtualtime
from tests.unit.builders import policy
from tests.unit.controllers.fakeapi import FakeApi

CONFIGURATION = f"{COLLECTION}/{NAME}"
JUDGED = policy(changes="Deny")
ASKS = JudgingReply(guarding_digest([JUDGED]))
FORBIDDEN = ApiError(403, {"message": "forbidden"})


def looked(
    monkeypatch: pytest.MonkeyPatch, reply: JudgingReply = ASKS, forbidden: str = ""
) -> tuple[str, str | None]:
    """What is wrong after a look, and the bundle that API servers have, with one request forbidden."""

    async def asked(*_: object) -> JudgingReply:
        return reply

    async def main() -> tuple[str, str | None]:
        api, state = FakeApi(), ClusterState()
        api.objects[CONFIGURATION] = {"metadata": {"name": NAME, "uid": "u", "resourceVersion": "1"}}
        if forbidden:
            api.failures.append((forbidden, CONFIGURATION, FORBIDDEN))
        state.trust.bundle, state.trust.configured = "new", "old"
        told = asyncio.Event()
        guard = ChangeGuard(cast(Client, api), state, WebhookAddress(url="https://w"), "ns", told.set)
        running = asyncio.create_task(guard.run())
        state.saw(DefinitionPolicy, "p", JUDGED)
        await told.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return guard.trouble, state.trust.configured

    monkeypatch.setattr(changes, "ask_about_change", asked)
    return virtualtime.run(main())


def test_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked(monkeypatch) == ("", "new")


@pytest.mark.parametrize(
    ("reply", "missing"),
    [
        (
            JudgingReply("", admitted=False),
            f"has not read the ValidatingWebhookConfiguration {NAME} yet. `kubectl apply --server-side -k "
            'manifests/changes` grants it {apiGroups: ["admissionregistration.k8s.io"], resources: '
            f'["validatingwebhookconfigurations"], resourceNames: ["{NAME}"], verbs: ["list", "watch"]}}',
        ),
        (
            JudgingReply(guarding_digest([])),
            "has not read the policies yet. `kubectl apply --server-side -k manifests/changes` grants it "
            '{apiGroups: ["crdkeeper.dev"], resources: ["definitionpolicies"], verbs: ["list", "watch"]}',
        ),
    ],
)
def test_a_right_that_the_webhook_may_lack_is_named(
    monkeypatch: pytest.MonkeyPatch, reply: JudgingReply, missing: str
) -> None:
    assert looked(monkeypatch, reply) == (f"https://w {missing}", "new")


@pytest.mark.parametrize(("method", "verb"), [("GET", "read"), ("PATCH", "write")])
def test_a_new_ca_does_not_wait_for_what_the_operator_may_not_keep(
    monkeypatch: pytest.MonkeyPatch, method: str, verb: str
) -> None:
    trouble, configured = looked(monkeypatch, forbidden=method)
    assert trouble.startswith(f"the operator may not {verb} the ValidatingWebhookConfiguration {NAME}.")
    assert configured is None


def test_what_the_operator_writes_into_a_policy_is_no_reason_to_ask_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = itertools.count()

    async def asked(*_: object) -> JudgingReply:
        return JudgingReply("", f"trouble {next(numbers)}")

    async def main() -> None:
        api, state = FakeApi(), ClusterState()
        api.objects[CONFIGURATION] = {"metadata": {"name": NAME, "uid": "u", "resourceVersion": "1"}}
        state.trust.bundle = "new"

        def told() -> None:
            """The status changes, and returns as an event."""
            state.saw(DefinitionPolicy, "p", JUDGED)

        guard = ChangeGuard(cast(Client, api), state, WebhookAddress(url="https://w"), "ns", told)
        running = asyncio.create_task(guard.run())
        told()
        await asyncio.sleep(60)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    monkeypatch.setattr(changes, "ask_about_change", asked)
    virtualtime.run(main())
    assert 10 < next(numbers) < 25
