"""A composite in a cluster that is a dictionary: what is planned is done at once."""

import copy
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.appliednote import is_current, settled_digest
from crdkeeper.core.composites.inventory import Entry, listed_entries, with_found
from crdkeeper.core.composites.ownership import Composite, is_ours, release
from crdkeeper.core.composites.plan import Apply, CompositePlan, FoundObjects, plan, plan_deletion
from crdkeeper.core.composites.standing import PassOutcome, status_of, with_inventory
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.mappedstatus import mapped_status
from crdkeeper.core.templates.namespaces import Identity, identity_of
from crdkeeper.core.templates.rendered import Rendering
from crdkeeper.core.templates.rendering import render
from tests.unit.apiserver.objects.samples import decoded
from tests.unit.core.templates.compositions import DATABASE, compiled

Json = Any
MANAGER = "composer"
SCHEMA = ObjectSchema.of(
    decoded(
        {
            "type": "object",
            "properties": {
                "status": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"address": {"type": "string", "maxLength": 12}},
                }
            },
        }
    )
)
"""Of the composite, for its mapped status."""
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def fields_of(value: Json) -> Json:
    """What an API server without schemas notes in managedFields, lists as a whole."""
    if not isinstance(value, dict):
        return {}
    return {f"f:{key}": fields_of(each) for key, each in value.items()}


class Killed(Exception):
    """The composer was killed before a request."""


