"""Builds the Dockerfile by buildah and writes the image as an OCI archive, with the SBOM beside it."""

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from image import base, pip, sbom
from image.archive import pack
from image.tools import Tools

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / ".run" / "image"


@dataclass(frozen=True)
class Built:
    """One image on disk."""

    archive: Path
    """An OCI archive with one image: for `ctr images import`, `podman load`, `skopeo copy oci-archive:…`."""

    bill: Path
    """What the image is made of: a CycloneDX document."""


def name() -> str:
    """The image as the manifests call it, with its tag."""
    text = (ROOT / "manifests/operator/kustomization.yaml").read_text(encoding="utf-8")
    (image,) = yaml.safe_load(text)["images"]
    return f"{image['newName']}:{image['newTag']}"


def build(directory: Path = OUTPUT, *, python_image: str | None = None) -> Built:
    """The image of the files as they are in the tree, built unless the directory has it already.

    Args:
        directory: where to write `crdkeeper.tar` and `crdkeeper.cdx.json`.
        python_image: the base, as FROM in a Dockerfile names it; None takes Debian's packages.

    Raises:
        BuildFailed: a tool is missing or failed; the message says what to do.
    """
    built = Built(directory / "crdkeeper.tar", directory / "crdkeeper.cdx.json")
    stamp = directory / "built-from"
    base_image = python_image or f"oci-archive:{base.image()}"
    epoch = _epoch()
    key = _key(base_image, epoch)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == key:
        return built
    stamp.unlink(missing_ok=True)
    directory.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="crdkeeper-image-"))
    try:
        layout = scratch / "layout"
        with Tools(scratch / "storage") as tools:
            tools.buildah(
                "build",
                f"--timestamp={epoch}",
                f"--build-arg=SOURCE_DATE_EPOCH={epoch}",
                f"--build-arg=PYTHON_IMAGE={base_image}",
                *pip.mounts(scratch),
                "--tag=crdkeeper",
                str(ROOT),
            )
            tools.buildah("push", "crdkeeper", f"oci:{layout}:{name()}")
        pack(layout, built.archive, name=name(), epoch=epoch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    built.bill.write_text(sbom.text(built.archive, epoch=epoch), encoding="utf-8")
    stamp.write_text(key, encoding="utf-8")
    return built


def _sources() -> list[Path]:
    """The files that the build gets to see: those that .dockerignore lets through."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    named = [ROOT / line.removeprefix("!") for line in lines if line.startswith("!")]
    found = [path for root in named for path in (root.rglob("*") if root.is_dir() else [root])]
    left_out = {"__pycache__", "crdkeeper.egg-info"}
    return sorted(path for path in found if path.is_file() and not left_out & set(path.parts))


def _epoch() -> int:
    """The time of the commit that changed the sources last; of the release's files where git knows none."""
    names = ["Dockerfile", ".dockerignore", *(str(path.relative_to(ROOT)) for path in _sources())]
    done = subprocess.run(
        ["git", "log", "-1", "--format=%ct", "--", *names],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else base.EPOCH


def _key(base_image: str, epoch: int) -> str:
    digest = hashlib.sha256(f"{base_image}\0{epoch}\0{name()}".encode())
    for path in [ROOT / "Dockerfile", *sorted((ROOT / "image").glob("*.py")), *_sources()]:
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
