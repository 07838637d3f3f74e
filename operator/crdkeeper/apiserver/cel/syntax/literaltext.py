"""The text of a CEL literal for a value of JSON."""

import json
from typing import Any, Final

_LARGEST: Final = 2**63


def literal_text(value: Any, *, dynamic: bool = False) -> str:
    """A literal for a value.

    Items of a list or map that have several types are written as `dyn`, which Kubernetes asks for; with
    `dynamic`, all items are, so that the literal also compares with what has another type.
    """
    if isinstance(value, list):
        texts = _items(value, dynamic=dynamic)
        return f"[{', '.join(texts)}]"
    if isinstance(value, dict):
        texts = _items(list(value.values()), dynamic=dynamic)
        entries = (f"{_text(str(key))}: {each}" for key, each in zip(value, texts, strict=True))
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LARGEST:
        value = float(value)  # so does the API server
    return _text(value)


def _items(values: list[Any], *, dynamic: bool) -> list[str]:
    texts = [literal_text(each, dynamic=dynamic) for each in values]
    kinds = {type(each) for each in values}
    if dynamic or len(kinds) > 1 or kinds & {dict, list}:
        return [f"dyn({each})" for each in texts]
    return texts


def _text(value: Any) -> str:
    # JSON is CEL, unless it escapes surrogates.
    return json.dumps(value, ensure_ascii=False)
