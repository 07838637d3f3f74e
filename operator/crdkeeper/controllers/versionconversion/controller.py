"""VersionConversions: from rules to a conversion that serves, step by step, each only after the one before.

Compile the rules, check the permission, verify on generated and on all live objects, hand the rules to the
webhook, check that it converts by them, point the CRD to it, and read through it. Rules that fail a step
change nothing: those that serve keep serving, even if the VersionConversion is deleted.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crdkeeper.api.meta import READY, find_condition
from crdkeeper.api.versionconversion import (
    SHOWN,
    ConversionVerification,
    RuleProblem,
    VersionConversionStatus,
    WebhookClientConfig,
)
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition, schemas_of
from crdkeeper.cluster.probes.looking import first_object, has_objects
from crdkeeper.cluster.resources.definitions import get_definition, get_definition_object
from crdkeeper.cluster.resources.events import send_event
from crdkeeper.cluster.resources.kinds import apply_status
from crdkeeper.cluster.resources.versionconversions import (
    FIELD_MANAGER,
    FINALIZER,
    drop_finalizer,
    keep_bundle,
    read_conversion,
    set_conversion,
)
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.versionconversion import leftovers
from crdkeeper.controllers.versionconversion.growingwaits import SETTLED, SOON, WAITING, GrowingWaits
from crdkeeper.controllers.versionconversion.leftovers import Leftovers
from crdkeeper.controllers.versionconversion.parsing import parse
from crdkeeper.controllers.versionconversion.permission import permitted
from crdkeeper.controllers.versionconversion.reading import read_through
from crdkeeper.controllers.versionconversion.serving import WebhookService
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.conversion.bundle import BadBundle, digest, packed
from crdkeeper.core.conversion.losses import losses
from crdkeeper.core.conversion.retirement import use
from crdkeeper.core.conversion.standing import (
    COMPILED,
    CONFIGURED,
    CONVERTING,
    IN_USE,
    PERMITTED,
    SERVING,
    VERIFIED,
    StatusDraft,
    StepResult,
)
from crdkeeper.core.conversion.target import ConversionOwner, WebhookAddress, holder, trusts
from crdkeeper.core.conversion.verification import Trial, compile_trial
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble, not_permitted
from crdkeeper.operations.verification import try_generated, try_live

_log = logging.getLogger(__name__)

_GRANTED = 5.0
"""The pause for an opt-in applied together with the rules: roles are aggregated asynchronously."""
_EARLY = 0.01
"""Timers are not exact."""
_MANY = 10_000
"""From this many objects on, a failed verification is repeated less often."""


@dataclass(frozen=True, slots=True)
class _Failed:
    """Rules that failed verification, and when to try them again although nothing has changed."""

    tried: tuple[Any, ...]
    due: float


class VersionConversions:
    """Reconciles all VersionConversions."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        metrics: OperatorMetrics,
        *,
        identity: str,
        namespace: str,
        address: WebhookAddress,
        certificate: Callable[[], tuple[str | None, str]],
    ) -> None:
        """`certificate` returns the PEM bundle by which to trust the webhook, and its problem, if any."""
        self._client = client
        self._state = state
        self._metrics = metrics
        self._counted: dict[str, tuple[str, str]] = {}
        """The status and reason of Ready, by name."""
        self._failed: dict[str, _Failed] = {}
        """Failed trials by name. A status update returns as an event, which must not cause another trial."""
        self._waits = GrowingWaits()
        self._identity = identity
        self._namespace = namespace
        self._address = address
        self._certificate = certificate
        self._leftovers = Leftovers(
            client, namespace, address, identity=identity, bundle=lambda: certificate()[0]
        )
        self.on_trust: Callable[[], None] = lambda: None
        """Called when a CRD that our webhook converts, or its rules, came or went: `trusted` may differ."""
        self.queue = WorkQueue(self._reconcile)
        state.listen(self._saw)

    def trusted(self, bundle: str) -> bool:
        """Whether everything that leads API servers to our webhook has this bundle.

        But for CRDs that nobody keeps, such as copies from another cluster: their bundle stays as it is.
        """
        encoded = bundle.strip().encode()
        if self._state.trust.configured not in (None, bundle):
            return False
        # Unknown until the CRDs have been listed: at least ours exist.
        return bool(self._state.seen) and all(
            seen.webhook.ca_bundle.strip() == encoded
            for name, seen in self._state.seen.items()
            if seen.webhook is not None
            and self._address.serves(seen.webhook)
            and (name in self._state.conversions or FIELD_MANAGER in seen.appliers)
        )

    def renew(self) -> None:
        """The certificates have changed."""
        for name in self._state.conversions:
            self.queue.add(name)
        for name in self._state.seen:
            if self._state.is_converted(name, self._address):
                self.queue.add(name)

    def _saw(self, kind: str, name: str) -> None:
        if kind == "definitions":
            ours = self._state.is_converted(name, self._address)
            if ours or name in self._state.conversions or name in self._leftovers:
                self.queue.add(name)
            if ours or name not in self._state.seen:
                self.on_trust()
        elif kind == "conversions":
            self.queue.add(name)
            if self._state.is_converted(name, self._address):
                self.on_trust()

    async def _reconcile(self, name: str) -> None:
        found = await read_conversion(self._client, name)
        if found is None:
            self._failed.pop(name, None)
            self._waits.forget(name)
            wait = await self._leftovers.look_after(name, asyncio.get_running_loop().time())
            needed = self._leftovers.is_needed(name)
            self._count(name, ("False", leftovers.REASON) if needed else None)
        else:
            self._leftovers.forget(name)
            wait = await self._follow(found)
        if wait is not None:
            self.queue.add_within(name, wait)

    async def _follow(self, found: Mapping[str, Any]) -> float | None:
        owner, problems = parse(found)
        if FINALIZER in owner.metadata.finalizers:
            await keep_bundle(self._client, self._namespace, owner.metadata.name)
            await drop_finalizer(self._client, owner.metadata)
        if found["metadata"].get("deletionTimestamp"):
            return None
        standing = StatusDraft(owner, self._client.now())
        before = owner.status.model_copy(deep=True)
        if self._may_be_going(owner.metadata.name):
            # Whoever deletes the CRD may delete its rules right after it, and must not wait for their steps.
            await self._put_use(standing)
            if owner.status != before:
                await apply_status(self._client, owner)
        wait = await self._advance(standing, problems, before)
        await self._put_use(standing)
        if owner.status != before:
            await apply_status(self._client, owner)
            await self._announce(standing)
        ready = find_condition(owner.status.conditions, READY)
        self._count(owner.metadata.name, None if ready is None else (ready.status, ready.reason))
        return wait

    def _count(self, name: str, reported: tuple[str, str] | None) -> None:
        before = self._counted.pop(name, None)
        if before is not None:
            self._metrics.conversions.labels(*before).dec()
        if reported is not None:
            self._counted[name] = reported
            self._metrics.conversions.labels(*reported).inc()

    # The steps

    async def _advance(
        self, standing: StatusDraft, problems: Sequence[RuleProblem], before: VersionConversionStatus
    ) -> float | None:
        """Take steps until one cannot be taken yet. Returns the seconds after which to try again."""
        owner = standing.owner
        crd = await get_definition_object(self._client, owner.metadata.name)
        owner.status.definition_generation = 0 if crd is None else crd["metadata"]["generation"]
        compiled = None if problems else await asyncio.to_thread(self._compile, standing, crd)
        if problems:
            owner.status.problems = list(problems)
            standing.put(COMPILED, _invalid(problems))
        if crd is None or compiled is None:
            standing.conclude()
            return WAITING
        trial, schemas, content = compiled
        if not standing.put(PERMITTED, await permitted(self._client, owner)):
            standing.conclude()
            return _GRANTED
        if not await self._verified(standing, crd, trial, schemas, digest(content), before):
            standing.conclude()
            return self._failed[owner.metadata.name].due - asyncio.get_running_loop().time()
        if owner.spec.mode == "Plan":
            standing.conclude(
                StepResult(
                    "True", "PlanOnly", "The rules are verified. Nothing was changed, because mode is Plan."
                )
            )
            return None
        bundle, problem = self._certificate()
        if bundle is None:
            step = StepResult(
                "False", "NoCertificate", problem or "The webhook's certificate is being issued."
            )
            standing.put(SERVING, step)
        else:
            webhook = WebhookService(self._client, self._namespace, self._address, bundle)
            served = await webhook.serve(owner, trial, schemas, content)
            if standing.put(SERVING, served) and standing.put(
                CONFIGURED, await webhook.configure(owner, crd)
            ):
                standing.put(CONVERTING, await self._converting(standing, trial))
        standing.conclude()
        return self._waits.after(owner, bundle, asyncio.get_running_loop().time())

    def _compile(
        self, standing: StatusDraft, crd: Mapping[str, Any] | None
    ) -> tuple[Trial, Mapping[str, Any], bytes] | None:
        owner = standing.owner
        status, spec = owner.status, owner.spec
        status.versions = f"{spec.hub} <- {', '.join(each.version for each in spec.spokes)}"
        status.problems = []
        status.losses = losses(spec)[:SHOWN]
        if crd is None:
            step = StepResult(
                "False", "DefinitionNotFound", f"There is no CustomResourceDefinition {spec.resource}."
            )
            standing.put(COMPILED, step)
            return None
        try:
            schemas = schemas_of(crd)
            trial = compile_trial(spec, schemas)
            if isinstance(trial, Trial):
                content = packed(spec, schemas)
                carried = f"The rules cover every field of {', '.join(schemas)}."
                standing.put(COMPILED, StepResult("True", "Compiled", carried))
                return trial, schemas, content
        except (UnreadableDefinition, BadBundle) as error:
            standing.put(COMPILED, StepResult("False", "DefinitionUnusable", f"{error}."))
            return None
        problems = [RuleProblem(path=each.where, message=each.message) for each in trial]
        status.problems = problems[:SHOWN]
        standing.put(COMPILED, _invalid(problems))
        return None

    async def _verified(
        self,
        standing: StatusDraft,
        crd: Mapping[str, Any],
        trial: Trial,
        schemas: Mapping[str, Any],
        wanted: str,
        before: VersionConversionStatus,
    ) -> bool:
        owner, definition = standing.owner, definition_facts(crd)
        known = find_condition(owner.status.conditions, VERIFIED)
        # The webhook itself checks later objects, as they are written at any version.
        if owner.status.verification.digest == wanted and known is not None and known.status == "True":
            return True
        name, clock = owner.metadata.name, asyncio.get_running_loop().time
        tried = wanted, owner.metadata.generation, definition.stored_versions, definition.served_versions
        failed = self._failed.get(name)
        if failed is None or failed.tried != tried:
            standing.put(
                VERIFIED, StepResult("Unknown", "Verifying", "The rules are being tried on every object.")
            )
            standing.conclude()
            if owner.status != before:
                await apply_status(self._client, owner)
        elif clock() < failed.due - _EARLY:
            return False
        found = ConversionVerification(digest=wanted)
        owner.status.verification = found
        generation = owner.metadata.generation

        def current() -> bool:
            return self._state.conversions.get(owner.metadata.name, generation) == generation

        lossy = await asyncio.to_thread(try_generated, owner.spec, trial, schemas, found)
        step = lossy or await try_live(self._client, definition, trial, found, current)
        if step.done:
            self._failed.pop(name, None)
        else:
            self._failed[name] = _Failed(tried, clock() + _pause(step, found))
        return standing.put(VERIFIED, step)

    async def _converting(self, standing: StatusDraft, trial: Trial) -> StepResult:
        definition = await get_definition(self._client, standing.owner.metadata.name)
        if definition is None:
            return StepResult("Unknown", "Changing", "The CRD was deleted.")
        if not definition.served_versions:
            return StepResult("True", "NothingServed", "No version of the CRD is served.")
        found = await first_object(self._client, definition)
        if found is None:
            return StepResult("True", "NothingToRead", "There is no object to read.")
        if isinstance(found, Failure):
            return _unread(definition, found)
        return await read_through(self._client, definition, found, trial.conversion)

    # Once rules serve, whether or not their successors succeed

    def _may_be_going(self, name: str) -> bool:
        seen = self._state.definitions.get(name)
        return seen is None or seen.terminating

    async def _put_use(self, standing: StatusDraft) -> None:
        """Report by whom and whether it is used; have the CRD trust the webhook's current certificates."""
        name, status = standing.owner.metadata.name, standing.owner.status
        if status.served_generation:
            # Told by whoever serves, not by the CRD, which may name any webhook.
            status.client_config = WebhookClientConfig.model_validate(self._address.client_config(name))
        crd = await get_definition_object(self._client, name)
        held = ConversionOwner.NOBODY if crd is None else holder(crd, self._address)
        definition = None if crd is None else definition_facts(crd)
        objects = None
        if crd is not None and definition is not None and held is ConversionOwner.OURS:
            objects = None if definition.terminating else await has_objects(self._client, definition)
            await self._renew_trust(crd)
        standing.put(IN_USE, use(definition, held, objects))

    async def _renew_trust(self, crd: Mapping[str, Any]) -> None:
        bundle, _ = self._certificate()
        if bundle is None or trusts(crd, bundle):
            return
        try:
            await set_conversion(self._client, crd, self._address, bundle, replace=False)
        except ApiError as error:
            if error.code not in (403, 409, 422):
                raise
            _log.warning("The new certificates cannot be set on %s: %s", crd["metadata"]["name"], error)

    async def _announce(self, standing: StatusDraft) -> None:
        name = standing.owner.metadata.name
        for condition, step in standing.changed:
            _log.info(
                "VersionConversion %s: %s=%s %s: %s", name, condition, step.status, step.reason, step.message
            )
        last = dict(standing.changed).get(READY)
        if last is not None and last.status != "Unknown":
            await send_event(
                self._client,
                standing.owner,
                "Normal" if last.done else "Warning",
                last.reason,
                last.message,
                instance=self._identity,
            )


def _invalid(problems: Sequence[RuleProblem]) -> StepResult:
    more = f" (and {len(problems) - 1} more, see status.problems)" if len(problems) > 1 else ""
    first = problems[0]
    return StepResult("False", "InvalidRules", f"{first.path}: {first.message}{more}.")


def _pause(step: StepResult, found: ConversionVerification) -> float:
    """Seconds until failed rules are tried again: nothing signals that objects were fixed."""
    match step.reason:
        case "Verifying":
            return SOON
        case "NotPermitted":
            return _GRANTED
    return WAITING if found.objects < _MANY else 10 * SETTLED


def _unread(definition: DefinitionFacts, failure: Failure) -> StepResult:
    if failure.trouble is ProbeTrouble.FORBIDDEN:
        return StepResult("False", "NotPermitted", not_permitted(definition, failure))
    return StepResult("False", "ReadFailed", f"Objects cannot be read: {failure.message}")
