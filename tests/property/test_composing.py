"""Random graphs, changes, refusals and kills: the order follows the references, and nothing is forgotten."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.ownership import resource_of
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.property.composites import ITEMS, NAMES, Graph, Shape, World, objects_of
from tests.unit.core.composites.scenes import Killed

NO: frozenset[str] = frozenset()
ALONE = [frozenset({each}) for each in ("each", "when", "ready", "orphan", "recreate", "external")]
TRAITS = [
    NO,
    *ALONE,
    *(a | b for i, a in enumerate(ALONE) for b in ALONE[i + 1 :] if not a | b >= {"orphan", "recreate"}),
]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Some resources, each with those that it refers to."""
    order = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
    return {name: draw(shapes(order[:at])) for at, name in enumerate(order)}


@st.composite
def shapes(draw: st.DrawFn, before: list[str]) -> Shape:
    """A resource that may refer to those before it."""
    traits = draw(st.sampled_from(TRAITS))
    if "external" in traits:
        return Shape(NO, **dict.fromkeys(traits - {"orphan", "recreate"}, True))
    needs = draw(st.frozensets(st.sampled_from(before), max_size=3)) if before else NO
    return Shape(needs, **dict.fromkeys(traits, True))


SERVERS = "example.com", "Server"
SELDOM = st.sampled_from((False, False, False, True))
SOME = st.frozensets(st.sampled_from(NAMES), max_size=2)
LEFT = st.none() | st.integers(0, 8)
"""After how many requests the composer dies, if it does."""
STEP = st.fixed_dictionaries(
    {
        "graph": graphs(),
        "text": st.sampled_from("xyz"),
        "items": st.frozensets(st.sampled_from(ITEMS), max_size=2),
        "enabled": st.booleans(),
        "there": st.booleans(),
        "unready": SOME,
        "refused": SOME,
        "unanswered": SOME,
        "unreadable": SELDOM,
        "unread": SELDOM,
        "immutable": st.booleans(),
        "left": LEFT,
        "lost": st.booleans(),
    }
)


def run_until_killed(world: World, left: int | None) -> bool:
    """Whether the composer has died before it was done."""
    world.left = left
    try:
        world.run()
    except Killed:
        return True
    finally:
        world.left = None
    return False


def meet_faults(world: World, step: Any) -> None:
    """Let requests of the next pass fail, before or after they are carried out."""
    failed = Verdict(reasons.FAILED, "no answer")
    world.refused = {each: Verdict(reasons.REFUSED, "no") for each in objects_of(step["refused"])}
    world.unanswered = objects_of(step["unanswered"])
    world.unreadable = {SERVERS: failed} if step["unreadable"] else {}
    world.unread = dict.fromkeys(world.external, failed) if step["unread"] else {}
    world.immutable = step["immutable"]


def no_faults(world: World) -> None:
    """Let all requests succeed."""
    world.refused, world.unanswered, world.immutable = {}, set(), False
    world.unreadable, world.unread = {}, {}


@given(st.lists(STEP, min_size=1, max_size=4), LEFT, SOME)
def test_the_order_follows_the_references_and_nothing_is_forgotten(
    steps: list[Any], kill: int | None, unanswered: frozenset[str]
) -> None:
    world, lost = World(), set[str]()
    for step in steps:
        world.change(step["graph"], step["text"], step["items"], enabled=step["enabled"])
        world.others(there=step["there"], unready=step["unready"])
        meet_faults(world, step)
        known, world.done = world.listed(), []
        killed = run_until_killed(world, step["left"])
        if world.unreadable:
            assert (world.done, known - world.listed()) == ([], set()), "done without knowing"
        elif killed:
            # What exists is in the inventory, whenever that happens, unless somebody has emptied it since.
            assert not world.value.get("status") or world.own_names() - lost <= world.listed()
        if step["lost"]:
            world.value["status"] = {}
            lost = world.own_names()

    world.others(there=True, unready=NO)
    no_faults(world)
    world.run()
    for each in world.unproved():
        del world.objects[each]
    world.run()
    assert world.own_names() == world.all_wanted() == world.listed()
    assert world.condition("Ready")[0] == "Available"
    before, world.done = dict(world.value["status"]), []
    world.run()
    assert (world.done, world.value["status"]) == ([], before)

    stay = {
        identity
        for identity, live in world.objects.items()
        if identity not in world.own() or world.graph[resource_of(live)].orphan
    }
    world.value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.unanswered = objects_of(unanswered)
    run_until_killed(world, kill)
    world.unanswered = set()
    world.run()
    assert not world.own()
    assert set(world.objects) == stay
