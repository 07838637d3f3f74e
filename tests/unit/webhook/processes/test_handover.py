"""A serving process knows what its keeper knows, before it serves, and still does when the keeper is gone."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from crdkeeper.cluster.transport.client import ApiError, NoCredentials
from crdkeeper.cluster.transport.connection import ConfigurationError
from crdkeeper.core.conversion.bundle import digest
from crdkeeper.core.conversion.objects import ConversionTally
from crdkeeper.core.conversion.review import BadReview, Reply
from crdkeeper.webhook.certificate import PortCertificate
from crdkeeper.webhook.conversion.worker import Busy, Worker, WorkerFailed, WorkerRules
from crdkeeper.webhook.http.types import Body
from crdkeeper.webhook.processes import keeper, relay
from crdkeeper.webhook.processes.board import Board
from crdkeeper.webhook.processes.channel import pair
from crdkeeper.webhook.processes.keeper import KeeperProcess
from crdkeeper.webhook.processes.relay import Relay
from crdkeeper.webhook.rules.clusterrules import compiled
from crdkeeper.webhook.rules.rulebook import RuleBook, Served
from crdkeeper.webhook.server import WebhookOptions
from tests.certificates import Authority
from tests.unit.webhook.conversion.test_converting import SERVED
from tests.unit.webhook.conversion.working import working

AUTHORITY = Authority()
NAME, HERE = "sums.example.com", "10.0.0.1"
CHANGE = b'{"request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002"}}'


def served(text: bytes = b"") -> Served:
    """The same rules, told apart by that text."""
    return Served(SERVED.conversion, digest(SERVED.bundle + text), SERVED.bundle)


class Slowly(Worker):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: asyncio.Queue[tuple[WorkerRules, bytes, str]] = asyncio.Queue()
        self.answer: asyncio.Queue[Reply | Exception] = asyncio.Queue()
        self.cancelled = asyncio.Event()

    async def convert(self, rules: WorkerRules, body: Body, source: str) -> Reply:
        self.asked.put_nowait((rules, bytes(body), source))
        try:
            answer = await self.answer.get()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer


class Replica:
    """A serving process' relay, and keepers."""

    def __init__(self, directory: Path) -> None:
        self.options = WebhookOptions(directory / "tls.crt", directory / "tls.key")
        issued = AUTHORITY.issue()
        self.options.certificate.write_bytes(issued.certificate)
        self.options.key.write_bytes(issued.key)
        self.certificate = PortCertificate()
        self.relay = Relay(self.certificate, 1000 + len(SERVED.bundle))
        self.rules = RuleBook(())
        self.keeper = self.start_keeper()

    def start_keeper(self) -> KeeperProcess:
        """Another one, which knows nothing yet."""
        self.rules = RuleBook(())
        self.keeper = KeeperProcess(self.options, self.rules, None, Board(2), 1)
        self.worker = self.keeper._worker = Slowly()
        ours, its = pair()
        self.keeper._meet(0, ours)
        self.relay.connect(its)
        return self.keeper

    def lose_keeper(self) -> None:
        """As if it were killed."""
        channel = self.keeper._peers[0].channel
        if channel is not None:
            channel.close()

    def load(self, **conversions: Served) -> None:
        """The keeper has read these."""
        self.keeper._certificate.found()
        self.rules.conversions = dict(conversions)
        self.keeper._have_loaded()

    async def until(self, holds: Any) -> None:
        async with asyncio.timeout(60.0):
            while not holds():  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def synchronous(self) -> None:
        """All that the keeper has said so far has been heeded."""
        await self.relay.look_again("unknown.example.com")

    def convert(self, body: bytes = b"{}") -> asyncio.Task[Reply]:
        return asyncio.create_task(self.relay.convert(SERVED, body, HERE))


@pytest.fixture
async def replica(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Replica]:
    for each in ("_LOOK_SECONDS", "_CONVERT_SECONDS"):
        monkeypatch.setattr(relay, each, 60.0)
    made = Replica(tmp_path)
    async with working(made.relay.run()):
        yield made
        made.lose_keeper()


async def test_it_is_whole_once_all_rules_and_the_certificate_have_come(replica: Replica) -> None:
    await replica.synchronous()
    assert not replica.relay.whole.is_set()
    replica.rules.conversions = {"a": served(b"a"), "b": served(b"b")}
    replica.keeper._have_loaded()
    await replica.synchronous()
    assert replica.relay.conversions.keys() == {"a", "b"}
    assert not replica.relay.whole.is_set(), "without a certificate it cannot serve"
    replica.load(**replica.rules.conversions)
    await replica.synchronous()
    assert replica.relay.whole.is_set()
    assert replica.certificate.expires > 0


