"""Gives the build this machine's access to Python packages: mirror, proxy, certificates."""

import ast
import configparser
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

_PASSED = {
    "cert",
    "client-cert",
    "extra-index-url",
    "find-links",
    "index-url",
    "no-index",
    "proxy",
    "retries",
    "timeout",
    "trusted-host",
}
_ALIASES = {"default-timeout": "timeout"}
_SECTIONS = ("global", "download", "install")
_INSIDE = "/run/crdkeeper-pip"


def mounts(directory: Path) -> list[str]:
    """Options of `buildah build` that lend it the settings of this machine's pip.

    Args:
        directory: where to write the file that is mounted; it must stay while the build runs.
    """
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    ).stdout
    chosen = effective(listed.splitlines())
    if not chosen:
        return []
    lent = {str(path): f"{_INSIDE}/{number}" for number, path in enumerate(_files(chosen))}
    parser = configparser.RawConfigParser()
    for section, values in chosen.items():
        parser[section] = {
            key: " ".join(lent.get(word, word) for word in value.split()) for key, value in values.items()
        }
    path = directory / "pip.conf"
    with path.open("w", encoding="utf-8") as file:
        parser.write(file)
    lent[str(path)] = "/etc/pip.conf"
    return [f"--volume={outside}:{inside}:ro" for outside, inside in lent.items()]


def effective(listed: Iterable[str]) -> dict[str, dict[str, str]]:
    """What `pip config list` shows of the way to packages, by section; the environment goes before files."""
    chosen: dict[str, dict[str, str]] = {}
    from_environment: dict[str, str] = {}
    for line in listed:
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        key = _ALIASES.get(key, key)
        if key not in _PASSED:
            continue
        if section == ":env:":
            from_environment[key] = ast.literal_eval(value)
        elif section in _SECTIONS:
            chosen.setdefault(section, {})[key] = ast.literal_eval(value)
    if from_environment:
        for settings in chosen.values():
            for key in from_environment:
                settings.pop(key, None)
        chosen.setdefault("global", {}).update(from_environment)
    return {section: values for section, values in chosen.items() if values}


def _files(chosen: Mapping[str, Mapping[str, str]]) -> list[Path]:
    """The files and folders of this machine that settings name."""
    words = {word for values in chosen.values() for value in values.values() for word in value.split()}
    return sorted(path for path in map(Path, words) if path.is_absolute() and path.exists())
