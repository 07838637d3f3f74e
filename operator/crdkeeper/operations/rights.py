"""What our account lacks for a piece of work: found before it begins, and told with the rules to add."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.migration.evidence import lacks_right

DEFINITIONS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")
"""Group and plural of CRDs."""
TO_ADD: Final = "Add these rules to a ClusterRole of this account:"
"""The text that precedes them."""
_REVIEW: Final = Right("create", "authorization.k8s.io", "selfsubjectaccessreviews")


class NotPermitted(Exception):
    """Our account lacks permissions."""

    def __init__(self, missing: Sequence[Right]) -> None:
        self.missing = f"not permitted: {'; '.join(map(str, missing))}"
        self.rules = _rules(missing)
        """The rules to add, as lines of YAML."""
        super().__init__("\n".join((f"{self.missing}. {TO_ADD}", *self.rules)))


def rights_to_read(names: Sequence[str]) -> list[Right]:
    """To read the CRDs of these names; without names, all."""
    return [Right("get", *DEFINITIONS, name=each) for each in names] or [Right("list", *DEFINITIONS)]


async def check_rights(client: Client, needed: Sequence[Right]) -> None:
    """Raises NotPermitted if our account lacks some of these rights; ApiError or Unreachable."""
    try:
        answers = await asyncio.gather(*(missing_rights(client, [each]) for each in needed))
    except ApiError as error:
        if lacks_right(error.code, error.message):
            raise NotPermitted([_REVIEW]) from error
        raise
    missing = [right for answer in answers for right in answer]
    if missing:
        raise NotPermitted(missing)


async def explain(client: Client, error: ApiError, needed: Sequence[Right]) -> None:
    """Raises NotPermitted if an answer means that our account lacks some of these rights."""
    if lacks_right(error.code, error.message):
        await check_rights(client, needed)


@asynccontextmanager
async def explained(client: Client, needed: Sequence[Right]) -> AsyncIterator[None]:
    """Raises NotPermitted instead of an ApiError of the block if our account lacks some of these rights."""
    try:
        yield
    except ApiError as error:
        await explain(client, error, needed)
        raise


def rules_in_line(missing: Sequence[Right]) -> str:
    """The rules to add, for a message of one line."""
    return "; ".join(", ".join(rule) for rule in _grouped(missing))


def _rules(missing: Sequence[Right]) -> list[str]:
    return [f"{'  ' if at else '- '}{line}" for rule in _grouped(missing) for at, line in enumerate(rule)]


def _grouped(missing: Sequence[Right]) -> Iterator[list[str]]:
    """One rule for each resource, by its fields."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for each in missing:
        resource = f"{each.resource}/{each.subresource}" if each.subresource else each.resource
        verbs.setdefault((each.group, resource, each.name), []).append(each.verb)
    for (group, resource, name), of in verbs.items():
        listed = ", ".join(f'"{each}"' for each in dict.fromkeys(of))
        named = [f'resourceNames: ["{name}"]'] if name else []
        yield [f'apiGroups: ["{group}"]', f'resources: ["{resource}"]', *named, f"verbs: [{listed}]"]