async def test_rules_are_told_as_they_change(replica: Replica) -> None:
    replica.load(a=served(b"a"), b=served(b"b"))
    await replica.synchronous()
    kept = replica.relay.conversions["a"]
    replica.load(a=replica.rules.conversions["a"], c=served(b"c"))
    await replica.synchronous()
    assert replica.relay.conversions.keys() == {"a", "c"}
    assert replica.relay.conversions["a"] is kept
    replica.load(a=served(b"new"))
    await replica.synchronous()
    assert replica.relay.conversions["a"].digest == served(b"new").digest


async def test_what_it_serves_is_what_the_bundle_says(replica: Replica) -> None:
    replica.load(**{NAME: served()})
    await replica.synchronous()
    here, there = replica.relay.conversions[NAME], compiled(SERVED.bundle)
    assert here.conversion.versions == there.conversion.versions
    assert (here.digest, here.bundle) == (served().digest, SERVED.bundle)


async def test_rules_that_it_cannot_compile_leave_the_others(replica: Replica) -> None:
    replica.load(a=served(b"a"), b=Served(SERVED.conversion, "none", b"rubbish"), c=served(b"c"))
    await replica.synchronous()
    assert replica.relay.conversions.keys() == {"a", "c"}
    replica.load(a=Served(SERVED.conversion, "none", b"rubbish"), d=served(b"d"))
    await replica.synchronous()
    assert replica.relay.conversions["a"].digest == served(b"a").digest
    assert replica.relay.conversions.keys() == {"a", "d"}


async def test_rules_that_it_could_not_compile_are_tried_again(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: bytes) -> Served:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(relay, "_AGAIN_SECONDS", 0.001)
    with monkeypatch.context() as short:
        short.setattr(relay, "compiled", fail)
        replica.load(a=served(b"a"), b=served(b"b"))
        await replica.synchronous()
        assert replica.relay.conversions == {}
        replica.load(a=served(b"a"))
        await replica.synchronous()
    await replica.until(lambda: replica.relay.conversions)
    assert replica.relay.conversions.keys() == {"a"}, "the other one was dropped"
    assert replica.relay._failed == {}


async def test_without_a_keeper_it_serves_on_and_takes_over_what_the_next_one_knows(replica: Replica) -> None:
    replica.load(a=served(b"a"))
    await replica.synchronous()
    replica.lose_keeper()
    await replica.until(lambda: replica.relay._channel is None)
    assert replica.relay.whole.is_set()
    assert replica.relay.conversions.keys() == {"a"}
    replica.start_keeper()
    await replica.synchronous()
    assert replica.relay.conversions.keys() == {"a"}, "the next keeper has not loaded anything yet"
    replica.load(a=served(b"newer"), b=served(b"b"))
    await replica.synchronous()
    assert replica.relay.conversions.keys() == {"a", "b"}
    assert replica.relay.conversions["a"].digest == served(b"newer").digest


@pytest.mark.parametrize(
    "refusal", [ApiError(401, {}), NoCredentials("no token"), ConfigurationError("no token")], ids=repr
)
@pytest.mark.parametrize("ready", [True, False])
async def test_a_keeper_without_credentials_tries_again_where_others_serve(
    replica: Replica, refusal: Exception, ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "_AGAIN_SECONDS", 0.0)
    read = asyncio.Event()

    class Rules(RuleBook):
        asked = 0

        async def run(self, _: Any) -> None:
            self.asked += 1
            if self.asked == 1:
                raise refusal
            read.set()
            await asyncio.Event().wait()

    replica.keeper._rules = Rules(())
    if ready:
        replica.keeper._board.note_ready(1)
    following = asyncio.create_task(replica.keeper._follow_rules())
    reads = asyncio.create_task(read.wait())
    await asyncio.wait({following, reads}, return_when=asyncio.FIRST_COMPLETED)
    assert read.is_set() is ready
    for each in (following, reads):
        each.cancel()
    (ended,) = await asyncio.gather(following, return_exceptions=True)
    assert ready or ended is refusal


