"""A replica of two processes: each of its processes is killed, and what others are at goes on."""

import http.client
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.webhook.processes.replica import HOST, NAME, Several, alive, converted, pss, review


def until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Several]:
    with running(tmp_path) as made:
        yield made


def test_one_that_is_killed_takes_only_its_own_connections_along(replica: Several) -> None:
    clients, before = [], replica.children()

    def both_serve() -> bool:
        clients.append(replica.client())
        assert converted(clients[-1], review())
        return len(clients) >= 8 and all(replica.accepted(before[each]) for each in ("server 0", "server 1"))

    # One that gets no CPU for some milliseconds leaves the next connection to the other.
    until(both_serve)
    os.kill(before["server 0"], signal.SIGKILL)
    until(lambda: not alive(before["server 0"]))
    kept = []
    for each in clients:
        try:
            kept.append(converted(each, review()))
        except (OSError, http.client.HTTPException):
            each.close()
            assert converted(each, review())
    assert kept and all(kept), "server 1 had none of the connections"
    assert len(kept) < len(clients), "server 0 had none of the connections"
    until(lambda: "2 of 2" in replica.probe("/readyz"))
    after = replica.children()
    assert after["server 0"] != before["server 0"]
    assert after["server 1"] == before["server 1"]


def test_without_the_keeper_connections_are_served_and_the_next_one_speaks_for_all(replica: Several) -> None:
    client, keeper = replica.client(), replica.children()["keeper"]
    assert converted(client, review())
    os.kill(keeper, signal.SIGKILL)
    assert converted(client, review())
    until(lambda: replica.children()["keeper"] != keeper and "2 of 2" in replica.probe("/readyz"))
    assert converted(client, review())


def test_the_next_keeper_does_not_take_the_replica_out_for_what_is_bad_by_then(replica: Several) -> None:
    client, keeper = replica.client(), replica.children()["keeper"]
    (replica.directory / "added.yaml").write_text("{")
    until(lambda: "crdkeeper_conversion_rule_problems 1.0" in replica.probe("/metrics"))
    assert replica.probe("/readyz").startswith("converting ")
    (replica.directory / "tls.crt").write_text("nonsense")
    os.kill(keeper, signal.SIGKILL)
    until(lambda: replica.children()["keeper"] != keeper and "2 of 2" in replica.probe("/readyz"))
    until(lambda: "crdkeeper_conversion_rule_problems 1.0" in replica.probe("/metrics"))
    assert replica.probe("/readyz").startswith("converting ")
    assert converted(client, review())
    assert "others still serve with the old one" in replica.process.log.read_text()


@contextmanager
def running(directory: Path, sooner: str = "") -> Iterator[Several]:
    made = Several(directory, 2, sooner)
    try:
        made.process.start()
        made.process.wait_ready()
        yield made
    finally:
        made.close()


def test_a_process_that_hangs_is_named(tmp_path: Path) -> None:
    # Not killed before it goes on, however long the looks at it take.
    with running(tmp_path, "keeper.STALLED_SECONDS = 1.0; parent._HANGING_TICKS = 3600") as replica:
        hanging = replica.children()["server 1"]
        os.kill(hanging, signal.SIGSTOP)
        until(lambda: replica.probe("/healthz") == "hanging: server 1\n")
        until(lambda: "1 of 2" in replica.probe("/readyz"))
        os.kill(hanging, signal.SIGCONT)
        until(lambda: replica.probe("/healthz") == "alive\n")
        assert replica.children()["server 1"] == hanging


@pytest.mark.parametrize("name", ["server 1", "keeper"])
def test_a_process_that_hangs_is_replaced(tmp_path: Path, name: str) -> None:
    with running(tmp_path, "parent._HANGING_TICKS = 3") as replica:
        hanging = replica.children()[name]
        os.kill(hanging, signal.SIGSTOP)
        until(lambda: not alive(hanging) and "2 of 2" in replica.probe("/readyz"))
        assert f"{name} hangs; killing it." in replica.process.log.read_text()


def test_no_process_outlives_the_parent(replica: Several) -> None:
    children = replica.children().values()
    replica.process.kill()
    until(lambda: not any(map(alive, children)))


def test_all_end_if_the_keeper_cannot_begin(tmp_path: Path) -> None:
    made = Several(tmp_path, 2)
    try:
        with socket.create_server((HOST, made.probe_port)):
            made.process.start()
            until(lambda: not made.process.running)
        assert made.process.exit_status == 1
        assert "keeper ends: " in made.process.log.read_text()
        assert not any(map(alive, made.children().values()))
    finally:
        made.close()


def test_all_end_for_a_fresh_start_if_a_task_of_the_keeper_ends(tmp_path: Path) -> None:
    made = Several(tmp_path, 2, "keeper.REFRESH_SECONDS = 'none'")
    try:
        made.process.start()
        until(lambda: not made.process.running)
        assert made.process.exit_status == 1
        assert "ending for a fresh start: certificate: TypeError" in made.process.log.read_text()
        assert not any(map(alive, made.children().values()))
    finally:
        made.close()


def test_told_to_stop_all_end(replica: Several) -> None:
    children = replica.children().values()
    replica.process.terminate()
    until(lambda: not replica.process.running)
    assert replica.process.exit_status == 0, replica.process.log.read_text()
    assert not any(map(alive, children))


def test_large_reviews_are_converted_by_the_replicas_workers(tmp_path: Path) -> None:
    # A busy machine may take longer to start a worker, and to give it its CPU time.
    with running(tmp_path, "worker._WORK_SECONDS = relay._CONVERT_SECONDS = 100.0") as replica:
        clients = [replica.client() for _ in range(4)]
        body = review(1500)
        assert len(body) > 64 << 10, "the event loop converts it itself"
        assert all(converted(each, body) for each in clients)
        keeper = replica.children()["keeper"]
        os.kill(keeper, signal.SIGKILL)
        until(lambda: replica.children()["keeper"] != keeper and "2 of 2" in replica.probe("/readyz"))
        assert all(converted(each, body) for each in clients)


def test_one_answer_counts_the_requests_of_all(replica: Several) -> None:
    clients = [replica.client() for _ in range(8)]
    for each in clients:
        assert converted(each, review())
    total = f'crdkeeper_conversion_requests_total{{outcome="converted",resource="{NAME}"}} 8.0'
    until(lambda: total in replica.probe("/metrics"))
    os.kill(replica.children()["server 0"], signal.SIGKILL)
    until(lambda: "server 0 was killed" in replica.process.log.read_text())
    until(lambda: "2 of 2" in replica.probe("/readyz"))
    assert total in replica.probe("/metrics"), "what the dead one counted is lost"


def test_a_further_process_takes_at_most_40_mib(replica: Several) -> None:
    assert all(converted(replica.client(), review()) for _ in range(20))
    sizes = {name: pss(pid) for name, pid in replica.children().items()}
    print(sizes)
    assert max(sizes.values()) < 40 << 20
