"""The functions on URLs (k8s.io/apiserver pkg/cel/library/urls.go)."""

from collections.abc import Callable
from typing import Final

from crdkeeper.apiserver.cel.values.containers import CelMap
from crdkeeper.apiserver.cel.values.overloads import Overload, Table
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate, Opaque, Value, no_overload
from crdkeeper.apiserver.golang.text import quote
from crdkeeper.apiserver.golang.urls import Url, UrlError, parse, parse_request


class CelUrl(Opaque):
    """A URL as a value of CEL."""

    __slots__ = ("url",)
    type_name = "kubernetes.URL"

    def __init__(self, url: Url) -> None:
        self.url = url

    def equals(self, other: Value) -> bool:
        """URLs are equal if they have the same text; there is no overload for other types."""
        if type(other) is not CelUrl:
            raise no_overload()
        return self.url.text() == other.url.text()


def request_problem(text: str) -> str | None:
    """The error of url.ParseRequestURI for a text, or None."""
    try:
        parse_request(text)
    except UrlError as error:
        return f"parse {quote(text)}: {error.message}"
    return None


def _parses(text: str) -> bool:
    try:
        parse(text)
    except UrlError:
        return False
    return True


def _url(text: str) -> CelUrl:
    problem = request_problem(text)
    if problem is None:
        try:
            return CelUrl(parse(text))
        except UrlError as error:
            # An error can now only be in the fragment, or in what precedes it.
            before = text.split("#", 1)[0]
            written = text if _parses(before) else before
            problem = f"parse {quote(written)}: {error.message}"
    raise EvaluationError(f"URL parse error during conversion from string: {problem}")


def _decoded(text: str) -> str:
    try:
        return text.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise Indeterminate("a part of a URL that is not UTF-8") from None


def _part(part: Callable[[Url], str]) -> tuple[Overload, ...]:
    return (Overload((CelUrl.type_name,), lambda value: _decoded(part(value.url))),)


def _query(value: CelUrl) -> CelMap:
    found = value.url.parameters()
    return CelMap.of_strings({_decoded(key): list(map(_decoded, texts)) for key, texts in found.items()})


MEMBERS: Final[Table] = {
    "getScheme": _part(lambda url: url.scheme),
    "getHost": _part(lambda url: url.host),
    "getHostname": _part(lambda url: url.hostname_and_port()[0]),
    "getPort": _part(lambda url: url.hostname_and_port()[1]),
    "getEscapedPath": _part(Url.escaped_path),
    "getQuery": (Overload((CelUrl.type_name,), _query),),
}
GLOBALS: Final[Table] = {
    "url": (Overload(("string",), _url),),
    "isURL": (Overload(("string",), lambda text: request_problem(text) is None),),
}
