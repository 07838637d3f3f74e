"""Which fields have no rule, and whether they may be copied from one version to the other."""

from collections.abc import Mapping
from typing import Final

from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion.actions import Tree
from crdkeeper.core.conversion.alike import both_objects, difference
from crdkeeper.core.conversion.fieldpaths import Steps
from crdkeeper.core.conversion.gaps import HUB, SPOKE, Gap, Missing, Unlike, described

__all__ = ["HUB", "SPOKE", "Coverage", "other_side"]

_OWN: Final = ("apiVersion", "kind", "metadata")


def other_side(side: str) -> str:
    """The spoke for the hub, and vice versa."""
    return SPOKE if side == HUB else HUB


class Coverage:
    """All fields of both sides, after all rules have claimed theirs.

    `gaps` has each field that is neither covered nor alike, with rules that could be added. `exact` is False
    if an existing object may be absent after a round trip.
    """

    def __init__(
        self,
        schemas: Mapping[str, Schema],
        claimed: Mapping[str, Mapping[Steps, str]],
        trees: Mapping[str, Tree],
        *,
        top: bool,
    ) -> None:
        self.exact = True
        self._claimed = claimed
        self._trees = trees
        self._top = top
        self._found: list[Missing | Unlike] = []
        self._object((), schemas[HUB], schemas[SPOKE])
        self.gaps: list[Gap] = described(self._found, _gaps_inside)

    def _object(self, at: Steps, hub: Schema, spoke: Schema) -> None:
        properties = {HUB: hub.get("properties") or {}, SPOKE: spoke.get("properties") or {}}
        for name in dict.fromkeys((*properties[HUB], *properties[SPOKE])):
            if at or not self._top or name not in _OWN:
                self._field((*at, name), properties[HUB].get(name), properties[SPOKE].get(name))

    def _field(self, at: Steps, hub: Schema | None, spoke: Schema | None) -> None:
        schemas = {HUB: hub, SPOKE: spoke}
        open_ = [side for side in (HUB, SPOKE) if schemas[side] is not None and at not in self._claimed[side]]
        if not open_:
            return
        inside = [side for side in open_ if any(claim[: len(at)] == at for claim in self._claimed[side])]
        if len(open_) == 2 and hub is not None and spoke is not None:
            if both_objects(hub, spoke) and (inside or difference(hub, spoke)):
                self._object(at, hub, spoke)
            elif difference(hub, spoke):
                self._found.append(Unlike(at, hub, spoke))
            return
        side = open_[0]
        schema = schemas[side] or {}
        if inside and schema.get("properties"):
            # The other side has no such object: it is covered if all its fields are.
            self._trees[side].skip(at)
            for name, each in schema["properties"].items():
                self._field((*at, name), each if side == HUB else None, each if side == SPOKE else None)
            self.exact = False
            return
        self._found.append(Missing(at, side, schema))


def _gaps_inside(hub: Schema, spoke: Schema) -> list[Gap]:
    """The gaps between two objects within lists or maps that do not have rules yet."""
    trees: Mapping[str, Tree] = {HUB: Tree(), SPOKE: Tree()}
    return Coverage({HUB: hub, SPOKE: spoke}, {HUB: {}, SPOKE: {}}, trees, top=False).gaps
