"""Changes of a CRD's versions, and of their fields other than the schema."""

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.cluster.rehearsal.schemachanges import (
    default_added,
    embedded,
    field_removed,
    rule_added,
    type_changed,
)
from tests.cluster.rehearsal.spots import NotHere, Spot, choose, storage_schema, storage_version

Json = Any


def version_added(crd: Json, objects: Sequence[Json], random: Random) -> None:
    new = copy.deepcopy(storage_version(crd)) | {"name": "v9new", "storage": False}
    crd["spec"]["versions"].append(new)
    for change in random.sample((field_removed, default_added, type_changed, rule_added, embedded), 2):
        trial = {"spec": {"versions": [{**new, "storage": True}]}}
        try:
            change(trial, objects, random)
        except NotHere:
            continue


def version_unserved(crd: Json, objects: Sequence[Json], random: Random) -> None:
    others = [each for each in crd["spec"]["versions"] if each["served"]]
    if len(others) < 2:
        raise NotHere
    random.choice(others)["served"] = False


def version_removed(crd: Json, objects: Sequence[Json], random: Random) -> None:
    others = [each for each in crd["spec"]["versions"] if not each["storage"]]
    if not others:
        raise NotHere
    crd["spec"]["versions"].remove(random.choice(others))


def stored_version_removed(crd: Json, objects: Sequence[Json], random: Random) -> None:
    others = [each for each in crd["spec"]["versions"] if not each["storage"]]
    if not others:
        raise NotHere
    crd["spec"]["versions"].remove(storage_version(crd))
    random.choice(others)["storage"] = True


def status_switched(crd: Json, objects: Sequence[Json], random: Random) -> None:
    entry = storage_version(crd)
    subresources = dict(entry.get("subresources") or {})
    if "status" in subresources:
        del subresources["status"]
    else:
        subresources["status"] = {}
    entry["subresources"] = subresources


def scale_added(crd: Json, objects: Sequence[Json], random: Random) -> None:
    def fits(spot: Spot) -> bool:
        return spot.depth == 1 and spot.owner is (storage_schema(crd)["properties"].get("spec"))

    entry = storage_version(crd)
    spot = choose(crd, objects, random, lambda each: fits(each) and bool(each.values))
    if not spot.name.isalnum():
        raise NotHere
    scale = {"specReplicasPath": f".spec.{spot.name}", "statusReplicasPath": ".status.replicas"}
    entry["subresources"] = {**(entry.get("subresources") or {}), "scale": scale}


def scope_changed(crd: Json, objects: Sequence[Json], random: Random) -> None:
    crd["spec"]["scope"] = "Cluster" if crd["spec"]["scope"] == "Namespaced" else "Namespaced"


def storage_flipped(crd: Json, objects: Sequence[Json], random: Random) -> None:
    others = [each for each in crd["spec"]["versions"] if not each["storage"]]
    if not others:
        raise NotHere
    storage_version(crd)["storage"] = False
    random.choice(others)["storage"] = True
