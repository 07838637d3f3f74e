"""Which fields no rule is about, and whether they may go from one version to the other as they are."""

from collections.abc import Callable, Mapping
from typing import Final

from crdkeeper.core.conversion.actions import Tree
from crdkeeper.core.conversion.alike import both_objects, difference, fields, proposal, resembles
from crdkeeper.core.conversion.fieldpaths import Steps, show
from crdkeeper.core.schema.props import Schema

HUB: Final = "hub"
SPOKE: Final = "spoke"
_OWN: Final = ("apiVersion", "kind", "metadata")


def other_side(side: str) -> str:
    """The spoke's of the hub, and the other way round."""
    return SPOKE if side == HUB else HUB


class Coverage:
    """A look at all fields of both sides, once all rules have claimed theirs.

    `gaps` says of each field that is neither covered nor alike what could be done. `exact` is False if an
    object that is there may come back as if it had never been there.
    """

    def __init__(
        self,
        schemas: Mapping[str, Schema],
        claimed: Mapping[str, Mapping[Steps, str]],
        trees: Mapping[str, Tree],
        find: Callable[[str, Steps], Schema | None],
        *,
        top: bool,
    ) -> None:
        self.gaps: list[str] = []
        self.exact = True
        self._schemas = schemas
        self._claimed = claimed
        self._trees = trees
        self._find = find
        self._top = top
        self._object((), schemas[HUB], schemas[SPOKE])

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
            elif inside or difference(hub, spoke):
                self._unlike(at, hub, spoke)
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
        self._missing(at, side, schema)

    def _missing(self, at: Steps, side: str, schema: Schema) -> None:
        other = other_side(side)
        alike = [
            steps
            for steps in fields(self._schemas[other])
            if self._find(side, steps) is None
            and steps not in self._claimed[other]
            and not difference(schema, self._find(other, steps) or {})
        ]
        path = show(at)
        alike.sort(key=lambda steps: (steps[:-1] != at[:-1], not resembles(steps[-1], at[-1])))
        proposals = [f"{{{side}: {path}, {other}: {show(steps)}}}" for steps in alike[:1]]
        proposals.append(f"{{{side}: {path}, aside: true}}")
        self.gaps.append(
            f"{path}: the {other} has no such field; add a rule such as {' or '.join(proposals)}"
        )

    def _unlike(self, at: Steps, hub: Schema, spoke: Schema) -> None:
        path = show(at)
        rule = f"{{hub: {path}, spoke: {path}, {proposal(hub, spoke)}}}"
        self.gaps.append(f"{path}: {difference(hub, spoke)}; add a rule such as {rule}")
