"""When processes are replaced, and how many there are."""

from pathlib import Path

import pytest

from crdkeeper.webhook.processes.cpulimit import MOST_PROCESSES, processes_by_limit
from crdkeeper.webhook.processes.restarts import LIVED_SECONDS, Restarts
from crdkeeper.webhook.processes.stalls import Stalls


def test_a_process_that_lived_is_replaced_at_once_and_one_that_keeps_ending_later_and_later() -> None:
    restarts, now = Restarts(), 0.0
    pauses = []
    for _ in range(10):
        restarts.started(now)
        now += 1.0
        pauses.append(restarts.ended(now))
        assert restarts.due == now + pauses[-1]
        now = restarts.due
    assert pauses == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    restarts.started(now)
    assert restarts.ended(now + LIVED_SECONDS) == 0.0


def test_who_does_not_count_up_hangs_after_some_looks() -> None:
    beats = [5, 7]
    stalls = Stalls(2, 3)
    for _ in range(3):
        stalls.look(beats.__getitem__)
        beats[0] += 1
    assert stalls.rows() == []
    stalls.look(beats.__getitem__)
    assert stalls.rows() == [1]
    beats[1] += 1
    stalls.look(beats.__getitem__)
    assert stalls.rows() == []


def test_a_new_process_has_all_the_time_again() -> None:
    stalls = Stalls(1, 3)
    for _ in range(3):
        stalls.look(lambda _: 5)
    stalls.forget(0)
    for _ in range(3):
        stalls.look(lambda _: 5)
        assert stalls.rows() == []
    stalls.look(lambda _: 5)
    assert stalls.rows() == [0]


def group(root: Path, name: str, limit: str) -> None:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.max").write_text(f"{limit}\n")


@pytest.mark.parametrize(
    ("limits", "processes"),
    [
        ({}, 1),
        ({"pod/own": "max 100000"}, 1),
        ({"pod/own": "200000 100000"}, 2),
        ({"pod/own": "150000 100000"}, 2),
        ({"pod/own": "10000 100000"}, 1),
        ({"pod/own": "max 100000", "pod": "300000 100000"}, 3),
        ({"pod/own": "400000 100000", "pod": "300000 100000"}, 3),
        ({"pod/other": "200000 100000"}, 1),
        ({"pod/own": "99900000 100000"}, MOST_PROCESSES),
        ({"pod/own": "nonsense"}, 1),
        ({"pod/own": "1 0"}, 1),
    ],
)
def test_there_are_as_many_processes_as_the_cpu_limit_allows(
    tmp_path: Path, limits: dict[str, str], processes: int
) -> None:
    own = tmp_path / "cgroup"
    own.write_text("12:cpu:/legacy\n0::/pod/own\n")
    for name, limit in limits.items():
        group(tmp_path / "fs", name, limit)
    assert processes_by_limit(tmp_path / "fs", own) == processes


def test_a_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    own.write_text("0::/\n")
    group(tmp_path, "fs", "200000 100000")
    assert processes_by_limit(tmp_path / "fs", own) == 2


def test_without_cgroups_there_is_one(tmp_path: Path) -> None:
    assert processes_by_limit(tmp_path, tmp_path / "none") == 1