class Scene:
    """One composite, its objects, and what was done, in order."""

    def __init__(self, *resources: Json, **metadata: Any) -> None:
        self.value: Json = copy.deepcopy(DATABASE)
        self.value["metadata"] |= {"uid": "u1", "generation": 1, **metadata}
        self.objects: dict[Identity, Json] = {}
        self.failed: dict[Identity, Verdict] = {}
        self.done: list[str] = []
        self.held: set[str] = set()
        """Names of objects that wait for a finalizer when they are deleted."""
        self.refused: dict[str, Verdict] = {}
        """By name: why an object cannot be applied."""
        self.unanswered: set[str] = set()
        """Names of objects of which each write is carried out, and its answer is lost."""
        self.unreadable: dict[tuple[str, str], Verdict] = {}
        self.external: dict[Identity, Json] = {}
        """Objects of others, which externalRefs may name."""
        self.unread: dict[Identity, Verdict] = {}
        """Why one of them cannot be read."""
        self.immutable = False
        """Whether the text of an object cannot be changed."""
        self.stripped: set[str] = set()
        """Names of objects from which a webhook takes annotations."""
        self.settled: dict[str, str] = {}
        self.chosen = True
        """Whether a revision can be chosen when the composite is deleted."""
        self.revision = "r1"
        self.told: list[Json] = []
        """Each status that was written, in order."""
        self.left: int | None = None
        """After so many requests the composer is killed."""
        self.compose(*resources)

    def compose(self, *resources: Json, **fields: Any) -> None:
        """Another revision."""
        self.composition = compiled(*resources, **fields)

    def put(self, name: str, kind: str = "Server", **metadata: Any) -> Json:
        """An object of somebody else."""
        api_version = "v1" if kind == "ConfigMap" else "example.com/v1"
        value = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": "shop",
                "uid": f"theirs-{name}",
                "resourceVersion": "1",
                **metadata,
            },
        }
        identity = identity_of(value)
        assert identity is not None
        self.objects[identity] = value
        return value

    def names(self) -> list[str]:
        """The objects that exist, shortened, in the order of their names."""
        return sorted(each.name.removeprefix("orders-") for each in self.objects)

    def run(self, rounds: int = 50) -> CompositePlan:
        """Passes until nothing is left to do; returns the last plan."""
        self.failed = {}
        listed = listed_entries(self.value)
        found = FoundObjects(unreadable=dict(self.unreadable), settled=self.settled, unread=dict(self.unread))
        self._read(found, listed)
        if not Composite.of(self.value).deleting:
            found.unlisted = found.objects.keys() - listed.keys()
        for _ in range(rounds):
            self._read(found, listed)
            rendering, planned = self._plan(found, listed)
            if planned.looks:
                self._look(found, planned.looks)
                continue
            removals = [each for each in planned.removals if each.identity not in self.failed]
            if not planned.applies and not removals:
                self._report(rendering, planned, found)
                return planned
            outcome = PassOutcome(self.revision, planned, found, rendering)
            status = with_inventory(self.value, Composite.of(self.value), outcome, MANAGER, NOW)
            if planned.applies and status is not None:
                self._say(status)
            for apply in planned.applies:
                self._apply(found, apply)
            for each in removals:
                self._remove(found, each)
        raise AssertionError(f"it never ends: {self.done[-10:]}")

    def stop_before_requests(self) -> None:
        """A pass whose time is over before anything is sent."""
        listed, found = listed_entries(self.value), FoundObjects()
        self._read(found, listed)
        rendering, planned = self._plan(found, listed)
        assert planned.applies
        self._report(rendering, planned, found)

    def _plan(
        self, found: FoundObjects, listed: dict[Identity, Entry]
    ) -> tuple[Rendering | None, CompositePlan]:
        composite = Composite.of(self.value)
        if composite.deleting:
            keeps = self.composition.keeps if self.chosen else {}
            known = with_found(listed, found.objects.values(), keeps, {})
            return None, plan_deletion(found, known, keeps)
        rendering = self._render(found)
        failed = self.failed
        return rendering, plan(composite, self.composition, rendering, found, listed, failed, MANAGER)

    def _render(self, found: FoundObjects) -> Rendering:
        while True:
            rendering = render(self.composition, self.value, found.observed())
            named = {each.identity for resource in rendering.resources for each in resource.objects}
            new = named & self.external.keys() - found.external.keys() - found.unread.keys()
            more = {each: self.external[each] for each in new}
            if not more:
                return rendering
            found.external |= more

    def _read(self, found: FoundObjects, listed: dict[Identity, Entry]) -> None:
        for identity, live in self.objects.items():
            labels = live["metadata"].get("labels") or {}
            if labels.get("crdkeeper.dev/composite-uid") == "u1" and identity[:2] not in self.unreadable:
                self._look(found, [identity])

    def _look(self, found: FoundObjects, identities: Collection[Identity]) -> None:
        for each in identities:
            for known in (found.objects, found.strangers):
                known.pop(each, None)
            found.absent.discard(each)
            live = self.objects.get(each)
            if live is None:
                found.absent.add(each)
            elif is_ours(live, "u1"):
                found.objects[each] = live
            else:
                found.strangers[each] = live

    def _send(self) -> None:
        if self.left is not None:
            if not self.left:
                raise Killed
            self.left -= 1

    def _apply(self, found: FoundObjects, apply: Apply) -> None:
        entry, configuration = apply.entry, apply.configuration
        name = entry.identity.name.removeprefix("orders-")
        listed = {each["object"]["name"] for each in self.value["status"]["crdkeeper"]["resources"]}
        assert entry.identity.name in listed, "the inventory comes first"
        self._send()
        if name in self.refused:
            self.failed[entry.identity] = self.refused[name]
            return
        if self.immutable and self._differs(apply):
            if apply.recreate:
                self._remove(found, entry)
            else:
                self.failed[entry.identity] = Verdict(reasons.REFUSED, "spec.text: field is immutable")
            # Once it is gone, it is created in a round of its own.
            return
        live = self.objects.get(entry.identity) or {"metadata": {"uid": f"uid-{len(self.done)}"}}
        made = copy.deepcopy(configuration)
        if name in self.stripped:
            del made["metadata"]["annotations"]
        made["metadata"] |= {"uid": live["metadata"]["uid"], "resourceVersion": str(len(self.done))}
        fields = fields_of({key: each for key, each in made.items() if key not in ("apiVersion", "kind")})
        made["metadata"]["managedFields"] = [
            {"manager": MANAGER, "operation": "Apply", "apiVersion": made["apiVersion"], "fieldsV1": fields}
        ]
        if "status" in live:
            made["status"] = live["status"]
        self.done.append(f"{'change' if entry.identity in self.objects else 'create'} {name}")
        self.objects[entry.identity] = made
        if not is_current(configuration, made, MANAGER):
            self.settled[made["metadata"]["uid"]] = settled_digest(configuration, made, MANAGER)
        self._hear(found, entry.identity)

    def _differs(self, apply: Apply) -> bool:
        live = self.objects.get(apply.entry.identity)
        return live is not None and live["spec"]["text"] != apply.configuration["spec"]["text"]

    def _remove(self, found: FoundObjects, entry: Entry) -> None:
        self._send()
        live = self.objects[entry.identity]
        name = entry.identity.name.removeprefix("orders-")
        self.done.append(f"{'release' if entry.orphan else 'delete'} {name}")
        if entry.orphan:
            patch = release(live, "u1")["metadata"]
            live["metadata"] |= {"ownerReferences": [], "labels": {}, "annotations": {}}
            assert patch["uid"] == live["metadata"]["uid"]
        elif name in self.held:
            live["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/x"]}
        else:
            del self.objects[entry.identity]
        self._hear(found, entry.identity)

    def _hear(self, found: FoundObjects, identity: Identity) -> None:
        """An object was written: it is known again, or has failed in this pass if there is no answer."""
        if identity.name.removeprefix("orders-") in self.unanswered:
            self.failed[identity] = Verdict(reasons.FAILED, "no answer")
        else:
            self._look(found, [identity])

    def _report(self, rendering: Rendering | None, planned: CompositePlan, found: FoundObjects) -> None:
        outcome = PassOutcome(self.revision, planned, found, rendering)
        if rendering is not None:
            mapped = mapped_status(rendering, self.value, SCHEMA)
            outcome = replace(outcome, fields=mapped.status, gaps=mapped.gaps)
        self._say(status_of(self.value, Composite.of(self.value), outcome, MANAGER, NOW))

    def _say(self, status: Json) -> None:
        self.value["status"] = status
        self.told.append(status)

    def condition(self, type_: str) -> tuple[str, str]:
        """Reason and message of a condition."""
        (found,) = (each for each in self.value["status"]["conditions"] if each["type"] == type_)
        return found["reason"], found["message"]

    def drop(self, name: str) -> None:
        """An object is deleted by somebody else."""
        for each in list(self.objects):
            if each.name == f"orders-{name}":
                del self.objects[each]
