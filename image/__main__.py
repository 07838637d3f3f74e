"""`python -m image build|check`: builds the container image; checks that two builds are the same."""

import argparse
import sys
import tempfile
from pathlib import Path

from image.build import OUTPUT, build, name
from image.tools import BuildFailed


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns its exit status."""
    options = _parser().parse_args(arguments)
    try:
        built = build(python_image=options.python_image)
        print(f"{built.archive} ({name()})")
        print(built.bill)
        if options.command == "check":
            return check(options.python_image)
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def check(python_image: str | None) -> int:
    """Builds the image again; 1 if its archive or its bill of materials differs from the first."""
    with tempfile.TemporaryDirectory(prefix="crdkeeper-again-") as directory:
        again = build(Path(directory), python_image=python_image)
        differing = [
            path.name
            for path in (again.archive, again.bill)
            if path.read_bytes() != (OUTPUT / path.name).read_bytes()
        ]
    print(
        f"Two builds differ: {', '.join(differing)}."
        if differing
        else "Two builds are the same, byte by byte."
    )
    return 1 if differing else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m image", description=__doc__)
    parser.add_argument("command", choices=("build", "check"))
    parser.add_argument(
        "--python-image",
        metavar="IMAGE",
        help="the base, as FROM names it; without it one of Debian's packages",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
