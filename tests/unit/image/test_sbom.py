"""The bill of materials: what is in the image, and nothing that is not."""

import json
from pathlib import Path
from typing import Any

import pytest

from image import archive, sbom
from tests.unit.image import layouts

SITE = "opt/crdkeeper/lib/python3.11/site-packages"
DEBIAN = {
    "usr/lib/os-release": b'ID=debian\nVERSION_ID="12"\n',
    "var/lib/dpkg/status": (
        b"Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:2.36-9+deb12u1\n\n"
        b"Package: gone\nStatus: deinstall ok config-files\nArchitecture: all\nVersion: 1\n\n"
    ),
}
PYTHON = {
    f"{SITE}/Some_Thing-1.0.dist-info/METADATA": (
        b"Name: Some_Thing\nVersion: 1.0\nLicense-Expression: MIT\n\nText"
    ),
    f"{SITE}/Some_Thing-1.0.dist-info/direct_url.json": json.dumps(
        {"archive_info": {"hashes": {"sha256": "ab" * 32}}, "url": "file:///opt/wheels/some"}
    ).encode(),
}


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    layouts.write(tmp_path, [DEBIAN, PYTHON], environment=["PYTHON_VERSION=3.11.9"])
    image = tmp_path / "image.tar"
    archive.pack(tmp_path, image, name="registry.example/some/program:1.2", epoch=0)
    first = sbom.text(image, epoch=0)
    assert sbom.text(image, epoch=0) == first
    decoded: dict[str, Any] = json.loads(first)
    return decoded


def test_packages_have_their_urls(document: dict[str, Any]) -> None:
    assert [component["purl"] for component in document["components"]] == [
        "pkg:deb/debian/libc6@1%3A2.36-9%2Bdeb12u1?arch=amd64&distro=debian-12",
        "pkg:generic/python@3.11.9",
        "pkg:pypi/some-thing@1.0",
    ]


def test_a_wheel_has_its_hash_and_licence(document: dict[str, Any]) -> None:
    wheel = document["components"][-1]
    assert wheel["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    assert wheel["licenses"] == [{"expression": "MIT"}]


def test_it_says_of_which_image_it_is(document: dict[str, Any]) -> None:
    about = document["metadata"]["component"]
    assert (about["name"], about["version"]) == ("registry.example/some/program", "1.2")
    assert about["bom-ref"].endswith("@sha256:" + about["hashes"][0]["content"])
    assert document["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
