"""One look at the objects of a CRD: what named finalizers hold up, and which of it is due."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.probes.census import Walk
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import ApiError, Client, find
from crdkeeper.core.diagnosis.probes import ProbeTrouble
from crdkeeper.core.finalizers.holding import Held
from crdkeeper.core.finalizers.tally import DueFinding, DueObject, HeldLook, NamedFinalizer, ReleaseTally
from crdkeeper.operations.finalizers.memory import Memory

MOST_ASKED: Final = 200
"""Objects that one look reads for a condition, so that the looks at other CRDs have their turn."""
Turn = Callable[[], Awaitable[None]]
"""Returns when the next request may be sent."""


async def look_for_held(
    client: Client,
    definition: DefinitionFacts,
    rules: Sequence[NamedFinalizer],
    memory: Memory,
    turn: Turn,
) -> HeldLook:
    """Read the metadata of all objects, and those that are due and have a condition as a whole.

    Raises Unreachable; and ApiError if our rights cannot be reviewed. Refusals are part of the result.
    """
    now = client.now()

    def compare(found: Held) -> Held:
        return memory.compare(found, client.now())

    walk = Walk(definition, lambda: ReleaseTally(rules, now, memory.recall, compare))
    readable, asked, unasked, last = True, 0, 0, memory.asked_until.pop(definition.name, "")
    begins_after = last
    while True:
        await turn()
        over = await walk.step(client)
        questions, walk.tally.questions = walk.tally.questions, []
        for each in questions:
            finding = None
            if readable and (asked == MOST_ASKED or str(each.object) <= begins_after):
                unasked += 1
                continue
            if readable:
                asked, last = asked + 1, str(each.object)
                try:
                    finding = await _ask(client, definition, each, turn)
                except ApiError as error:
                    # What fails for one object, as conversion can, must not keep the others.
                    readable = error.code != 403
            if finding is not None:
                memory.keep(each.object, each.rule, finding)
            walk.tally.answer(each, finding or DueFinding.UNMET)
        if over:
            break
    if asked == MOST_ASKED:
        # The next look goes on after it, so that each has its turn, however many there are to remember.
        memory.asked_until[definition.name] = last
    tally, missing = walk.tally, list[str]()
    if walk.failure is not None and walk.failure.trouble is ProbeTrouble.FORBIDDEN:
        missing.append("list")
    if missing or any(each.held for each in tally.counts):
        missing += await _missing(client, definition, rules)
    return HeldLook(
        definition.name,
        definition.group,
        definition.plural,
        tally.counts,
        tally.due,
        walk.failure,
        tuple(missing),
        unasked,
    )


async def _ask(client: Client, definition: DefinitionFacts, one: DueObject, turn: Turn) -> DueFinding | None:
    """Whether an object meets the condition of a rule; None if it is gone or has changed."""
    from crdkeeper.core.finalizers.when import compile_when  # The engine is large.

    await turn()
    assert definition.endpoint_version is not None
    endpoint = Endpoint(definition.group, definition.endpoint_version, definition.plural)
    body = await find(client, endpoint.path(one.object.namespace, one.object.name))
    if body is None or not _is_same(body, one.object):
        return None
    return DueFinding.MET if compile_when(one.rule.when)(body) else DueFinding.UNMET


def _is_same(body: Mapping[str, Any], object_: Held) -> bool:
    metadata = body["metadata"]
    return (metadata["uid"], metadata["resourceVersion"]) == (object_.uid, object_.resource_version)


async def _missing(client: Client, definition: DefinitionFacts, rules: Sequence[NamedFinalizer]) -> list[str]:
    """The verbs that our account lacks to follow these rules, besides list."""
    needed = ["get"] * any(each.when for each in rules) + ["patch"] * any(each.automatic for each in rules)
    rights = [Right(each, definition.group, definition.plural) for each in needed]
    return [each.verb for each in await missing_rights(client, rights)]
