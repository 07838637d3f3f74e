"""Where an object keeps a note: in an annotation, or in labels if that has no room.

All annotations of an object share a limit; for labels there is only the limit of each (ValidateLabels in
k8s.io/apimachinery). So every object has room, and no conversion need fail a list for lack of it: the API
server does not tell a conversion webhook whether an object is read or written. If the object becomes too
large to be stored, etcd refuses the write.

These functions never change an object: what they return shares unchanged parts with it.
"""

import binascii
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from crdkeeper.core.conversion.keptaside import MOST_CHARACTERS
from crdkeeper.core.conversion.metadata import ANNOTATIONS, LABELS, annotations_of, labels_of, with_metadata

PREFIX: Final = "conversion.crdkeeper.dev/"
"""The prefix of a version's annotation; in labels, the version and a dot precede it."""
MAX_BYTES: Final = 200 * 1024
"""The largest annotation, which leaves the rest of `ALL_BYTES` to others."""
ALL_BYTES: Final = 256 * 1024
"""The API server's limit for the keys and values of all annotations of an object (ValidateAnnotationsSize in
k8s.io/apimachinery). It rejects a conversion webhook's answer that exceeds it.
"""
_PIECE: Final = 61
"""Characters of a label's value, besides the required letter at each end (63 are allowed)."""
_END: Final = "x"
_ALPHABET: Final = b"-_"
_LEVEL: Final = 1


def is_note(key: str) -> bool:
    """Whether an annotation or label of that name is for notes."""
    return key.startswith(PREFIX) or f".{PREFIX}" in key


def note_of(value: Mapping[str, Any], version: str) -> Any:
    """The note for a version, whoever wrote it; None if there is none, and not always text."""
    if _noteless(value):
        return None
    text = annotations_of(value).get(PREFIX + version)
    return _joined(labels_of(value), version) if text is None else text


def with_note(value: Mapping[str, Any], version: str, text: str) -> dict[str, Any]:
    """An object, which has no note for the version, with this one."""
    annotations, key = annotations_of(value), PREFIX + version
    if len(text.encode()) <= _room(annotations, key):
        return with_metadata(value, ANNOTATIONS, {**annotations, key: text})
    return with_metadata(value, LABELS, {**labels_of(value), **_split(text, version)})


def without_note(value: Mapping[str, Any], version: str) -> dict[str, Any]:
    """An object without the note for a version."""
    key, prefix = PREFIX + version, _prefix(version)
    return _without(value, lambda name: name == key or name.startswith(prefix))


def without_notes(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object without any notes."""
    return _without(value, is_note)


def fits(annotations: Mapping[str, Any], besides: str) -> bool:
    """Whether the API server allows that many bytes of annotations, not counting the note for a version."""
    key = PREFIX + besides
    return sum(_bytes(name) + _bytes(text) for name, text in annotations.items() if name != key) <= ALL_BYTES


def _room(annotations: Mapping[str, Any], key: str) -> int:
    """How many bytes the annotation `key` can have besides the others, not counting its present text."""
    others = sum(_bytes(name) + _bytes(text) for name, text in annotations.items())
    return max(0, min(MAX_BYTES, ALL_BYTES - others - _bytes(key)))


def _bytes(text: Any) -> int:
    return len(text.encode(errors="surrogatepass")) if isinstance(text, str) else 0


def _prefix(version: str) -> str:
    return f"{version}.{PREFIX}"


def _split(text: str, version: str) -> dict[str, str]:
    packed = b64encode(zlib.compress(text.encode(), _LEVEL), _ALPHABET).decode().rstrip("=")
    prefix = _prefix(version)
    return {
        f"{prefix}{number}": f"{_END}{packed[start : start + _PIECE]}{_END}"
        for number, start in enumerate(range(0, len(packed), _PIECE))
    }


def _joined(labels: Mapping[str, Any], version: str) -> str | None:
    """The text in labels; empty, which is not a note, for labels that crdkeeper did not write."""
    prefix = _prefix(version)
    number = sum(name.startswith(prefix) for name in labels)
    if not number:
        return None
    pieces = [labels.get(f"{prefix}{i}") for i in range(number)]
    packed = "".join(each[1:-1] for each in pieces if isinstance(each, str))
    try:
        content = b64decode(packed + "=" * (-len(packed) % 4), _ALPHABET, validate=True)
        return zlib.decompressobj().decompress(content, MOST_CHARACTERS).decode()
    except (binascii.Error, zlib.error, ValueError):
        return ""


def _noteless(value: Mapping[str, Any]) -> bool:
    """Whether there is certainly no note: a quick check, as most objects have none."""
    return PREFIX not in "\n".join((*annotations_of(value), *labels_of(value)))


def _without(value: Mapping[str, Any], taken: Callable[[str], bool]) -> dict[str, Any]:
    if _noteless(value):
        return dict(value)
    for field, found in ((ANNOTATIONS, annotations_of(value)), (LABELS, labels_of(value))):
        left = {key: each for key, each in found.items() if not taken(key)}
        if len(left) != len(found):
            value = with_metadata(value, field, left)
    return dict(value)


def compared(value: Mapping[str, Any]) -> dict[str, Any]:
    """What rules can have changed in an object, each annotation and label separately.

    Notes are not included: each is created again when the object leaves its version.
    """
    own, labels = (
        {key: each for key, each in found.items() if not is_note(key)}
        for found in (annotations_of(value), labels_of(value))
    )
    return {**value, "metadata": {ANNOTATIONS: own, LABELS: labels}}
