"""The image as a cluster runs it: with a read-only root, as a user id that none of its files knows."""

import json
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from image.archive import read
from image.build import ROOT, Built, build, name
from image.tools import missing

UID = 1_000_650_000  # as OpenShift chooses them: in no range of the image's own

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def built() -> Built:
    return build()


@pytest.fixture(scope="module")
def config(built: Built) -> dict[str, Any]:
    configured: dict[str, Any] = read(built.archive, lambda path: False).config["config"]
    return configured


@pytest.fixture(scope="module")
def root(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's files, as a container sees them."""
    layout, files = tmp_path_factory.mktemp("layout"), tmp_path_factory.mktemp("root")
    with tarfile.open(built.archive) as tar:
        tar.extractall(layout, filter="data")
    (entry,) = json.loads((layout / "index.json").read_bytes())["manifests"]
    for layer in json.loads(blob(layout, entry["digest"]).read_bytes())["layers"]:
        with tarfile.open(blob(layout, layer["digest"])) as tar:
            tar.extractall(files, filter="fully_trusted")
    files.chmod(0o755)
    return files


def blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def run(root: Path, config: dict[str, Any], *command: str) -> str:
    """Runs a command in the image like the kubelet, except cgroups and the network."""
    in_image = (
        'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec chroot --userspec="$1" "$0" "${@:2}"'
    )
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", in_image, root, f"{UID}:0", *command],
        check=False,
        capture_output=True,
        text=True,
        env={**dict(entry.split("=", 1) for entry in config["Env"]), "PATH": f"{path_of(config)}:/usr/sbin"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def path_of(config: dict[str, Any]) -> str:
    (path,) = (entry.removeprefix("PATH=") for entry in config["Env"] if entry.startswith("PATH="))
    return str(path)


def test_it_is_called_as_in_the_manifests(built: Built) -> None:
    with tarfile.open(built.archive) as tar:
        index = tar.extractfile("index.json")
        assert index is not None
        (entry,) = json.load(index)["manifests"]
    assert entry["annotations"] == {
        "io.containerd.image.name": name(),  # required by containerd
        "org.opencontainers.image.ref.name": name(),  # required by all others
    }


def test_any_user_runs_it_on_a_read_only_root(root: Path, config: dict[str, Any]) -> None:
    for command in ("run", "webhook", "migrate"):
        assert f"crdkeeper {command}" in run(root, config, *config["Entrypoint"], command, "--help")


def test_its_user_is_a_number_other_than_root(config: dict[str, Any]) -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", config["User"])


def test_nothing_is_compiled_at_the_start(root: Path, config: dict[str, Any]) -> None:
    """Otherwise Python would compile on each start, because it cannot write the result."""
    reported = run(root, config, "python", "-v", "/opt/crdkeeper/bin/crdkeeper", "run", "--help")
    read_from_source = {line for line in reported.splitlines() if line.startswith("# code object from /")}
    assert "# code object from '/opt/crdkeeper/bytecode/" in reported
    assert not read_from_source


def test_the_tools_that_install_are_left_out(root: Path, config: dict[str, Any]) -> None:
    packages = {path.name for path in root.glob("opt/crdkeeper/lib/python3*/site-packages/*")}
    assert "crdkeeper" in packages
    assert not packages & {"pip", "setuptools", "wheel"}


def test_the_bill_names_what_is_pinned(built: Built) -> None:
    bill = json.loads(built.bill.read_text(encoding="utf-8"))
    pinned = (ROOT / "requirements/runtime.txt").read_text(encoding="utf-8")
    hashes = {
        component["purl"].split("/", 1)[1]: component["hashes"][0]["content"]
        for component in bill["components"]
        if component["purl"].startswith("pkg:pypi/")
    }
    own = next(package for package in hashes if package.startswith("crdkeeper@"))
    del hashes[own]  # made from the sources, not downloaded
    assert {package.replace("@", "==") for package in hashes} == set(
        re.findall(r"^([\w.-]+==\S+)", pinned, re.MULTILINE)
    )
    for package, digest in hashes.items():
        (entry,) = re.findall(
            rf"^{re.escape(package.replace('@', '=='))} \\\n((?:    --hash\S+.*\n)+)", pinned, re.MULTILINE
        )
        assert f"sha256:{digest}" in entry
    assert any(component["purl"].startswith("pkg:deb/debian/libc6@") for component in bill["components"])
