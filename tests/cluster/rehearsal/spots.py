"""Places in a CRD where a change affects objects visibly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

Json = Any


class NotHere(Exception):
    """A change does not apply to this CRD."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A field of the storage version's schema, and its values in some of the objects."""

    owner: Json
    """The schema of what holds it."""
    name: str
    schema: Json
    values: Sequence[Json]
    parents: Sequence[Json]
    """The values that could have it."""
    depth: int


def spots(crd: Json, objects: Sequence[Json]) -> list[Spot]:
    """All fields that at least one of the objects could have."""
    found: list[Spot] = []
    _spots(storage_schema(crd), list(objects), 0, found)
    return found


def _spots(schema: Json, values: Sequence[Json], depth: int, found: list[Spot]) -> None:
    maps = [each for each in values if isinstance(each, dict)]
    if maps:
        for name, each in (schema.get("properties") or {}).items():
            if depth == 0 and name in ("apiVersion", "kind", "metadata", "rehearsalMarker"):
                continue
            below = [value[name] for value in maps if name in value]
            found.append(Spot(schema, name, each, below, maps, depth))
            _spots(each, below, depth + 1, found)
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            known = schema.get("properties") or {}
            entries = [each for value in maps for key, each in value.items() if key not in known]
            _spots(additional, entries, depth + 1, found)
    items = [each for value in values if isinstance(value, list) for each in value]
    if items and isinstance(schema.get("items"), dict):
        _spots(schema["items"], items, depth + 1, found)


def storage_version(crd: Json) -> Json:
    """The entry of the storage version."""
    return next(each for each in crd["spec"]["versions"] if each["storage"])


def storage_schema(crd: Json) -> Json:
    """Its schema."""
    return storage_version(crd)["schema"]["openAPIV3Schema"]


def choose(crd: Json, objects: Sequence[Json], random: Random, fits: Callable[[Spot], bool]) -> Spot:
    """A random one of those that match. Raises NotHere."""
    chosen = [each for each in spots(crd, objects) if fits(each)]
    if not chosen:
        raise NotHere
    return random.choice(chosen)


def holds(*types: str) -> Callable[[Spot], bool]:
    """Whether an object has a value of one of these types there."""
    return lambda spot: bool(spot.values) and spot.schema.get("type") in types
