"""Tries rules on every existing object, without writing: page by page, so that memory stays constant."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crdkeeper.api.versionconversion import (
    SHOWN,
    ConversionFailure,
    ConversionVerification,
    VersionConversionSpec,
)
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.cluster.resources.objects import Endpoint, pages_of
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.conversion.standing import StepResult
from crdkeeper.core.conversion.verification import Fault, Trial, generated
from crdkeeper.core.diagnosis.conversionfailures import is_unconverted
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble, not_permitted
from crdkeeper.core.text import count

GENERATED = 200
"""Objects generated for each version."""

_PAGE = 100


class Outdated(Exception):
    """The rules changed in the meantime, so the result is not needed any more."""


class Unlistable(Exception):
    """Not all objects could be listed. `error` is the API server's answer."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(str(error))
        self.error = error


def try_generated(
    spec: VersionConversionSpec, trial: Trial, schemas: Mapping[str, Schema], found: ConversionVerification
) -> StepResult | None:
    """Try the rules on objects generated from the schemas; None if nothing is lost on the way."""
    lost = judge_generated(trial, list(generated(spec, schemas, GENERATED)), found)
    if lost:
        return StepResult(
            "False", "Lossy", f"Objects generated from the schemas do not survive the round trip: {lost[0]}."
        )
    return None


async def try_live(
    client: Client,
    definition: DefinitionFacts,
    trial: Trial,
    found: ConversionVerification,
    current: Callable[[], bool],
) -> StepResult:
    """Try the rules on all live objects, as long as they are the `current` rules."""
    unseen = ""
    if definition.served_versions:
        try:
            unseen = await judge_live(client, definition, trial, found, current)
        except Unlistable as refused:
            return _unlistable(definition, refused)
        except Outdated:
            return StepResult("Unknown", "Verifying", "The rules changed in the meantime.")
    found.completion_time = client.now()
    objects = count(found.objects, "object")
    if found.failed:
        first = found.failures[0]
        name = "/".join(filter(None, (first.namespace, first.name)))
        message = (
            f"{found.failed} of {objects} do not survive the round trip. The first is {name}, from "
            f"{first.from_version} to {first.to_version}: {first.message}. Fix the objects or the rules."
        )
        return StepResult("False", "ObjectsFail", message)
    message = f"{objects} and {found.generated} generated from the schemas survive all conversions."
    if found.lossy:
        message += f" {count(found.lossy, 'object')} would lose values that the rules drop."
    if found.unmatched:
        first = found.unmatched_objects[0]
        name = "/".join(filter(None, (first.namespace, first.name)))
        message += (
            f" {count(found.unmatched, 'object')} cannot be fully shown at another version, but nothing is "
            f"lost. The first is {name}, {first.from_version} to {first.to_version}: {first.message}. "
            "See status.verification.unmatchedObjects."
        )
    if found.unconvertible:
        message += (
            " Some values that the schemas allow could not be converted: "
            f"{found.unconvertible[0]}. See status.verification.unconvertible."
        )
    return StepResult("True", "Verified", f"{message} {unseen}".strip())


def judge_generated(
    trial: Trial, objects: Sequence[Mapping[str, Any]], found: ConversionVerification
) -> list[str]:
    """Try the rules on generated objects. Returns what is lost on the way, which must be nothing.

    Values that the schemas allow and the rules cannot convert are recorded: live objects may not contain any.
    """
    lost: dict[str, None] = {}
    unconvertible: dict[str, None] = {}
    for value in objects:
        outcome = trial.judge(value)
        found.generated += 1
        for each in (*outcome.faults, *outcome.unmatched):
            said = f"{each.source} to {each.target}: {each.message}"
            (lost if each.lossy else unconvertible).setdefault(said)
    found.unconvertible = list(unconvertible)[:SHOWN]
    return list(lost)


