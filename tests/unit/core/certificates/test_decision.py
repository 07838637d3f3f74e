"""Each step of a certificate's life; tests/property/test_rotation.py covers their interplay over time."""

from datetime import UTC, datetime, timedelta

import pytest

from crdkeeper.core.certificates.decision import Action, Forget, MakeAuthority, Wait, Write, decide
from crdkeeper.core.certificates.facts import Authority, CertificateFacts, StoredCertificate
from crdkeeper.core.certificates.times import Times, renewed_at, validity

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY, MINUTE, SECOND = timedelta(days=1), timedelta(minutes=1), timedelta(seconds=1)
NAMES = frozenset({"webhook.ns.svc"})
TIMES = Times()
SETTLED = TIMES.settle


def authority(id_: str, *, begin: timedelta = -DAY, end: timedelta = 3000 * DAY) -> Authority:
    return Authority(id_, NOW + begin, NOW + end)


def serving(
    issuer: str,
    *,
    begin: timedelta = -DAY,
    end: timedelta = 80 * DAY,
    since: timedelta = -DAY,
    names: frozenset[str] = NAMES,
) -> StoredCertificate:
    return StoredCertificate("s", issuer, names, NOW + begin, NOW + end, NOW + since)


OLD, NEW, LOST = authority("old"), authority("new"), authority("lost")
GONE = authority("gone", end=-SECOND)
EARLY = authority("early", begin=SECOND)
DUE = authority("due", begin=-2000 * DAY, end=900 * DAY)


def step(facts: CertificateFacts, trusted_for: timedelta | None = SETTLED) -> Action:
    return decide(facts, NAMES, trusted_for, NOW, TIMES)


@pytest.mark.parametrize(
    ("facts", "action"),
    [
        (CertificateFacts(), MakeAuthority(())),
        (CertificateFacts((GONE,)), MakeAuthority(())),
        (CertificateFacts((EARLY,)), MakeAuthority(())),
        (CertificateFacts((DUE,), (DUE,), serving("due")), MakeAuthority(("due",))),
        (CertificateFacts((), (OLD,), serving("old")), MakeAuthority(())),
    ],
    ids=["nothing", "expired", "from the future", "due", "key lost"],
)
def test_an_authority_is_made(facts: CertificateFacts, action: Action) -> None:
    assert step(facts, None) == action


@pytest.mark.parametrize(
    ("facts", "action"),
    [
        (CertificateFacts((OLD,)), Write(("old",), "old")),
        (CertificateFacts((OLD,), (OLD,)), Write(("old",), "old")),
        (CertificateFacts((OLD,), (), serving("old")), Write(("old",))),
        (CertificateFacts((NEW, OLD), (OLD,)), Write(("new", "old"), "old")),
        (CertificateFacts((NEW, OLD)), Write(("new", "old"), "old")),
        (CertificateFacts((NEW,), (NEW, OLD), serving("")), Write(("new", "old"), "new")),
        (CertificateFacts((OLD,), (OLD,), serving("old"), tidy=False), Write(("old",))),
        (CertificateFacts((OLD,), (OLD, GONE), serving("old")), Write(("old",))),
    ],
    ids=[
        "first install",
        "serving lost",
        "bundle lost",
        "serving lost in the middle",
        "both lost in the middle",
        "signed by nobody",
        "bundle with junk",
        "bundle with what has expired",
    ],
)
def test_what_is_lost_is_made_anew_by_whom_clients_trust(facts: CertificateFacts, action: Action) -> None:
    assert step(facts, None) == action


def test_a_change_of_the_authority_step_by_step() -> None:
    """1. both in the bundle; 2. signed again once settled; 3. the old one is dropped when that is served."""
    both = (NEW, OLD)
    assert step(CertificateFacts(both, (OLD,), serving("old"))) == Write(("new", "old"))
    waiting = CertificateFacts(both, both, serving("old"))
    assert isinstance(step(waiting, None), Wait)
    assert step(waiting, SETTLED - SECOND) == Wait(SECOND)
    assert step(waiting, SETTLED) == Write(("new", "old"), "new")
    fresh = serving("new", since=MINUTE - TIMES.spread)
    assert step(CertificateFacts(both, both, fresh)) == Wait(MINUTE)
    served = serving("new", since=-TIMES.spread)
    assert step(CertificateFacts(both, both, served)) == Write(("new",))
    assert step(CertificateFacts(both, (NEW,), served), None) == Forget(("new",))
    assert step(CertificateFacts((NEW,), (NEW,), served), None) == Wait(TIMES.look)


def test_one_that_was_lost_meanwhile_goes_with_the_old_one() -> None:
    facts = CertificateFacts((NEW,), (NEW, LOST, OLD), serving("old", since=-TIMES.spread))
    assert step(facts, None) == Write(("new", "old"))
    facts = CertificateFacts((NEW,), (NEW, LOST, OLD), serving("lost", since=-MINUTE))
    assert isinstance(step(facts, None), Wait)


@pytest.mark.parametrize(
    "old",
    [
        serving("old", begin=-60 * DAY, end=30 * DAY),
        serving("old", end=-SECOND),
        serving("old", begin=SECOND),
        serving("old", names=frozenset({"other"})),
        serving("old", names=NAMES | {"other"}),
        serving(""),
        serving("unknown"),
    ],
    ids=[
        "due",
        "expired",
        "from the future",
        "other names",
        "one name too many",
        "signed by none",
        "stranger",
    ],
)
def test_a_serving_certificate_is_renewed(old: StoredCertificate) -> None:
    assert step(CertificateFacts((OLD,), (OLD,), old)) == Write(("old",), "old")
    # Even while another CA is being introduced.
    assert step(CertificateFacts((NEW, OLD), (NEW, OLD), old), None) == Write(("new", "old"), "old")


@pytest.mark.parametrize("names", [NAMES, frozenset({"other"})])
def test_it_is_told_when_a_renewal_has_to_wait(names: frozenset[str]) -> None:
    due = serving("lost", begin=-60 * DAY, end=30 * DAY, names=names)
    action = step(CertificateFacts((NEW,), (NEW, LOST), due), None)
    assert isinstance(action, Wait)
    assert "the caBundle of every converted CRD" in action.problem


def test_nothing_is_renewed_for_no_longer_life() -> None:
    """A CA signs to the end of its own lifetime, and its successor has to settle first."""
    end = 20 * DAY
    old = authority("old", begin=-3000 * DAY, end=end)
    due = serving("old", begin=-60 * DAY, end=end)
    assert isinstance(step(CertificateFacts((NEW, old), (NEW, old), due), None), Wait)


def test_it_looks_again_when_something_is_to_be_done() -> None:
    due = serving("old", begin=-60 * DAY, end=30 * DAY + SECOND * 1.5)
    assert step(CertificateFacts((OLD,), (OLD,), due)) == Wait(SECOND)


@pytest.mark.parametrize("lifetime", [timedelta(seconds=30), 90 * DAY, 3650 * DAY])
def test_a_new_certificate_is_not_due(lifetime: timedelta) -> None:
    begin, end = validity(NOW, lifetime, timedelta(hours=1))
    assert begin < NOW < end == NOW + lifetime
    assert NOW - begin <= min(timedelta(hours=1), lifetime / 10)
    assert NOW + lifetime / 2 < renewed_at(begin, end) <= NOW + lifetime * 2 / 3
