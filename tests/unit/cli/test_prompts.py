"""What the user does at a prompt instead of answering."""

from collections.abc import Coroutine
from typing import Any

import click
import pytest

from crdkeeper.cli import main
from crdkeeper.cli.finalizers import command


@pytest.mark.parametrize(
    ("does", "exit_code", "said"), [(KeyboardInterrupt, 130, ""), (EOFError, 1, "Aborted!")]
)
@pytest.mark.parametrize("prompts", [True, False])
def test_an_interrupt_ends_with_its_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    does: type[BaseException],
    exit_code: int,
    said: str,
    prompts: bool,
) -> None:
    def leave(*_: str) -> str:
        raise does

    def ask(work: Coroutine[Any, Any, Any]) -> None:
        work.close()
        if prompts:
            click.confirm("Release it?", err=True)
        leave()

    monkeypatch.setattr(click.termui, "visible_prompt_func", leave)
    monkeypatch.setattr(command, "run_async", ask)

    with pytest.raises(SystemExit) as ended:
        main(["finalizers", "widgets.example.com"])

    assert ended.value.code == exit_code
    assert capsys.readouterr().err.strip() == said
