"""Shards that claim, beat, stall, die and wake in any order, over a store with the API server's rules."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.api.storagemigration import MigrationPart
from crdkeeper.core.migration.sharding import (
    BEAT_SECONDS,
    DEAD_SECONDS,
    Liveness,
    Shard,
    begun,
    next_part,
    part_of,
    summed,
)

WORK = "0.0.7"
names = st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1, max_size=40)


@given(st.sets(st.tuples(names, names), max_size=40), st.integers(1, 64))
def test_each_object_is_in_exactly_one_part(objects: set[tuple[str, str]], count: int) -> None:
    for namespace, name in objects:
        assert [part_of(namespace, name, count) == each for each in range(count)].count(True) == 1


@given(st.integers(1, 64), st.integers(0, 1000))
def test_parts_have_about_the_same_size(count: int, offset: int) -> None:
    sizes = Counter(
        part_of(f"team-{each % 7}", f"object-{each + offset}", count) for each in range(100 * count)
    )
    assert len(sizes) == count
    assert max(sizes.values()) < 200


@dataclass
class Process:
    """A shard: it works on one part at a time, and needs some steps for it."""

    shard: Shard
    name: str
    liveness: Liveness = field(default_factory=Liveness)
    at: int | None = None
    state: MigrationPart | None = None
    steps: int = 0

    def step(self, store: list[MigrationPart], now: float) -> None:
        """Look, claim, work or end, with the writes that the API server would accept."""
        if self.at is None or self.state is None:
            free = [self.liveness.is_free(str(index), part, now) for index, part in enumerate(store)]
            index = next_part(store, WORK, self.shard, free)
            if index is not None:
                self.at, self.state, self.steps = index, begun(store[index], WORK, self.name), 0
                store[index] = self.state.model_copy()
            return
        self.steps += 1
        done = self.steps == 3
        after = self.state.model_copy(
            update={"beat": self.state.beat + 1, "done": done, "holder": "" if done else self.name}
        )
        if store[self.at].term != self.state.term:
            self.at = None  # refused: somebody else has it
            return
        store[self.at] = self.state = after
        if done:
            self.at = None


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(("kill", "pause", "wake", "go"))), max_size=60),
    st.randoms(use_true_random=False),
)
def test_all_parts_get_done_as_long_as_one_process_lives(
    count: int, course: list[tuple[int, str]], dice: Random
) -> None:
    store = [MigrationPart() for _ in range(count)]
    processes = [Process(Shard(dice.randrange(count), count), f"p{each}") for each in range(count)]
    survivor, killed, paused, now = Process(Shard(0, count), "last"), set[int](), set[int](), 0.0
    terms = [0] * count
    for number, event in course:
        index, now = number % count, now + BEAT_SECONDS
        if event == "kill":
            killed.add(index)
        elif event == "pause":
            paused.add(index)
        elif event == "wake":
            paused.discard(index)
        for other, process in enumerate(processes):
            if other not in killed | paused:
                process.step(store, now)
        assert all(part.term >= term for part, term in zip(store, terms, strict=True))
        terms = [part.term for part in store]
    # From here on only the last one runs: every other one is dead or paused for ever.
    for _ in range(10 * count + int(count * DEAD_SECONDS)):
        now += BEAT_SECONDS
        survivor.step(store, now)
    assert summed(store, WORK)[1]
    assert all(part.done for part in store)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_who_beats_is_never_taken_for_dead(beats: Sequence[int]) -> None:
    liveness, now = Liveness(), 0.0
    for beat, _ in enumerate(beats):
        now += DEAD_SECONDS - 0.1
        assert not liveness.is_free("0", MigrationPart(holder="a", term=1, beat=beat), now)
