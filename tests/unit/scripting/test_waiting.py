"""Waiting for a condition: what counts, what ends it early, and what an API server may do meanwhile."""

from http.server import BaseHTTPRequestHandler
from itertools import groupby
from threading import Event
from typing import NoReturn

import pytest
from pykube.config import KubeConfig
from pykube.exceptions import HTTPError
from pykube.http import HTTPClient

from crdkeeper.scripting import (
    ConditionFailed,
    ConnectError,
    DefinitionReport,
    Deleted,
    TimedOut,
    VersionConversion,
)
from crdkeeper.scripting import following as following_module
from tests.unit.scripting.apiserver import (
    Answer,
    answer,
    bookmark,
    event,
    hang,
    hang_up,
    listing,
    refusal,
    serving,
    watch,
)
from tests.unit.scripting.objects import DONE, EXHAUSTED, FORBIDDEN, NAME, RUNNING, condition, migration
from tests.unit.scripting.waiting import NO_NEWS, PLENTY, Clock, waited_for

SHORT = 0.3
"""Seconds after which a pointless wait ends."""
GONE = {"kind": "Status", "code": 410, "message": "too old resource version"}


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_module, "_FIRST_PAUSE", 0.01)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(following_module, "time", made)
    return made


def test_what_is_so_already_needs_no_watch() -> None:
    with waited_for(listing(migration(DONE))) as (server, found):
        assert found.wait("Ready", timeout=PLENTY) is found
    (request,) = server.requests
    assert request.path == "/apis/crdkeeper.dev/v1alpha1/storagemigrations"
    assert request.query == {"fieldSelector": f"metadata.name={NAME}"}
    assert found.obj == migration(DONE)


def test_changes_are_watched_from_the_list_on() -> None:
    changes = (
        event("MODIFIED", migration(RUNNING, version=101)),
        event("MODIFIED", migration(DONE, version=102)),
    )
    with waited_for(listing(migration(RUNNING)), watch(*changes, stays=True)) as (server, found):
        found.wait(timeout=PLENTY)
    assert found.obj["metadata"]["resourceVersion"] == "102"
    watched = server.requests[1].query
    assert (watched["watch"], watched["resourceVersion"]) == ("true", "100")
    assert watched["fieldSelector"] == f"metadata.name={NAME}"
    assert int(watched["timeoutSeconds"]) <= PLENTY


def test_a_watch_that_ends_goes_on_where_it_was() -> None:
    with waited_for(
        listing(migration(RUNNING)),
        watch(event("MODIFIED", migration(RUNNING, version=101))),
        watch(bookmark("150")),
        watch(event("MODIFIED", migration(DONE, version=151))),
    ) as (server, found):
        found.wait(timeout=PLENTY)
    assert server.watched_from == [None, "100", "101", "150"]


@pytest.mark.parametrize(
    "expired",
    [refusal(410, "too old resource version"), watch(event("ERROR", GONE))],
    ids=["answer", "event"],
)
def test_where_the_past_is_forgotten_it_lists_again(expired: Answer) -> None:
    with waited_for(
        listing(migration(RUNNING)),
        expired,
        listing(migration(RUNNING), version="200"),
        watch(event("MODIFIED", migration(DONE, version=201))),
    ) as (server, found):
        found.wait(timeout=PLENTY)
    assert server.watched_from == [None, "100", None, "200"]


@pytest.mark.parametrize(
    "trouble",
    [
        hang_up,
        refusal(503, "apiserver not ready"),
        refusal(429, "storage is (re)initializing", **{"Retry-After": "0"}),
        watch(breaks_off=True),
        watch(b'{"type": "MODIF', breaks_off=True),
        watch(b'{"type": "MODIF\n'),
        watch(b'{"type": "MODIFIED"}\n'),
        watch(event("ERROR", {"code": 500, "message": "etcdserver: leader changed"})),
        watch(),
    ],
    ids=["closed", "503", "429", "broken", "half an event", "no JSON", "no event", "error", "empty"],
)
def test_trouble_is_waited_out(trouble: Answer) -> None:
    done = watch(event("MODIFIED", migration(DONE, version=101)))
    with waited_for(listing(migration(RUNNING)), trouble, done) as (server, found):
        found.wait(timeout=PLENTY)
    assert server.watched_from == [None, "100", "100"]


