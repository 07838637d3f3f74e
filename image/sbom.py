"""Says what an image is made of, as CycloneDX: from the image itself, not from what should be in it.

Debian's packages are those that dpkg has on record. Python's packages are those installed in the image,
each with the hash of the wheel that pip installed it from, which `requirements/runtime.txt` allows.
"""

import datetime
import json
import uuid
from collections.abc import Iterator
from email.message import Message
from email.parser import BytesHeaderParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from image.archive import Image, read

_DPKG = "var/lib/dpkg/status"
_RELEASE = "usr/lib/os-release"


def text(archive: Path, *, epoch: int) -> str:
    """The document for an image, the same for the same image.

    Args:
        archive: an OCI archive.
        epoch: when the image was made, in seconds since 1970.
    """
    image = read(archive, _wanted)
    name, _, tag = image.name.rpartition(":")
    components = sorted((*_python(image), *_debian(image)), key=lambda component: component["bom-ref"])
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{image.name}@{image.digest}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "container",
                "bom-ref": f"{image.name}@{image.digest}",
                "name": name,
                "version": tag,
                "hashes": [{"alg": "SHA-256", "content": image.digest.removeprefix("sha256:")}],
            },
        },
        "components": components,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _wanted(path: str) -> bool:
    parts = PurePosixPath(path)
    return path in (_DPKG, _RELEASE) or (
        parts.parent.suffix == ".dist-info" and parts.name in ("METADATA", "direct_url.json")
    )


def _python(image: Image) -> Iterator[dict[str, Any]]:
    for path, data in image.files.items():
        if not path.endswith("/METADATA"):
            continue
        metadata = BytesHeaderParser().parsebytes(data)
        name = str(metadata["Name"]).lower().replace("_", "-").replace(".", "-")
        origin = image.files.get(path.removesuffix("METADATA") + "direct_url.json")
        component = _component(f"pkg:pypi/{name}", metadata)
        if origin is not None:
            digest = json.loads(origin)["archive_info"]["hashes"]["sha256"]
            component["hashes"] = [{"alg": "SHA-256", "content": digest}]
        if metadata["License-Expression"]:
            component["licenses"] = [{"expression": metadata["License-Expression"]}]
        yield component
    if version := _environment(image).get("PYTHON_VERSION"):
        # Python's own images build the interpreter themselves, so that no package manager knows of it.
        yield {
            "type": "application",
            "bom-ref": f"pkg:generic/python@{version}",
            "name": "python",
            "version": version,
            "purl": f"pkg:generic/python@{version}",
        }


def _environment(image: Image) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in image.config["config"].get("Env", []))
    return {name: value for name, _, value in pairs}


def _debian(image: Image) -> Iterator[dict[str, Any]]:
    release = dict(
        line.partition("=")[::2] for line in image.files.get(_RELEASE, b"").decode().splitlines() if line
    )
    distro = f"{release.get('ID', 'debian')}-{release.get('VERSION_ID', '').strip(chr(34))}"
    for stanza in image.files.get(_DPKG, b"").split(b"\n\n"):
        package = BytesHeaderParser().parsebytes(stanza)
        if str(package["Status"]).endswith(" installed"):
            yield _component(
                f"pkg:deb/debian/{package['Package']}",
                package,
                qualifiers=f"?arch={package['Architecture']}&distro={distro}",
            )


def _component(kind: str, package: Message, *, qualifiers: str = "") -> dict[str, Any]:
    """A library by its package URL: https://github.com/package-url/purl-spec."""
    version = str(package["Version"])
    url = f"{kind}@{quote(version, safe='.-_~')}{qualifiers}"
    return {
        "type": "library",
        "bom-ref": url,
        "name": package["Name"] or package["Package"],
        "version": version,
        "purl": url,
    }
