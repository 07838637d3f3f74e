"""Which of this machine's pip settings the build of the image gets."""

import configparser
from pathlib import Path

import pytest

from image import pip


def test_only_the_way_to_packages_is_passed() -> None:
    listed = [
        "global.index-url='https://mirror.example/simple'",
        "global.user='true'",
        "install.trusted-host='mirror.example'",
        "list.format='columns'",
    ]
    assert pip.effective(listed) == {
        "global": {"index-url": "https://mirror.example/simple"},
        "install": {"trusted-host": "mirror.example"},
    }


def test_the_environment_goes_before_files() -> None:
    listed = [
        ":env:.default-timeout='180'",
        ":env:.proxy='http://proxy.example:3128'",
        "global.timeout='15'",
        "download.proxy='http://other.example:3128'",
    ]
    assert pip.effective(listed) == {"global": {"timeout": "180", "proxy": "http://proxy.example:3128"}}


def test_files_are_mounted_where_they_hide_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, wheels = tmp_path / "ca.crt", tmp_path / "wheels"
    authority.touch()
    wheels.mkdir()
    monkeypatch.setenv("PIP_CERT", str(authority))
    monkeypatch.setenv("PIP_FIND_LINKS", f"{wheels} /nowhere")
    options = pip.mounts(tmp_path)
    mounted = dict(option.removeprefix("--volume=").removesuffix(":ro").split(":") for option in options)
    settings = configparser.RawConfigParser()
    settings.read(next(outside for outside, inside in mounted.items() if inside == "/etc/pip.conf"))
    assert settings["global"]["cert"] == mounted[str(authority)]
    assert settings["global"]["find-links"] == f"{mounted[str(wheels)]} /nowhere"
    assert all(inside.startswith(("/run/", "/etc/pip.conf")) for inside in mounted.values())
