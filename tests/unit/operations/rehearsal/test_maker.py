"""A process knows itself and others of its machine, and whether they have ended."""

import subprocess
import sys

import pytest

from crdkeeper.operations.rehearsal.maker import has_ended, this_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are known by Linux's /proc")


def test_a_process_has_ended_when_it_has() -> None:
    script = (
        "from crdkeeper.operations.rehearsal.maker import this_process as t; print(t(), flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        made_by = process.stdout.readline().strip()
        assert not has_ended(made_by)
        process.kill()
        process.wait()
    assert has_ended(made_by)
    assert not has_ended(this_process())


@pytest.mark.parametrize("other", ["", "x", "a.1.2", "a.b.c", "." * 5, "ü.²." + "9" * 5000])
def test_of_other_machines_nothing_is_known(other: str) -> None:
    assert not has_ended(other)
    here = this_process().partition(".")[0]
    assert not has_ended(f"{here}.{other}")


def test_another_process_of_the_same_number_is_another_one() -> None:
    here, number, started = this_process().split(".")
    assert has_ended(f"{here}.{number}.{int(started) - 1}")
