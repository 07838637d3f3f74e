"""Names that Kubernetes allows, with the API server's messages for all others."""

import re

_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_1123 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_1123 = rf"{_LABEL_1123}(\.{_LABEL_1123})*"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"

_IS_LABEL_1035 = re.compile(_LABEL_1035)
_IS_SUBDOMAIN_PART = re.compile(_LABEL_1123)
_IS_KEY = re.compile(_KEY)
_IS_VALUE = re.compile(_VALUE)


def label_errors(name: str) -> list[str]:
    """The errors of a DNS label (RFC 1035)."""
    errors = []
    if _bytes(name) > 63:
        errors.append("must be no more than 63 characters")
    if not _IS_LABEL_1035.fullmatch(name):
        errors.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
            "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
            f"regex used for validation is '{_LABEL_1035}')"
        )
    return errors


def subdomain_errors(name: str, unit: str = "characters") -> list[str]:
    """The errors of a DNS subdomain (RFC 1123)."""
    errors = []
    if _bytes(name) > 253:
        errors.append(f"must be no more than 253 {unit}")
    if not all(_IS_SUBDOMAIN_PART.fullmatch(part) for part in name.split(".")):
        errors.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
            f"validation is '{_SUBDOMAIN_1123}')"
        )
    return errors


_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character"
)
_KEY_EXAMPLES = f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY}')"


def key_errors(key: str) -> list[str]:
    """The errors of a label key."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {_KEY_RULE} {_KEY_EXAMPLES} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    errors = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors.extend(f"prefix part {each}" for each in subdomain_errors(prefix, "bytes"))
    if not name:
        errors.append("name part must be non-empty")
    elif _bytes(name) > 63:
        errors.append("name part must be no more than 63 bytes")
    if not _IS_KEY.fullmatch(name):
        errors.append(f"name part {_KEY_RULE} {_KEY_EXAMPLES}")
    return errors


def value_errors(value: str) -> list[str]:
    """The errors of a label value."""
    errors = []
    if _bytes(value) > 63:
        errors.append("must be no more than 63 bytes")
    if not _IS_VALUE.fullmatch(value):
        errors.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
            f"or '12345', regex used for validation is '{_VALUE}')"
        )
    return errors


def path_segment_errors(name: str, *, prefix: bool = False) -> list[str]:
    """The errors of a name as a segment of a URL path; `prefix` for the beginning of a name."""
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{each}'" for each in "/%" if each in name]


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))
