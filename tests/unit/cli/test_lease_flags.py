"""The operator and the composer have the same flags for the times of their Lease."""

import pytest
from click.testing import CliRunner, Result

from crdkeeper.cli import main
from crdkeeper.process import OperatorOptions

REPLICAS = pytest.mark.parametrize("command", [("run",), ("compose", "run")], ids=" ".join)
FLAGS = "--lease-duration", "--renew-deadline", "--retry-period"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[OperatorOptions]:
    """What processes are started with, which end at once."""
    found: list[OperatorOptions] = []

    async def run_operator(options: OperatorOptions) -> int:
        found.append(options)
        return 0

    for module in ("crdkeeper.process", "crdkeeper.cli.run.command"):
        monkeypatch.setattr(f"{module}.run_operator", run_operator)
    for module in ("crdkeeper.cli.output.logs", "crdkeeper.cli.run.command"):
        monkeypatch.setattr(f"{module}.replica_logs", lambda _format, *, verbose: None)
    return found


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@REPLICAS
@pytest.mark.parametrize(
    ("values", "times"), [((), (15, 10, 2)), (("60", "50", "0.5"), (60, 50, 0.5))], ids=["defaults", "given"]
)
def test_the_times_are_the_processes(
    started: list[OperatorOptions],
    command: tuple[str, ...],
    values: tuple[str, ...],
    times: tuple[float, ...],
) -> None:
    result = run(*command, *(f"{flag}={value}" for flag, value in zip(FLAGS, values, strict=False)))
    assert result.exit_code == 0, result.output
    (options,) = started
    assert (options.lease_duration, options.renew_deadline, options.retry_period) == times


@REPLICAS
@pytest.mark.parametrize("value", ["15.9", "inf", "0", "2147483648"])
def test_a_lease_lasts_for_whole_seconds(
    started: list[OperatorOptions], command: tuple[str, ...], value: str
) -> None:
    result = run(*command, f"--lease-duration={value}", "--renew-deadline=0.5", "--retry-period=0.1")
    assert result.exit_code == 2
    assert "Invalid value for '--lease-duration'" in result.stderr
    assert not started


@REPLICAS
@pytest.mark.parametrize(
    "values", [("10", "10", "2"), ("15", "2", "2"), ("15", "20", "2"), ("15", "10", "11")]
)
def test_the_times_must_be_in_order(
    started: list[OperatorOptions], command: tuple[str, ...], values: tuple[str, ...]
) -> None:
    result = run(*command, *(f"{flag}={value}" for flag, value in zip(FLAGS, values, strict=True)))
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "Error: --lease-duration must be greater than --renew-deadline, and that greater than --retry-period"
    )
    assert not started


@REPLICAS
@pytest.mark.parametrize("flag", ["--lease-duration=0.5", "--renew-deadline=0", "--retry-period=-1"])
def test_what_is_no_time(started: list[OperatorOptions], command: tuple[str, ...], flag: str) -> None:
    result = run(*command, flag)
    assert result.exit_code == 2
    assert f"Invalid value for '{flag.partition('=')[0]}'" in result.stderr.splitlines()[-1]
    assert not started
