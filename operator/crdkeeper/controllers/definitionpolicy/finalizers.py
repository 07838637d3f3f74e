"""Releases the finalizers that DefinitionPolicies name, CRD by CRD: look, publish what is due, release it.

No watch shows objects in deletion, and one over all objects would need memory for each. So the metadata of
the governed CRDs' objects is listed again and again, by all together at a limited rate.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

from crdkeeper.api.definitionpolicy import DefinitionPolicy, DefinitionPolicyStatus
from crdkeeper.api.finalizerrelease import FinalizerRule
from crdkeeper.api.meta import API_VERSION, OPERATOR, Condition, find_condition, set_condition
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.probes.census import Pacer
from crdkeeper.cluster.resources.finalizers import Freeing
from crdkeeper.cluster.resources.kinds import list_policies
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.finalizers.standing import CONDITION, FinalizersStanding, finalizers_standing
from crdkeeper.core.finalizers.tally import DueFinding, HeldLook, read_rules
from crdkeeper.core.policy.governance import Governance
from crdkeeper.core.policy.selection import governing
from crdkeeper.operations.finalizers.looking import look_for_held
from crdkeeper.operations.finalizers.memory import Memory
from crdkeeper.operations.finalizers.releasing import MOST_FAILED, PER_SECOND, release

_log = logging.getLogger(__name__)
_AGAIN: Final = 1.0
"""Seconds until the next look if this one led to a release."""
_UNSEEN_SECONDS: Final = 5.0
"""Until the next look if this one shows too little: not all CRDs of the policy, or not all objects."""
_SECONDS: Final = 60.0
"""Until the next look if nothing is due before."""
_SECONDS_PER_DEFINITION: Final = 0.5
"""Or longer, if a policy governs many CRDs."""
_CONFIRMED: Final = 20
"""Releases before the policies are read again: what is released cannot be taken back."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """What the finalizers of a CRD's objects depend on, besides the objects: if it changes, look again."""

    policy: str
    policy_uid: str | None
    rules: tuple[tuple[str, str, str | None, str], ...]
    uid: str
    version: str
    terminating: bool


