"""What people and chance do to a cluster, and when: the schedule of a simulation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.property.simulation.apiserver import GROUP, PLURAL, Refusal
from tests.property.simulation.etcd import VERSIONS
from tests.property.simulation.operator import Request

SERVERS = 2
OBJECTS = 10


@dataclass(frozen=True, slots=True)
class After:
    """That many seconds after the previous event."""

    seconds: float


@dataclass(frozen=True, slots=True)
class On:
    """When an operator sends the `nth` request of a kind since the previous event."""

    request: Request
    nth: int


Moment = After | On


@dataclass(frozen=True, slots=True)
class Flip:
    """The CRD is applied with this storage version."""

    to: str


@dataclass(frozen=True, slots=True)
class Rollback:
    """The CRD is applied with another storage version, and some seconds later reverted."""

    to: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Label:
    """The CRD's metadata changes."""


@dataclass(frozen=True, slots=True)
class Recreate:
    """The CRD is deleted, and created again with this storage version."""

    storage: str
    after: float


@dataclass(frozen=True, slots=True)
class TrimByOthers:
    """Someone trims storedVersions without checking."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """An API server stops for a while: SIGSTOP, or a paused virtual machine.

    When it wakes, someone writes through it at once, which takes `writing` seconds.
    """

    server: int
    seconds: float
    writing: float


@dataclass(frozen=True, slots=True)
class Write:
    """Someone writes through a server, which takes `seconds`."""

    server: int
    verb: Literal["create", "update", "delete"]
    object: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Kill:
    """The operator is killed; the next one starts some seconds later or earlier (negative)."""

    next_after: float


@dataclass(frozen=True, slots=True)
class Refuse:
    """Admission refuses to write some objects for a while."""

    refusal: Refusal
    objects: frozenset[int]
    seconds: float


@dataclass(frozen=True, slots=True)
class Compact:
    """Old revisions are gone: continue tokens expire."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Many of the operator's requests go wrong."""

    kind: Literal["throttled", "failing", "lost"]
    seconds: float


Event = Flip | Rollback | Label | Recreate | TrimByOthers | Freeze | Write | Kill | Refuse | Compact | Trouble


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule. `seed` decides everything else: latencies, and the writes in the background."""

    seed: int
    full: bool
    """Whether the second pass writes all objects again."""
    events: tuple[tuple[Moment, Event], ...]


REFUSALS = (
    Refusal(
        422,
        "Invalid",
        f"{PLURAL}.{GROUP} \"x\" is forbidden: ValidatingAdmissionPolicy 'sizes' with binding 'sizes' "
        "denied request: too small",
    ),
    Refusal(403, "Forbidden", 'admission webhook "sizes.example.com" denied the request: too small'),
    # A webhook that forwards the error for a Secret with the object's own name.
    Refusal(
        404, "NotFound", 'admission webhook "sizes.example.com" denied the request: not found', "secrets"
    ),
    Refusal(
        500,
        "InternalError",
        'Internal error occurred: failed calling webhook "sizes.example.com": failed to call webhook: Post '
        '"https://sizes.default.svc:443/validate?timeout=10s": connect: connection refused',
    ),
)


_SECONDS = st.floats(0, 3) | st.floats(0, 40)
_SLOW = st.just(0.01) | st.floats(0, 15)
_VERSION = st.sampled_from(VERSIONS)
_SERVER = st.integers(0, SERVERS - 1)
_MOMENT: SearchStrategy[Moment] = st.builds(After, _SECONDS) | st.builds(
    On, st.sampled_from(("observe", "list", "look", "rewrite", "save", "trim")), st.integers(1, 4)
)
_EVENTS: Mapping[type[Event], SearchStrategy[Event]] = {
    Flip: st.builds(Flip, _VERSION),
    Rollback: st.builds(Rollback, _VERSION, st.floats(0, 5)),
    Label: st.builds(Label),
    Recreate: st.builds(Recreate, _VERSION, st.floats(0, 5)),
    TrimByOthers: st.builds(TrimByOthers),
    Freeze: st.builds(Freeze, _SERVER, st.floats(0, 90), _SLOW),
    Write: st.builds(
        Write, _SERVER, st.sampled_from(("create", "update", "delete")), st.integers(0, OBJECTS), _SLOW
    ),
    Kill: st.builds(Kill, st.floats(-20, 10)),
    Refuse: st.builds(
        Refuse,
        st.sampled_from(REFUSALS),
        st.frozensets(st.integers(0, OBJECTS - 1), min_size=1),
        st.floats(0, 150),
    ),
    Compact: st.builds(Compact),
    Trouble: st.builds(Trouble, st.sampled_from(("throttled", "failing", "lost")), st.floats(1, 20)),
}


def plans(*kinds: type[Event], events: int = 12) -> SearchStrategy[Plan]:
    """Schedules that begin with a flip, with at most this many events of these kinds, or of any few."""
    if kinds:
        return _plans(kinds, events)
    # Few kinds at a time go deeper than all at once ("swarm testing").
    some = st.lists(st.sampled_from(list(_EVENTS)), min_size=1, max_size=4, unique=True)
    return some.flatmap(lambda chosen: _plans(chosen, events))


def _plans(kinds: Sequence[type[Event]], events: int) -> SearchStrategy[Plan]:
    one = st.tuples(_MOMENT, st.one_of([_EVENTS[each] for each in kinds]))
    return st.builds(
        lambda seed, full, start, others: Plan(seed, full, ((start, Flip("v2")), *others)),
        st.integers(0, 2**32 - 1),
        st.booleans(),
        _MOMENT,
        st.lists(one, max_size=events),
    )