def test_trouble_at_the_list_is_waited_out() -> None:
    page = answer("<html>", 200)
    with waited_for(hang_up, refusal(502), page, listing(migration(DONE))) as (server, found):
        found.wait(timeout=PLENTY)
    assert len(server.requests) == 4


def test_a_silent_watch_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_module, "_QUIET_SECONDS", 0.2)
    done = watch(event("MODIFIED", migration(DONE, version=102)))
    silent = watch(bookmark("101"), stays=True)

    def answered(handler: BaseHTTPRequestHandler, closing: Event) -> None:
        (done if "resourceVersion=101" in handler.path else silent)(handler, closing)

    with waited_for(listing(migration(RUNNING)), answered) as (server, found):
        found.wait(timeout=PLENTY)
    # On a busy machine even the bookmark may come too late, and is asked for again.
    assert [version for version, _ in groupby(server.watched_from)] == [None, "100", "101"]


@pytest.mark.parametrize("code", [401, 403, 404])
def test_refusals_are_raised(code: int) -> None:
    with waited_for(refusal(code, "who are you?")) as (_, found), pytest.raises(HTTPError) as raised:
        found.wait(timeout=PLENTY)
    assert (raised.value.code, str(raised.value)) == (code, "who are you?")


def test_a_server_that_fails_at_once_is_asked_ever_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_module, "_FIRST_PAUSE", 0.2)
    with waited_for(listing(migration(RUNNING)), watch()) as (server, found), pytest.raises(TimedOut):
        found.wait(timeout=1)
    # A list, then watches 0.2, 0.6 and 1.4 seconds after the first one, of which the last is too late.
    assert len(server.requests) <= 4


def test_an_outage_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_module, "_LONGEST_PAUSE", 0.0)
    # As many as make the pause, doubled each time, more than a float can be.
    outage = [refusal(503, "no leader")] * 1_100
    with waited_for(*outage, listing(migration(DONE))) as (server, found):
        found.wait(timeout=20 * PLENTY)
    assert len(server.requests) == 1_101