class FinalizerReleases:
    """The looks at all governed CRDs, and what follows from them."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        metrics: OperatorMetrics,
        governance: Governance,
        *,
        identity: str,
        publish: Callable[[str], Awaitable[Mapping[str, HeldLook]]],
    ) -> None:
        """`publish` writes the status of the policy of that name, and returns the looks that it tells of."""
        self._client = client
        self._state = state
        self._metrics = metrics
        self._governance = governance
        self._identity = identity
        self._publish = publish
        self._subjects: dict[str, _Subject] = {}
        self._looks: dict[str, HeldLook] = {}
        self._unshown: set[str] = set()
        """CRDs whose look no status has shown yet."""
        self._memory = Memory(monotonic)
        self._looking = Pacer()
        self._releasing = Pacer(PER_SECOND)
        self.queue = WorkQueue(self._reconcile, workers=2)

    def consider(self, names: Iterable[str]) -> None:
        """These CRDs have changed, or the policies that govern them."""
        for each in names:
            self._consider(each)

    def _consider(self, name: str) -> None:
        policy = self._governance.of(name)
        subject = _subject(() if policy is None else (policy,), self._state.definitions.get(name))
        if subject == self._subjects.get(name):
            return
        self._looks.pop(name, None)
        self._unshown.discard(name)
        if subject is None:
            del self._subjects[name]
        else:
            self._subjects[name] = subject
            self.queue.add(name)

    async def _reconcile(self, name: str) -> None:
        subject, definition = self._subjects.get(name), self._state.definitions.get(name)
        if subject is None or definition is None:
            return
        rules, _ = read_rules(_rules(subject))
        if rules:
            look = await look_for_held(self._client, definition, rules, self._memory, self._looking.turn)
        else:
            look = HeldLook(definition.name, definition.group, definition.plural, (), ())
        if self._subjects.get(name) != subject:
            return
        former, self._looks[name] = self._looks.get(name), look
        if look != former:
            self._unshown.add(name)
        if name in self._unshown and not self._unseen(subject.policy):
            shown = await self._publish(subject.policy)
            # Another worker may have looked again by now, and status does not show that.
            self._unshown -= {each for each, was in shown.items() if self._looks.get(each) == was}
        if self._unseen(subject.policy) or name in self._unshown:
            # Status shows figures of all CRDs or none, and nothing is released before it has shown it.
            self.queue.add_within(name, _UNSEEN_SECONDS if look.due else self._interval(look))
            return
        released = await self._release(name, subject, definition, look)
        if self._subjects.get(name) == subject:
            self.queue.add_within(name, _AGAIN if released else self._interval(look))

    async def _release(
        self, name: str, subject: _Subject, definition: DefinitionFacts, look: HeldLook
    ) -> int:
        """Release what is due, as long as the policy still says so; returns how many were."""
        released = failed = 0
        wanted = look.due if "patch" not in look.missing else ()
        for at, each in enumerate(wanted):
            await self._releasing.turn()
            # At the start not all policies may be known yet, and a watch may be late.
            if at % _CONFIRMED == 0 and subject != _subject(
                await list_policies(self._client) or (), definition
            ):
                _log.info("%s: nothing is released: its policy is another one by now", name)
                break
            if self._subjects.get(name) != subject:
                break
            what = f"finalizer {each.rule.name} of {definition.name} {each.object}"
            try:
                freed = await release(
                    self._client,
                    definition,
                    each.object,
                    each.rule.name,
                    on_behalf=f"DefinitionPolicy {subject.policy}",
                    otherwise={
                        "apiVersion": API_VERSION,
                        "kind": DefinitionPolicy.model_fields["kind"].default,
                        "name": subject.policy,
                        "uid": subject.policy_uid,
                    },
                    by=OPERATOR,
                    instance=self._identity,
                )
            except (ApiError, Unreachable) as error:
                if isinstance(error, ApiError) and error.code < 500:
                    raise
                # Slow webhooks look like this, too, and must not keep the other objects.
                self._memory.keep(each.object, each.rule, DueFinding.REFUSED)
                failed += 1
                if failed == MOST_FAILED:
                    raise
                _log.warning("The %s was not released: %s", what, error)
                continue
            failed = 0
            match freed.freeing:
                case Freeing.RELEASED:
                    released += 1
                    self._memory.wrote(each.object, freed.resource_version)
                    self._metrics.finalizers.labels(definition.name, each.rule.name).inc()
                    _log.info("DefinitionPolicy %s: released the %s", subject.policy, what)
                case Freeing.REFUSED:
                    self._memory.keep(each.object, each.rule, DueFinding.REFUSED)
                    _log.warning("The %s was not released: %s", what, freed.message)
                case Freeing.FORBIDDEN:
                    _log.warning("The %s was not released: %s", what, freed.message)
                    break
                case Freeing.GONE:
                    self._memory.forget(each.object)
                case Freeing.CHANGED:
                    pass
        return released

    def _interval(self, look: HeldLook) -> float:
        """Seconds until the next look, if nothing was released."""
        most = max(_SECONDS, len(self._subjects) * _SECONDS_PER_DEFINITION)
        if look.passing or look.unasked:
            return _UNSEEN_SECONDS
        next_ = min((each.next for each in look.counts if each.next), default=None)
        if next_ is None:
            return most
        return min(most, max(_AGAIN, (next_ - self._client.now()).total_seconds()))

    def write(self, policy: DefinitionPolicy, status: DefinitionPolicyStatus) -> Condition | None:
        """Put what is known into a status. Returns its condition; None if the policy names no finalizer."""
        rules = policy.spec.finalizers
        if not rules:
            status.finalizers = []
            status.conditions[:] = [each for each in status.conditions if each.type != CONDITION]
            return None
        standing = self._standing(policy, rules)
        known = find_condition(status.conditions, CONDITION)
        generation = policy.metadata.generation
        looking = standing.status == "Unknown" and self._unseen(policy.metadata.name)
        if looking and known is not None and known.observed_generation == generation:
            return known  # as before this process began
        status.finalizers = standing.rules
        set_condition(
            status.conditions,
            CONDITION,
            standing.status,
            standing.reason,
            standing.message,
            generation=generation,
            now=self._client.now(),
        )
        return find_condition(status.conditions, CONDITION)

    def told(self, policy: str) -> dict[str, HeldLook]:
        """The looks that a status made now tells of: those at all CRDs of the policy, or none."""
        if self._unseen(policy):
            return {}
        return {name: self._looks[name] for name in self._governed(policy)}

    def _standing(self, policy: DefinitionPolicy, rules: Sequence[FinalizerRule]) -> FinalizersStanding:
        _, problems = read_rules(rules)
        if self._unseen(policy.metadata.name) and not problems:
            message = "Not all CRDs of the policy were looked at."
            return FinalizersStanding("Unknown", "LookingForFinalizers", message, [])
        governed = self._governed(policy.metadata.name)
        looks = [self._looks[name] for name in governed if name in self._looks]
        return finalizers_standing(rules, looks, problems)

    def _governed(self, policy: str) -> list[str]:
        return [name for name, each in self._subjects.items() if each.policy == policy]

    def _unseen(self, policy: str) -> bool:
        return any(name not in self._looks for name in self._governed(policy))


def _rules(subject: _Subject) -> list[FinalizerRule]:
    return [
        FinalizerRule.model_validate({"name": name, "releaseAfter": after, "when": when, "mode": mode})
        for name, after, when, mode in subject.rules
    ]


def _subject(policies: Iterable[DefinitionPolicy], definition: DefinitionFacts | None) -> _Subject | None:
    if definition is None or not definition.established or definition.endpoint_version is None:
        return None
    policy = governing(policies, definition)
    if policy is None or not policy.spec.finalizers:
        return None
    return _Subject(
        policy.metadata.name,
        policy.metadata.uid,
        tuple((each.name, each.release_after, each.when, each.mode) for each in policy.spec.finalizers),
        definition.uid,
        definition.endpoint_version,
        definition.terminating,
    )
