"""A client that keeps the warnings of the last answer."""

import re

import aiohttp

from crdkeeper.cluster.transport.client import Client

_HEADER = re.compile(r'299 - "(.*)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class WarnedClient(Client):
    """For one request at a time."""

    warnings: frozenset[str] = frozenset()

    def _accept(self, response: aiohttp.ClientResponse, id: str) -> None:
        found = map(_HEADER.fullmatch, response.headers.getall("Warning", []))
        self.warnings = frozenset(_ESCAPED.sub(r"\1", each[1]) for each in found if each)
        super()._accept(response, id)
