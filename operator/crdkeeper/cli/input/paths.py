"""What is at a path, as far as that can be found out.

pathlib's methods raise some errors, take others for "no", and differ between versions of Python. Here, an
error such as a missing permission is left to whoever opens the path, and names it.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_NOTHING: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG))


def is_folder(path: Path) -> bool:
    """Whether it is known to be a folder."""
    return stat.S_ISDIR(_mode(path) or 0)


def may_be_file(path: Path) -> bool:
    """Whether it is a file, or may be one."""
    mode = _mode(path)
    return mode is None or stat.S_ISREG(mode)


def may_exist(path: Path) -> bool:
    """Whether something is there, or may be there."""
    return _mode(path) != 0


def is_symlink(path: Path) -> bool:
    """Whether it is known to be a symlink."""
    try:
        return path.is_symlink()
    except OSError:
        return False


def below(folder: Path, unreadable: Callable[[OSError], None]) -> Iterator[Path]:
    """Everything but folders at any depth below a folder; symlinks to folders are not followed.

    `unreadable` gets the error of each folder that cannot be read.
    """
    for each, _, names in os.walk(folder, onerror=unreadable):
        yield from map(Path(each).joinpath, names)


def _mode(path: Path) -> int | None:
    """What it is, or what it leads to as a symlink; 0 if there is nothing, and None if that is not known."""
    try:
        return path.stat().st_mode
    except OSError as error:
        return 0 if error.errno in _NOTHING else None
