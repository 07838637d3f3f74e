"""Changes that only the comparison of parts with whole objects has."""

import contextlib
import copy
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.cluster.rehearsal.changes import Change
from tests.cluster.rehearsal.definitions import OWN
from tests.cluster.rehearsal.schemachanges import field_removed, text_tightened
from tests.cluster.rehearsal.spots import NotHere, Spot, choose
from tests.cluster.rehearsal.versionchanges import version_added

Json = Any


def _alone(crd: Json) -> Json:
    """Without the other versions, which differ so much that no part would do for one more."""
    found = copy.deepcopy(crd)
    found["spec"]["versions"] = [each for each in found["spec"]["versions"] if each["storage"]]
    return found


FEW: tuple[Json, ...] = (*OWN, _alone(OWN[0]))
"""The CRDs that have what these changes need."""


def order_changed(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """Another order, and perhaps a change."""
    _several(crd).reverse()
    _perhaps(field_removed, crd, objects, random)


def schemas_swapped(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """Versions take the places, and so the schemas, of others."""
    found = _several(crd)
    schemas = [each["schema"] for each in found]
    found.reverse()
    for each, schema in zip(found, schemas, strict=True):
        each["schema"] = schema


def entry_required(crd: Json, objects: Sequence[Json], random: Random) -> None:
    """A map requires an entry, which some objects have, and perhaps its values change, too."""
    spot = _map(crd, objects, random)
    spot.schema["required"] = [_key(spot, random)]
    if random.random() < 0.5:
        values = spot.schema["additionalProperties"]
        values["nullable"] = not values.get("nullable")


def version_added_and_more(crd: Json, objects: Sequence[Json], random: Random) -> None:
    version_added(crd, objects, random)
    for change in (field_removed, text_tightened):
        _perhaps(change, crd, objects, random)


def _several(crd: Json) -> list[Json]:
    found: list[Json] = crd["spec"]["versions"]
    if len(found) < 2:
        raise NotHere
    return found


def _perhaps(change: Change, crd: Json, objects: Sequence[Json], random: Random) -> None:
    if random.random() < 0.5:
        with contextlib.suppress(NotHere):
            change(crd, objects, random)


def _map(crd: Json, objects: Sequence[Json], random: Random) -> Spot:
    def fits(spot: Spot) -> bool:
        values = spot.schema.get("additionalProperties")
        return isinstance(values, dict) and any(isinstance(each, dict) for each in spot.values)

    return choose(crd, objects, random, fits)


def _key(spot: Spot, random: Random) -> str:
    keys: set[str] = {key for each in spot.values if isinstance(each, dict) for key in each}
    return random.choice(sorted({*keys, "absent"}))


RARE: dict[str, Change] = {
    "another order of versions": order_changed,
    "versions in the places of others": schemas_swapped,
    "an entry of a map required": entry_required,
    "a version added, and more": version_added_and_more,
}
