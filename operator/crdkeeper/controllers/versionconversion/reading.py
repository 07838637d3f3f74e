"""Proves a conversion by real reads: the same object at each served version, as the rules convert it."""

from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.probes.looking import FirstObject, look
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.conversion.standing import StepResult
from crdkeeper.core.conversion.values import Unconvertible
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble

_OWN = ("apiVersion", "kind", "metadata")


async def read_through(
    client: Client, definition: DefinitionFacts, found: FirstObject, conversion: Conversion
) -> StepResult:
    """Read an object at each served version. Never raises for an answer of the API server.

    It sends GET requests, because a list may be served from a cache of objects that were converted earlier.
    """
    read: dict[str, Mapping[str, Any]] = {}
    for version in sorted(definition.served_versions, key=lambda each: each != definition.storage_version):
        path = Endpoint(definition.group, version, definition.plural).path(found.namespace, found.name)
        answer = await look(client, path)
        if isinstance(answer, Failure):
            if answer.trouble is ProbeTrouble.NOT_FOUND:
                return StepResult("Unknown", "Changing", f"{found} or {version} was removed; checking again.")
            return StepResult("False", "ReadFailed", f"{found} cannot be read at {version}: {answer.message}")
        read[version] = answer.json()
    base, *others = read
    for version in others:
        try:
            wanted = conversion.convert(read[base], version)
        except Unconvertible as error:
            return StepResult("False", "ReadFailed", f"{found} cannot be converted to {version}: {error}")
        # Only what is stored at a version may show there what the rules would not make.
        stored = version in definition.stored_versions
        if not (
            _shows(read[version], wanted)
            or (stored and _came_from(read[version], read[base], wanted, conversion))
        ):
            if read[base]["metadata"]["resourceVersion"] != read[version]["metadata"]["resourceVersion"]:
                return StepResult(
                    "Unknown", "Changing", f"{found} was changed in the meantime; checking again."
                )
            message = (
                f"{found} read at {version} differs from what the rules produce: the API server may need a "
                f"moment."
            )
            return StepResult("Unknown", "NotConvertedYet", message)
    return StepResult("True", "Converting", f"{found} was read at {', '.join(read)}.")


def _shows(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_within(wanted[key], found.get(key)) for key in wanted if key not in _OWN)


def _came_from(
    found: Mapping[str, Any], base: Mapping[str, Any], wanted: Mapping[str, Any], conversion: Conversion
) -> bool:
    """Whether `base` was made of `found`, which differs from `wanted` only by what that loses.

    It is stored like that: rules may drop a field, and may change a value that the schema does not allow.
    """
    version, other = (str(each["apiVersion"]).rpartition("/")[2] for each in (found, base))
    try:
        there = conversion.convert(found, other)
        return _shows(base, there) and _shows(conversion.convert(there, version), wanted)
    except Unconvertible:
        return False


def _within(wanted: Any, found: Any) -> bool:
    """Whether all of `wanted` was read; the API server may have added defaults."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return all(key in found and _within(each, found[key]) for key, each in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_within, wanted, found))
    return bool(wanted == found)