async def test_the_workers_convert_by_the_rules_of_the_process_that_asks(replica: Replica) -> None:
    coming = replica.convert(b"a review")
    rules, body, source = await replica.worker.asked.get()
    assert (rules.digest, rules.bundle, body, source) == (SERVED.digest, SERVED.bundle, b"a review", HERE)
    reply = Reply(b"converted", 3, "e" * 100_000, ConversionTally(ignored=1, stand_ins=2))
    replica.worker.answer.put_nowait(reply)
    assert await coming == reply


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (BadReview("x" * 100_000), BadReview),
        (WorkerFailed(), WorkerFailed),
        (Busy(), Busy),
        (KeyError(), Busy),
    ],
)
async def test_what_the_workers_cannot_convert_fails_as_in_one_process(
    replica: Replica, failure: Exception, raised: type[Exception]
) -> None:
    replica.worker.answer.put_nowait(failure)
    with pytest.raises(raised) as found:
        await replica.convert()
    assert str(found.value) == (str(failure) if raised is BadReview else "")


async def test_a_client_may_ask_again_when_the_keeper_dies(replica: Replica) -> None:
    coming = replica.convert()
    await replica.worker.asked.get()
    replica.lose_keeper()
    with pytest.raises(Busy):
        await coming
    with pytest.raises(Busy):
        await replica.convert()
    replica.start_keeper()
    replica.worker.answer.put_nowait(Reply(b"{}", 1))
    assert (await replica.convert()).objects == 1


async def test_what_nobody_waits_for_any_more_is_given_up_and_counts_until_then(replica: Replica) -> None:
    gone = replica.convert(b"x" * 1000)
    await replica.worker.asked.get()
    gone.cancel()
    with pytest.raises(Busy):
        await replica.convert()
    await replica.worker.cancelled.wait()
    await replica.until(lambda: not replica.relay._asked)
    replica.worker.answer.put_nowait(Reply(b"{}", 1))
    assert (await replica.convert()).objects == 1


async def test_the_work_for_a_process_that_died_is_given_up(replica: Replica) -> None:
    replica.convert()
    await replica.worker.asked.get()
    channel = replica.relay._channel
    assert channel is not None
    channel.close()
    await replica.worker.cancelled.wait()


async def test_a_change_that_nobody_judges_passes(replica: Replica) -> None:
    for _ in range(2):
        answer = await replica.relay.answer(CHANGE)
        assert orjson.loads(answer.body)["response"]["allowed"] is True
        replica.lose_keeper()
        await replica.until(lambda: replica.relay._channel is None)


async def test_a_new_certificate_is_used_and_a_broken_one_is_not(replica: Replica) -> None:
    replica.load()
    await replica.synchronous()
    before = replica.certificate._latest
    issued = AUTHORITY.issue()
    replica.options.certificate.write_bytes(b"nonsense")
    with pytest.raises(ssl.SSLError):
        replica.keeper._certificate.found()
    replica.keeper._tell_all()
    await replica.synchronous()
    assert replica.certificate._latest is before
    replica.options.certificate.write_bytes(issued.certificate)
    replica.options.key.write_bytes(issued.key)
    replica.load()
    await replica.synchronous()
    assert replica.certificate._latest is not before


async def test_a_new_certificate_does_not_wait_for_rules_that_the_next_keeper_cannot_read(
    replica: Replica,
) -> None:
    replica.load(a=served(b"a"))
    await replica.synchronous()
    replica.start_keeper()
    before = replica.certificate._latest
    issued = AUTHORITY.issue()
    replica.options.certificate.write_bytes(issued.certificate)
    replica.options.key.write_bytes(issued.key)
    replica.keeper._certificate.found()
    replica.keeper._tell_all()
    await replica.synchronous()
    assert replica.certificate._latest is not before
    assert replica.relay.conversions.keys() == {"a"}


async def test_the_certificate_alone_does_not_make_it_whole(replica: Replica) -> None:
    replica.keeper._certificate.found()
    replica.keeper._tell_all()
    await replica.synchronous()
    assert replica.certificate.expires > 0
    assert not replica.relay.whole.is_set()


async def test_the_token_for_changes_is_told_as_it_changes(replica: Replica) -> None:
    class Policies:
        token = "first"

    policies = Policies()
    replica.keeper._policies = policies  # type: ignore[assignment]
    replica.load()
    await replica.synchronous()
    assert [replica.relay.admits(each) for each in ("first", "", "second")] == [True, False, False]
    policies.token = "second"
    replica.keeper._tell_all()
    await replica.synchronous()
    assert [replica.relay.admits(each) for each in ("first", "", "second")] == [False, False, True]
    policies.token = ""
    replica.keeper._tell_all()
    await replica.synchronous()
    assert not replica.relay.admits("")
