"""The exit code of `crdkeeper migrate` for CRDs that it chooses."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cli.migrate import command
from tests.unit.builders import definition


@pytest.mark.parametrize(("stored", "code"), [(("v1", "v2"), 1), (("v2",), 0)])
def test_old_versions_of_a_crd_that_is_left_out_are_a_failure(
    stored: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    unserved = replace(definition(), established=False, stored_versions=stored)

    async def listed(*_: Any) -> list[DefinitionFacts]:
        return [unserved]

    monkeypatch.setattr(command, "Client", lambda _: nullcontext())
    monkeypatch.setattr(command, "list_definitions", listed)
    ended = CliRunner().invoke(command.migrate, ["--selector=a=b"])
    assert ended.exit_code == code, ended.output
    assert f"{unserved.name}: left out, because no version of it is served." in ended.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--min-concurrency=9", "--max-concurrency=8"],
            "--min-concurrency is 9, above --max-concurrency, which is 8",
        ),
        (["--min-concurrency=65"], "above --max-concurrency, which is 64"),
        (["--min-concurrency=0"], "1<=x<=256"),
    ],
)
def test_a_minimum_above_the_maximum_is_refused(arguments: list[str], told: str) -> None:
    ended = CliRunner().invoke(command.migrate, ["certificates.cert-manager.io", *arguments])
    assert ended.exit_code == 2
    assert told in " ".join(ended.output.split())


@pytest.mark.parametrize(
    ("arguments", "index", "told"),
    [
        (["--shard=0"], None, "--shard needs --shards"),
        (["--shards=3", "--shard=0"], None, "--shards needs --name"),
        (["--shards=3", "--shard=0", "--name=run", "--dry-run"], None, "without --dry-run"),
        (["--shards=3", "--shard=0", "--name=run", "pods"], None, "--name is for one resource"),
        (["--shards=3", "--name=run"], None, "$JOB_COMPLETION_INDEX"),
        (["--shards=3", "--name=run"], "1\x1b[2J", "$JOB_COMPLETION_INDEX"),
        (["--shards=3", "--name=run"], "9" * 5000, "$JOB_COMPLETION_INDEX"),
        (["--shards=3", "--name=run"], "3", "the last one is 2"),
        (["--shards=3", "--shard=3", "--name=run"], "0", "the last one is 2"),
        (["--shards=17", "--shard=0", "--name=run"], None, "1<=x<=16"),
        (["--shards=3", "--shard=0", "--name=run", "--max-concurrency=2"], None, "at least one for each"),
    ],
)
def test_shards_that_cannot_be_are_refused(
    arguments: list[str], index: str | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JOB_COMPLETION_INDEX", raising=False)
    if index is not None:
        monkeypatch.setenv("JOB_COMPLETION_INDEX", index)
    ended = CliRunner().invoke(command.migrate, ["certificates.cert-manager.io", *arguments])
    assert ended.exit_code == 2
    assert told in " ".join(ended.output.split())
    assert "\x1b" not in ended.output