async def judge_live(
    client: Client,
    definition: DefinitionFacts,
    trial: Trial,
    found: ConversionVerification,
    wanted: Callable[[], bool],
) -> str:
    """Try the rules on all objects, each at all versions at which any object is stored.

    Returns what could not be checked; empty if everything was. If the API server currently cannot convert
    some object, every list at another version fails: the object is then checked at the version that it is
    stored at, as long as the list there works. Raises Unlistable, Outdated, Unreachable or ApiError.
    """
    served = definition.served_versions
    stored = [each for each in definition.stored_versions if each in served]
    lists = [
        _List(client, Endpoint(definition.group, version, definition.plural)) for version in stored or served
    ]
    while views := await _views(lists):
        await asyncio.to_thread(_judge_all, views, trial, found)
        # They are as large as the next pages, which come first.
        views.clear()
        if not wanted():
            raise Outdated
    refused = {each.endpoint.version: each.refused for each in lists if each.refused is not None}
    if refused and len(refused) == len(lists):
        raise Unlistable(next(iter(refused.values())))
    return " ".join(
        f"Listing at {version} fails: {each.message.rstrip('.')}." for version, each in refused.items()
    )


class _List:
    """The objects at one version, a page at a time."""

    def __init__(self, client: Client, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.refused: ApiError | None = None
        """Why the rest of the list cannot be read."""
        self._client = client
        self._size = pages_of(_PAGE)
        self._items: deque[Mapping[str, Any]] = deque()
        self._token: str | None = None
        self._more = True

    @property
    def at_page_end(self) -> bool:
        """Whether the next object is on a page that is not there yet."""
        return not self._items and self._more

    async def next(self) -> str | None:
        """The key of the next object; None at the end. Raises Unlistable, ApiError or Unreachable."""
        while not self._items and self._more:
            try:
                page = await self.endpoint.whole_page(self._client, self._token, self._size)
            except ApiError as error:
                if error.code < 500 and error.code not in (403, 404):
                    raise
                if error.code >= 500 and not is_unconverted(error.message):
                    # It may pass, and objects that no other list shows at this version would never be tried.
                    raise Unlistable(error) from None
                self.refused, self._more = error, False
                return None
            self._items.extend(page.items)
            self._token = page.continue_token
            self._more = bool(self._token)
        if not self._items:
            return None
        metadata = self._items[0]["metadata"]
        return f"{metadata.get('namespace') or ''}/{metadata['name']}"

    def take(self) -> Mapping[str, Any]:
        """Take the next object."""
        return self._items.popleft()


async def _views(lists: Sequence[_List]) -> list[list[Mapping[str, Any]]]:
    """The next objects, up to the end of any page, each as every list shows it; empty at the end.

    Lists are in the order of etcd's keys at every version, so they can be merged with one page of each in
    memory. If a list had another order, some objects would be counted more than once.
    """
    views: list[list[Mapping[str, Any]]] = []
    while not views or not any(each.at_page_end for each in lists):
        keys = [await each.next() for each in lists]
        first = min((key for key in keys if key is not None), default=None)
        if first is None:
            break
        views.append([each.take() for each, key in zip(lists, keys, strict=True) if key == first])
    return views


def _judge_all(
    views: Sequence[Sequence[Mapping[str, Any]]], trial: Trial, found: ConversionVerification
) -> None:
    for view in views:
        outcomes = [(value, trial.judge(value)) for value in view]
        found.objects += 1
        found.kept_aside += any(each.kept_aside for _, each in outcomes)
        found.lossy += any(each.lossy for _, each in outcomes)
        found.failed += any(each.faults for _, each in outcomes)
        found.unmatched += any(each.unmatched for _, each in outcomes)
        for value, outcome in outcomes:
            _show(found.failures, value, outcome.faults)
            _show(found.unmatched_objects, value, outcome.unmatched)


def _show(shown: list[ConversionFailure], value: Mapping[str, Any], faults: Sequence[Fault]) -> None:
    shown += [_named(value, each) for each in faults[: max(0, SHOWN - len(shown))]]


def _named(value: Mapping[str, Any], fault: Fault) -> ConversionFailure:
    metadata = value["metadata"]
    return ConversionFailure(
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        from_version=fault.source,
        to_version=fault.target,
        message=fault.message,
    )


def _unlistable(definition: DefinitionFacts, refused: Unlistable) -> StepResult:
    error = refused.error
    if error.code == 403:
        failure = Failure(ProbeTrouble.FORBIDDEN, 403, error.message)
        return StepResult("False", "NotPermitted", not_permitted(definition, failure))
    return StepResult("False", "ObjectsUnreadable", f"The objects cannot be listed: {error.message}")