@pytest.mark.parametrize(
    "stuck",
    [(hang,), (listing(migration(RUNNING)), hang), (listing(migration(RUNNING)), watch(stays=True))],
    ids=["list", "watch", "events"],
)
def test_a_server_that_hangs_does_not_outlast_the_time(
    stuck: tuple[Answer, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for patience in ("_QUIET_SECONDS", "_ANSWER_SECONDS"):
        monkeypatch.setattr(following_module, patience, 10_000.0)
    with waited_for(*stuck) as (_, found), pytest.raises(TimedOut):
        found.wait(timeout=SHORT)


def test_news_near_the_end_do_not_put_it_off(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_module, "_QUIET_SECONDS", 10_000.0)
    news = watch(event("MODIFIED", migration(RUNNING, version=101)), stays=True)
    end = clock.over(NO_NEWS)
    with waited_for(listing(migration(RUNNING)), news, end) as (server, found), pytest.raises(TimedOut):
        found.wait(timeout=PLENTY)
    # If it read on, the first watch would get the same time again from the event on.
    assert server.watched_from == [None, "100", "101"]


def test_when_the_time_is_over_the_error_says_what_held_it_up(clock: Clock) -> None:
    with (
        waited_for(listing(migration(FORBIDDEN)), clock.over(NO_NEWS)) as (_, found),
        pytest.raises(TimedOut) as raised,
    ):
        found.wait(timeout=PLENTY)
    assert isinstance(raised.value, TimeoutError)
    assert (raised.value.reason, raised.value.message) == ("Forbidden", FORBIDDEN["message"])
    assert str(raised.value) == (
        f"StorageMigration {NAME}: after 30 s Ready is not True. It is False: Forbidden: "
        "Not permitted: patch databases.example.com."
    )


def test_a_condition_that_is_not_there_is_named_with_those_that_are(clock: Clock) -> None:
    with (
        waited_for(listing(migration(RUNNING)), clock.over(NO_NEWS)) as (_, found),
        pytest.raises(TimedOut, match="It has the conditions Ready"),
    ):
        found.wait("Reday", timeout=PLENTY)


def test_what_cannot_be_reached_is_said(clock: Clock) -> None:
    with (
        waited_for(clock.over(refusal(503, "no leader"))) as (_, found),
        pytest.raises(TimedOut, match=r"It has not been read\. .*cannot be reached: 503: no leader\."),
    ):
        found.wait(timeout=PLENTY)


def test_what_does_not_exist_is_said(clock: Clock) -> None:
    with (
        waited_for(listing(), clock.over(NO_NEWS)) as (_, found),
        pytest.raises(TimedOut, match=r"There is no such object\.$"),
    ):
        found.wait(timeout=PLENTY)


def test_what_does_not_exist_is_said_also_if_the_server_then_fails(clock: Clock) -> None:
    with (
        waited_for(listing(), clock.over(refusal(503, "no leader"))) as (_, found),
        pytest.raises(TimedOut, match=r"There is no such object\. .*cannot be reached: 503: no leader\."),
    ):
        found.wait(timeout=PLENTY)


def test_a_watch_that_opens_ends_the_trouble(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(_: object) -> NoReturn:
        raise following_module._Quiet

    monkeypatch.setattr(following_module, "_events", silent)
    answers = listing(migration(RUNNING)), refusal(503, "no leader"), clock.over(NO_NEWS)
    with waited_for(*answers) as (server, found), pytest.raises(TimedOut) as raised:
        found.wait(timeout=PLENTY)
    assert server.watched_from == [None, "100", "100"]
    assert "cannot be reached" not in str(raised.value)


@pytest.mark.parametrize("wanted", ["Ready", "Trimmed", "Migrated"])
def test_an_end_without_it_is_a_failure(wanted: str) -> None:
    end = migration(EXHAUSTED, condition("Trimmed", "Unknown", "Pending", "Not yet."), ended=True)
    with (
        waited_for(listing(migration(RUNNING)), watch(event("MODIFIED", end))) as (_, found),
        pytest.raises(ConditionFailed, match=f"has ended, and {wanted} is not True") as raised,
    ):
        found.wait(wanted, timeout=PLENTY)
    reasons = {"Ready": "RetriesExhausted", "Trimmed": "Pending", "Migrated": ""}
    assert raised.value.reason == reasons[wanted]


def test_the_end_of_an_older_spec_is_none() -> None:
    old = migration(EXHAUSTED, ended=True, generation=2)
    new = migration({**DONE, "observedGeneration": 2}, generation=2, version=101)
    with waited_for(listing(old), watch(event("MODIFIED", new))) as (_, found):
        found.wait(timeout=PLENTY)
    assert found.ready


def test_a_condition_of_an_older_spec_does_not_count(clock: Clock) -> None:
    with (
        waited_for(listing(migration(DONE, generation=2)), clock.over(NO_NEWS)) as (_, found),
        pytest.raises(TimedOut, match="It is True of an older spec: Migrated"),
    ):
        found.wait(timeout=PLENTY)
    assert not found.ready


def test_a_setback_that_can_pass_is_waited_out() -> None:
    with waited_for(
        listing(migration(FORBIDDEN)), watch(event("MODIFIED", migration(DONE, version=101)))
    ) as (_, found):
        found.wait(timeout=PLENTY)


def test_reasons_to_give_up_on_can_be_named() -> None:
    with (
        waited_for(listing(migration(FORBIDDEN))) as (_, found),
        pytest.raises(ConditionFailed, match="Not permitted: patch") as raised,
    ):
        found.wait(timeout=PLENTY, give_up_on={"Forbidden"})
    assert raised.value.condition == found.condition("Ready")


STALLED = condition("Stalled", "True", "Broken", "Mend it.")


def test_stalled_is_a_failure() -> None:
    with (
        waited_for(listing(migration(RUNNING, STALLED))) as (_, found),
        pytest.raises(ConditionFailed, match=r"is stalled: Broken: Mend it\."),
    ):
        found.wait(timeout=PLENTY)


def test_what_strangers_have_written_commands_no_terminal() -> None:
    forged = condition("Ready", "False", "Forbidden", "not found: \x1b]0;evil\x07\n::error::evil\u202e")
    with (
        waited_for(listing(migration(forged))) as (_, found),
        pytest.raises(ConditionFailed, match="not found") as raised,
    ):
        found.wait(timeout=PLENTY, give_up_on={"Forbidden"})
    error = raised.value
    for text in (str(error), error.message):
        assert r"not found: \x1b]0;evil\x07\n::error::evil\u202e" in text
        assert text.isprintable()
    # A program may want to know what it is.
    assert error.condition is not None
    assert error.condition.message == forged["message"]
    assert str(ConnectError("\x1b[2J")) == r"\x1b[2J"


def test_what_is_stalled_is_waited_for_on_request() -> None:
    done = watch(event("MODIFIED", migration(DONE, version=101)))
    with waited_for(listing(migration(RUNNING, STALLED)), done) as (_, found):
        found.wait(timeout=PLENTY, give_up_on=())


def test_a_report_does_not_stall() -> None:
    bad, good = condition("Ready", "False", "Unhealthy"), condition("Ready", "True", "Healthy")
    later = watch(event("MODIFIED", migration(good, version=101)))
    with serving(listing(migration(bad, STALLED)), later) as server:
        found = DefinitionReport.named(NAME, api=HTTPClient(KubeConfig.from_url(server.url)))
        found.wait(timeout=PLENTY)


def test_what_is_false_as_wanted_is_no_failure() -> None:
    wrong = condition("Compiled", "False", "InvalidRules", "spec.spokes[0]: no rule for spec.host.")
    with serving(listing(migration(wrong, STALLED))) as server:
        found = VersionConversion.named(NAME, api=HTTPClient(KubeConfig.from_url(server.url)))
        found.wait("Compiled", "False", timeout=PLENTY)
        with pytest.raises(ConditionFailed, match="is stalled"):
            found.wait("Compiled", timeout=PLENTY)


def test_what_does_not_exist_yet_is_waited_for() -> None:
    with waited_for(listing(), watch(event("ADDED", migration(DONE, version=101)))) as (_, found):
        found.wait(timeout=PLENTY)


@pytest.mark.parametrize("later", [listing(), listing(migration(DONE, uid="u2"))], ids=["gone", "replaced"])
def test_an_object_that_is_gone_is_not_waited_for(later: Answer) -> None:
    with (
        waited_for(listing(migration(RUNNING)), refusal(410), later) as (_, found),
        pytest.raises(Deleted, match=f"{NAME} was"),
    ):
        found.wait(timeout=PLENTY)


def test_a_deletion_ends_the_wait() -> None:
    deleted = event("DELETED", migration(RUNNING, version=101))
    with (
        waited_for(listing(migration(RUNNING)), watch(deleted)) as (_, found),
        pytest.raises(Deleted) as raised,
    ):
        found.wait(timeout=PLENTY)
    assert raised.value.reason == "Rewriting"


def test_what_was_reached_before_the_deletion_counts() -> None:
    deleted = event("DELETED", migration(DONE, version=101))
    with waited_for(listing(migration(RUNNING)), watch(deleted)) as (_, found):
        found.wait(timeout=PLENTY)


def test_anything_can_be_waited_for() -> None:
    with waited_for(
        listing(migration(RUNNING)),
        watch(event("MODIFIED", migration(RUNNING, EXHAUSTED, version=101)), stays=True),
    ) as (_, found):
        found.wait_until(lambda each: len(each.conditions) == 2, timeout=PLENTY)
        assert found.obj["metadata"]["resourceVersion"] == "101"
