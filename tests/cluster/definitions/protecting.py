"""Policies that protect CRDs, and what the API server says then."""

import itertools
import math
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.apiserver.definitions.facts import definition_facts
from crdkeeper.cluster.transport.client import MERGE_PATCH, ApiError
from crdkeeper.core.policy.selection import selects
from tests.cluster.harness import Admin, CustomKind, eventually
from tests.cluster.harness.admin import CRDS, POLICIES

Json = dict[str, Any]
ALLOW = "crdkeeper.dev/allow-deletion"
BY_WEBHOOK = 'admission webhook "changes.crdkeeper.dev" denied the request: '
"""How the webhook's refusals begin."""
LATE_SECONDS = 1.0
"""An answer of the webhook that takes longer may be too late on a busy machine: what it refuses passes."""
PART_SECONDS = 0.6
"""So long each part of its look at a change may take: without one of them, it lets the change pass."""
LABELS = {"team": "a", "tier": "gold"}
BINDING = (
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/crdkeeper-definition-protection"
)
DENY: Json = {"deletion": "Deny"}
LONG = [("?*[!x]" * 60)[:246].rpartition("[")[0] + f"{number:02}" for number in range(63)]
"""As many globs as a policy may have, almost, each almost as long as it may be."""

SELECTORS: list[Json] = [
    {},
    {"matchLabels": {"team": "a"}},
    {"matchLabels": {"team": "b"}},
    {"matchLabels": {"team": "a", "tier": "gold"}},
    {"matchLabels": {"team": "a", "tier": "tin"}},
    {"matchLabels": {"missing": ""}},
    *(
        {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
        for key, (operator, values) in itertools.product(
            ("team", "missing"),
            (("In", ["a", "b"]), ("In", ["b"]), ("NotIn", ["b"]), ("NotIn", ["a"])),
        )
    ),
    *(
        {"matchExpressions": [{"key": key, "operator": operator}]}
        for key, operator in itertools.product(("team", "missing"), ("Exists", "DoesNotExist"))
    ),
    {"matchLabels": {"team": "a"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
]


def selection_cases(group: str) -> list[Json]:
    """Parts of a policy's spec that select a CRD of the group with `LABELS`, or do not."""
    first, _, rest = group.partition(".")
    globs = [
        ["*"],
        [group],
        [f"other.{group}"],
        ["none.example.org", f"*.{rest}"],
        [f"?{group[1:]}"],
        [f"??{group[1:]}"],
        [f"[{group[0]}]{group[1:]}"],
        [f"[!{group[0]}]{group[1:]}"],
        [group.replace(".", "x")],
        [group.upper()],
        ["("],
        ["[", "[!z-a]*", "[]"],
        ["[", "[!z-a]*", "*"],
        [f"{group[0]}[*?a-z0-9.-]*"],
        ["[*?]*"],
        [*LONG, group],
        LONG,
        [f"{group}|other"],
        ["(", group],
        [first],
    ]
    cases: list[Json] = [{"groups": each} for each in globs]
    return cases + [{"groups": [group], "selector": each} for each in SELECTORS]


async def protect(admin: Admin, name: str, *, deletion: str = "Deny", **spec: Any) -> DefinitionPolicy:
    """A policy that only protects; one of that name is replaced."""
    body = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "DefinitionPolicy",
        "metadata": {"name": name},
        "spec": {"storageMigration": {"mode": "Disabled"}, "protection": {"deletion": deletion}, **spec},
    }
    with suppress(ApiError):
        await admin.delete(f"{POLICIES}/{name}")
    return DefinitionPolicy.model_validate(await admin.create(POLICIES, body))


async def refusal(admin: Admin, name: str) -> str:
    """What the API server says to the deletion of a CRD; empty if it would accept it."""
    return await refusal_of(admin.client.request("DELETE", f"{CRDS}/{name}?dryRun=All"))


async def refusal_of(attempt: Awaitable[Any]) -> str:
    """What the API server says to a request that it refuses; empty if it accepts it."""
    try:
        await attempt
    except ApiError as error:
        return error.message
    return ""


async def refused_in_time(
    attempt: Callable[[], Awaitable[str]],
    restore: Callable[[], Awaitable[Any]] | None = None,
    *,
    late: float = LATE_SECONDS,
) -> str:
    """The refusal by the webhook, which must not let the attempt pass, but may be late.

    An attempt that passed after `late` seconds says nothing of it, and is repeated once `restore` has undone
    it. One that passed sooner fails the test.
    """
    said = ""

    async def look() -> bool:
        nonlocal said
        began = time.monotonic()
        said = await attempt()
        if not said:
            seconds = time.monotonic() - began
            assert seconds > late, f"it passes after {seconds:.2f} s"
            if restore is not None:
                await restore()
        return bool(said)

    await eventually(look, otherwise=lambda: "each answer of the webhook came late")
    return said


async def refused(admin: Admin, name: str, *, wanted: bool = True, by: str = "") -> str:
    """The refusal, as soon as the API server knows of the policy; the one that begins with `by`."""
    last = ""

    async def look() -> bool:
        nonlocal last
        last = await refusal(admin, name)
        return bool(last) is wanted and last.startswith(by)

    await eventually(look, otherwise=lambda: f"refused: {last!r}")
    return last


async def apply_labelled(admin: Admin, group: str) -> CustomKind:
    kind = CustomKind(group, labels=LABELS)
    await admin.apply_definition(kind)
    return kind


async def try_selections(admin: Admin, group: str, *, by: str = "") -> CustomKind:
    """Policies protect a CRD in just the cases in which they select it; refusals begin with `by`."""
    kind = await apply_labelled(admin, group)
    crd = await admin.definition(kind)
    for case in selection_cases(group):
        body = {"metadata": {"name": group}, "spec": {"protection": DENY, **case}}
        wanted = selects(DefinitionPolicy.model_validate(body), definition_facts(crd))
        # From the opposite: only so does a deletion that passes say anything.
        await protect(admin, group, groups=[group], deletion="Allow" if wanted else "Deny")
        await refused(admin, kind.name, wanted=not wanted)
        await protect(admin, group, **case)
        await refused(admin, kind.name, wanted=wanted, by=by if wanted else "")
    await admin.delete(f"{POLICIES}/{group}")
    return kind


async def annotate(admin: Admin, kind: CustomKind, reason: str) -> None:
    body = {"metadata": {"annotations": {ALLOW: reason}}}
    await admin.client.request("PATCH", f"{CRDS}/{kind.name}", body, content_type=MERGE_PATCH)


async def serve(admin: Admin, kind: CustomKind, *versions: str) -> None:
    """Serve only these versions."""
    crd = await admin.definition(kind)
    changed = [{**each, "served": each["name"] in versions} for each in crd["spec"]["versions"]]
    body = {"spec": {"versions": changed}}
    await admin.client.request("PATCH", f"{CRDS}/{kind.name}", body, content_type=MERGE_PATCH)


def why_unready(status: Json) -> str:
    """The reason of Ready, if it is False."""
    return "".join(each["reason"] for each in _unready(status))


def said_of_unready(status: Json) -> str:
    """The message of Ready, if it is False."""
    return "".join(each["message"] for each in _unready(status))


def _unready(status: Json) -> list[Json]:
    conditions: list[Json] = status.get("conditions") or []
    return [each for each in conditions if (each["type"], each["status"]) == ("Ready", "False")]


async def policy_where(admin: Admin, name: str, holds: Callable[[Json], bool]) -> Json:
    """The status of the policy, as soon as that is true for it."""
    status: Json = {}

    async def look() -> bool:
        nonlocal status
        status = (await admin.get(f"{POLICIES}/{name}")).get("status") or {}
        return holds(status)

    await eventually(look, otherwise=lambda: f"its status is {status}")
    return status


async def keeps_its_last_version(admin: Admin, kind: CustomKind, group: str, *, by: str = "") -> None:
    """Checks it of a CRD that the policy of the group's name protects, by answers that begin with `by`."""
    # Only the webhook may be late.
    late, part = (LATE_SECONDS, PART_SECONDS) if by else (math.inf, math.inf)
    await refused(admin, kind.name, by=by)
    await serve(admin, kind, "v2")
    said = await refused_in_time(
        lambda: refusal_of(serve(admin, kind)), lambda: serve(admin, kind, "v2"), late=part
    )
    assert re.search(f"{by}.*none of its objects could be read, as no version would be served", said)
    # Other changes of it are nobody's business.
    await serve(admin, kind, "v1", "v2")
    await serve(admin, kind, "v1")
    await annotate(admin, kind, "retired")
    await serve(admin, kind)
    # Nothing is served any more: there is nothing to protect but its objects.
    await annotate(admin, kind, "")
    assert await refused_in_time(lambda: refusal(admin, kind.name), late=late)
    await admin.delete(f"{POLICIES}/{group}")
    await refused(admin, kind.name, wanted=False)
