"""Checks that readers find their way: described packages, mirrored by tests; short files; unique names."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = "operator/crdkeeper"
UNIT_TESTS: Final = "tests/unit"
SOURCES: Final = ("operator", "tests", "demo", "generate", "image", "checks")
MOST_LINES: Final = 400
_LONGEST_SENTENCE: Final = 200


def silent_packages(root: Path) -> Iterator[str]:
    """Packages in operator/crdkeeper whose `__init__.py` does not open with one sentence."""
    for folder in sorted({each.parent for each in (root / PACKAGES).rglob("*.py")}):
        init = folder / "__init__.py"
        name = folder.relative_to(root).as_posix()
        if not init.exists():
            yield f"{name}: there is no __init__.py that says what lives here"
            continue
        said = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        sentence = said.partition("\n\n")[0].replace("\n", " ")
        if not sentence.endswith(".") or len(sentence) > _LONGEST_SENTENCE:
            yield f"{name}/__init__.py: must open with one sentence that says what lives here"


def long_files(root: Path) -> Iterator[str]:
    """Files of more than MOST_LINES lines that do not say why in a line `# Long because …`."""
    for source in SOURCES:
        for file in sorted((root / source).rglob("*.py")):
            lines = file.read_text(encoding="utf-8").splitlines()
            if len(lines) > MOST_LINES and not any(each.startswith("# Long because ") for each in lines):
                yield f"{file.relative_to(root).as_posix()}: {len(lines)} lines, and no reason for it"


def ambiguous_names(root: Path) -> Iterator[str]:
    """Public classes with the same name in two places. In scripting/, our kinds have their API names."""
    places: dict[str, list[str]] = {}
    for file in sorted((root / PACKAGES).rglob("*.py")):
        name = file.relative_to(root / PACKAGES).as_posix()
        if name.startswith("scripting/"):
            continue
        for each in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                places.setdefault(each.name, []).append(name)
    for name, found in places.items():
        if len(found) > 1:
            yield f"{name}: means one thing in each of {', '.join(found)}"


def stray_tests(root: Path) -> Iterator[str]:
    """Directories of unit tests that mirror neither a package nor a source beside operator/."""
    tests = root / UNIT_TESTS
    for folder in sorted({each.parent for each in tests.rglob("test_*.py")} - {tests}):
        name = folder.relative_to(tests)
        if name.parts[0] not in SOURCES and not (root / PACKAGES / name).is_dir():
            yield f"{folder.relative_to(root).as_posix()}: there is no {PACKAGES}/{name.as_posix()}"


def main() -> int:
    """Print the problems; 1 if there are any."""
    found = [*silent_packages(ROOT), *long_files(ROOT), *ambiguous_names(ROOT), *stray_tests(ROOT)]
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
