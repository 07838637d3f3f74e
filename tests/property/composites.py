"""A composite in a world that changes at random: each request of the composer is judged when it is made."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.core.composites.inventory import Entry, listed_entries
from crdkeeper.core.composites.ownership import ADOPT, COMPOSITE_LABEL, outlives, resource_of
from crdkeeper.core.composites.plan import Apply, FoundObjects
from crdkeeper.core.templates.namespaces import Identity
from tests.unit.core.composites.scenes import Scene
from tests.unit.core.templates.compositions import server

Json = Any
NAMES: Final = [f"r{i}" for i in range(6)]
ITEMS: Final = "abc"


@dataclass(frozen=True, slots=True)
class Shape:
    """A resource of a random Composition."""

    needs: frozenset[str] = frozenset()
    """The resources that it refers to."""
    each: bool = False
    """Whether it has forEach."""
    when: bool = False
    """Whether it has includeWhen."""
    ready: bool = False
    """Whether it has readyWhen."""
    orphan: bool = False
    recreate: bool = False
    external: bool = False

    def resource(self, name: str, text: str, others: Mapping[str, "Shape"]) -> Json:
        """The resource, as a Composition has it."""
        called = f"${{composite.metadata.name}}-{name}" + ("-${item}" if self.each else "")
        own: Json = {}
        if self.when:
            own["IncludeWhen"] = ["${composite.spec.enabled}"]
        if self.each:
            own["ForEach"] = [{"item": "${composite.spec.names}"}]
        if self.ready:
            own["ReadyWhen"] = [f"${{{'each' if self.each else name}.status.ready == 1}}"]
        if self.orphan:
            own["Deletion"] = "Orphan"
        if self.recreate:
            own["Recreate"] = True
        texts = [
            f"${{string(size({each}))}}" if others[each].each else f"${{{each}.metadata.name}}"
            for each in sorted(self.needs)
        ]
        made = server(name, called=called, text=text, texts=texts, **own)
        if self.external:
            template = made.pop("template")
            reference = {key: template[key] for key in ("apiVersion", "kind")}
            made["externalRef"] = {**reference, "name": template["metadata"]["name"]}
        return made


Graph = Mapping[str, Shape]


class World(Scene):
    """A composite with this graph of resources, each of which refers only to those before it."""

    graph: Graph
    text: str

    def __init__(self) -> None:
        super().__init__(server("r0"))
        self.unready: frozenset[str] = frozenset()
        """Resources whose objects are not ready."""
        # What was left to nobody is taken back when its resource comes again.
        self.value["metadata"]["annotations"] = {ADOPT: ",".join(NAMES)}

    def change(self, graph: Graph, text: str, items: frozenset[str], *, enabled: bool) -> None:
        """Another revision, and another spec of the composite."""
        self.graph, self.text = graph, text
        self.value["spec"] |= {"enabled": enabled, "names": sorted(items)}
        self.compose(*(each.resource(name, text, graph) for name, each in graph.items()))

    def others(self, *, there: bool, unready: frozenset[str]) -> None:
        """What others do: whether external objects exist, and which resources are not ready."""
        self.unready = unready
        self.external.clear()
        for name in self.graph if there else ():
            for each in self.wanted(name) if self.graph[name].external else ():
                of = self._identity(each)
                value = self.put(of.name, uid=f"uid-{each}")
                self.external[of] = self.objects.pop(of)
                self._show_ready(value, name)
        for live in self.own().values():
            self._show_ready(live, resource_of(live))

    def _show_ready(self, live: Json, resource: str) -> None:
        live["status"] = {"ready": 0 if resource in self.unready else 1}

    def _identity(self, short: str) -> Identity:
        return Identity("example.com", "Server", "shop", f"orders-{short}")

    def included(self, name: str) -> bool:
        """Whether the composite is to have the objects of a resource."""
        shape = self.graph[name]
        return (self.value["spec"]["enabled"] or not shape.when) and all(map(self.included, shape.needs))

    def wanted(self, name: str) -> set[str]:
        """The objects of a resource, by their short names."""
        if name not in self.graph or not self.included(name):
            return set()
        return {f"{name}-{each}" for each in self.value["spec"]["names"]} if self.graph[name].each else {name}

    def all_wanted(self) -> set[str]:
        """The objects that the composite is to have, by their short names."""
        return {of for name, each in self.graph.items() if not each.external for of in self.wanted(name)}

    def own(self) -> dict[Identity, Json]:
        """The objects that are the composite's."""
        return {
            identity: live
            for identity, live in self.objects.items()
            if COMPOSITE_LABEL in (live["metadata"].get("labels") or {})
        }

    def own_names(self) -> set[str]:
        """Their short names."""
        return {_short(each) for each in self.own()}

    def listed(self) -> set[str]:
        """The short names of the objects in the status."""
        return set(map(_short, listed_entries(self.value)))

    def unproved(self) -> list[Identity]:
        """What stays only because the status says so: a person has to decide."""
        return [
            identity
            for identity, each in listed_entries(self.value).items()
            if identity in self.objects and self._is_unproved(each)
        ]

    def _is_unproved(self, entry: Entry) -> bool:
        gone = entry.resource not in self.graph or self.graph[entry.resource].external
        return gone and entry.orphan and not outlives(self.objects[entry.identity])

    def _apply(self, found: FoundObjects, apply: Apply) -> None:
        name, short = apply.entry.resource, _short(apply.entry.identity)
        assert short in self.wanted(name), f"{short} is not to be"
        for need in self.graph[name].needs:
            self._assert_is_there(need, short)
        super()._apply(found, apply)
        made = self.objects.get(apply.entry.identity)
        if made is not None:
            self._show_ready(made, name)

    def _assert_is_there(self, need: str, by: str) -> None:
        shape = self.graph[need]
        for each in self.wanted(need):
            live = (self.external if shape.external else self.own()).get(self._identity(each))
            assert live is not None, f"{by} comes before {each}"
            assert shape.external or live["spec"]["text"] == self.text, f"{by} comes before the new {each}"
            assert not shape.ready or live["status"]["ready"] == 1, f"{by} does not wait for {each}"

    def _remove(self, found: FoundObjects, entry: Entry) -> None:
        identity, name = entry.identity, entry.resource
        live, short = self.objects[identity], _short(entry.identity)
        shape = self.graph.get(name, Shape())
        assert entry.orphan == (bool(outlives(live)) or shape.orphan), f"whether {short} stays"
        if "deletionTimestamp" in self.value["metadata"]:
            self._assert_is_not_needed(name)
        elif short in self.all_wanted():
            assert shape.recreate and self.immutable, f"{short} is to be"
        else:
            self._assert_is_last(entry)
        super()._remove(found, entry)

    def _assert_is_not_needed(self, name: str) -> None:
        for each in self.own_names():
            resource = each.partition("-")[0]
            assert name not in self.graph.get(resource, Shape()).needs, f"{name} goes before {each}"

    def _assert_is_last(self, entry: Entry) -> None:
        """All that is wanted is applied, and what was created after it goes before it."""
        wanted = self.all_wanted()
        failed = wanted & set(map(_short, self.failed))
        assert not failed, f"{entry.identity} goes although {sorted(failed)} have failed"
        for identity, each in listed_entries(self.value).items():
            if each.wave > entry.wave and identity in self.own():
                assert _short(identity) in wanted, f"{entry.identity} goes before {identity}"


def _short(identity: Identity) -> str:
    return identity.name.removeprefix("orders-")


def objects_of(names: Collection[str]) -> set[str]:
    """The short names that objects of these resources may have."""
    return {each for name in names for each in (name, *(f"{name}-{item}" for item in ITEMS))}
