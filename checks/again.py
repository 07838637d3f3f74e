"""Runs the tests once more that failed beside other suites, now alone: whether it was only the load."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

MOST_TESTS: Final = 3
"""More than these are no matter of load."""


def failed_tests(caches: Path) -> dict[str, list[str]]:
    """The tests that failed last, by suite. `caches` has a cache folder of pytest for each suite."""
    found = {}
    for file in sorted(caches.glob("*/v/cache/lastfailed")):
        if tests := sorted(json.loads(file.read_text(encoding="utf-8"))):
            found[file.relative_to(caches).parts[0]] = tests
    return found


def run_again(caches: Path, failed: Mapping[str, Sequence[str]]) -> int:
    """Runs them one suite after the other. Returns the number of suites that failed again."""
    return sum(
        subprocess.call([sys.executable, "-m", "pytest", "-o", f"cache_dir={caches / suite}", *tests]) != 0
        for suite, tests in failed.items()
    )


def main(caches: Path) -> int:
    """Prints what failed and what came of it. Returns the exit code."""
    failed = failed_tests(caches)
    names = [each for tests in failed.values() for each in tests]
    if not names:
        print("No test failed.")
        return 0
    print(f"{len(names)} failed beside the other suites:", *names, sep="\n  ", flush=True)
    if len(names) > MOST_TESTS:
        print(f"More than {MOST_TESTS} are not run again.")
        return 1
    if run_again(caches, failed):
        return 1
    print("Passed alone. The test has a defect, or what it tests:", *names, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
