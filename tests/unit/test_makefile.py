"""What `make help` shows: each target that says what it does."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_help_shows_each_target_that_says_what_it_does() -> None:
    described = re.findall(r"^([\w-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    # Without what a make that runs these tests passes on to others.
    environment = {"PATH": os.environ["PATH"]}
    command = ["make", "--no-print-directory", "help"]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    assert "e2e" in described
    assert [line.split()[0] for line in done.stdout.splitlines()] == described
