"""A rehearsal's prediction for an object comes true when the new CRD is applied, for many kinds of changes.

CRDs get real objects; each change is rehearsed, applied and compared, object by object, with the API server's
answers to reads, to writes without changes and to creations, at every version. Then it is undone. Some of the
objects are older than the CRD: they violate it, and lack its defaults in storage.

CRDKEEPER_REHEARSALS sets how many CRDs get ten of the changes each; without it, the changes are distributed
over a few. CRDKEEPER_CORPUS names a directory of CRDs to change besides our own, CRDKEEPER_SEED selects other
objects and changes.
"""

import asyncio
import copy
import os
import uuid
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from crdkeeper.cli.rehearse.output import document
from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.rehearsal.definition import CompiledDefinition, compile_definition
from crdkeeper.core.rehearsal.differences import How, differences
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.core.rehearsal.judgement import Judge
from crdkeeper.core.rehearsal.offline import OfflineRehearsal, rehearse_offline
from crdkeeper.core.rehearsal.report import RehearsalReport, RehearsalVerdict
from crdkeeper.operations.rehearsal.proof import ShadowUse
from crdkeeper.operations.rehearsal.run import Conversions, rehearse
from tests.cluster.rehearsal.changes import CHANGES, LAST, Change, changed
from tests.cluster.rehearsal.comparison import (
    Tally,
    compare,
    compare_report,
    is_undecided,
    kinds_seen,
)
from tests.cluster.rehearsal.definitions import OWN, all_definitions, prepared
from tests.cluster.rehearsal.elder import elder
from tests.cluster.rehearsal.fitting import objects
from tests.cluster.rehearsal.scene import Scene, Seen
from tests.cluster.rehearsal.spots import NotHere, storage_version
from tests.controlplane.cluster import Cluster

Json = Any
COUNT = int(os.environ.get("CRDKEEPER_REHEARSALS", "0"))
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
OBJECTS = int(os.environ.get("CRDKEEPER_REHEARSAL_OBJECTS", "8"))
PER_DEFINITION = 10
AT_ONCE = 9
_HAPPENS = ("Pruned", "Defaulted", "Refused", "WriteRefused", "LostOnWrite")
DEALT = 3
"""How often our own CRDs occur when the changes are distributed."""
SHOWN = 10
TIMEOUT_SECONDS = 300 + 120 * COUNT


class Comparison:
    """One CRD and all its changes."""

    def __init__(
        self,
        client: Client,
        crd: Json,
        random: Random,
        tally: Tally,
        changes: Mapping[str, Change],
        *,
        aged: bool,
    ) -> None:
        """`aged` objects were created when the CRD had neither restrictions nor defaults."""
        self._client = client
        self._changes = changes
        self._aged = aged
        self._crd = crd
        self._random = random
        self._tally = tally
        self._scene = Scene(client, crd)

    async def run(self) -> None:
        """Creates the objects, then makes one change after the other."""
        old = self._scene.marked(self._crd)
        try:
            first = elder(self._crd) if self._aged else self._crd
            if await self._scene.put(self._scene.marked(first)) is not None:
                return
            await self._scene.create(first, list(objects(first, OBJECTS, self._random)))
            if not self._scene.objects or await self._scene.put(old) is not None:
                return
            for name, change in self._changes.items():
                try:
                    new = changed(self._crd, change, self._scene.objects, self._random)
                except NotHere:
                    continue
                await self._changed(name, old, self._scene.marked(new))
        finally:
            await self._scene.delete()

    async def _changed(self, name: str, old: Json, new: Json) -> None:
        live = await get_definition_object(self._client, self._scene.name)
        assert live is not None
        views = {
            each["name"]: await self._scene.views(old, each["name"])
            for each in old["spec"]["versions"]
            if each["served"]
        }
        # Both are compared: what the engine says alone, and what the API server proves.
        use = ShadowUse.AUTO if self._aged else ShadowUse.ALWAYS
        report = await rehearse(self._client, new, Conversions(), use=use)
        self._compare_offline(name, new, live, views, report)
        refusal = await self._scene.put(new)
        self._tally.definitions += 1
        if refusal is not None:
            self._rejected(name, report, refusal)
            return
        assert report.verdict is not RehearsalVerdict.REJECTED, (report.rejections, name)
        await self._compare(name, old, new, live, views, report)
        assert await self._scene.put(old) is None

    def _compare_offline(
        self,
        name: str,
        new: Json,
        live: Json,
        views: Mapping[str, Mapping[str, Json]],
        report: RehearsalReport,
    ) -> None:
        """The prediction without a cluster is the same, if there is a single stored version."""
        if live["status"]["storedVersions"] != [storage_version(live)["name"]]:
            return
        listed = views[storage_version(live)["name"]].values()
        offline = document(rehearse_offline([OfflineRehearsal(new, live)], listed))["items"][0]
        online = document([report])["items"][0]
        for key in ("affected", "verdict"):
            if offline[key] != online[key]:
                self._tally.wrong.append(
                    f"{name} of {self._scene.name}: offline {offline[key]}, live {online[key]}"
                )

    async def _compare_losses(
        self,
        name: str,
        compiled: CompiledDefinition,
        predicted: Mapping[str, set[str]],
        seen: Mapping[str, Seen],
        new: Json,
    ) -> None:
        """Really writes, if the storage version changes, and checks what is lost."""
        source = storage_version(self._crd)["name"]
        if not predicted or source not in compiled.served:
            return
        written = await self._scene.written(new, compiled.storage, source)
        node = compiled.schema(source).node
        for key, after in written.items():
            before = seen[key].reads[source].json()
            lost = {each.exact for each in differences(before, after, node) if each.how is not How.NEW}
            self._tally.affected["LostOnWrite"] += bool(lost)
            if key in predicted and predicted[key] != lost:
                self._tally.wrong.append(f"{name} of {self._scene.name}: lost {lost}, not {predicted[key]}")

    def _rejected(self, name: str, report: RehearsalReport, refusal: ApiError) -> None:
        self._tally.rejected[name] += 1
        causes = (refusal.body.get("details") or {}).get("causes") or ()
        really = {f"{each.get('field', '')}: {each['message']}" for each in causes}
        if set(report.rejections) != really:
            self._tally.wrong.append(f"{name}: rejections {report.rejections}, but really {really}")

    async def _compare(
        self,
        name: str,
        old: Json,
        new: Json,
        live: Json,
        views: Mapping[str, Mapping[str, Json]],
        report: RehearsalReport,
    ) -> None:
        judge = Judge(compile_definition(live), compile_definition(new))
        listed = views[judge.old.endpoint or ""] if judge.old is not None else {}
        sent = {key: again for key, each in listed.items() if (again := judge.to_send(each)) is not None}
        seen = await self._scene.look(new, sent)
        fresh = {each["name"] for each in new["spec"]["versions"]} - {
            each["name"] for each in old["spec"]["versions"]
        }
        really: Counter[EffectKind] = Counter()
        predicted: dict[str, set[str]] = {}
        undecided = 0
        for key, obj in listed.items():
            prediction = judge.predict(obj)
            before = {version: each[key] for version, each in views.items() if key in each}
            kinds = kinds_seen(before, obj, seen[key], fresh)
            really.update(kinds)
            self._tally.objects[name] += 1
            self._tally.answers += len(seen[key].reads) + len(seen[key].writes) + 1
            if is_undecided(prediction.effects):
                undecided += 1
                continue
            for said in compare(prediction, seen[key], kinds):
                self._tally.wrong.append(f"{name} of {self._scene.name}, {key}: {said}")
            if name in LAST:
                predicted[key] = {
                    each.exact for each in prediction.effects if each.kind is EffectKind.LOST_ON_WRITE
                }
        await self._compare_losses(name, judge.new, predicted, seen, new)
        self._tally.undecided[name] += undecided
        self._tally.affected.update({each.label: number for each, number in really.items()})
        if not undecided and EffectKind.INDETERMINATE not in report.tally.affected:
            wrong = compare_report(report, really, len(listed))
            self._tally.wrong += [f"{name} of {self._scene.name}: {each}" for each in wrong]
        elif report.tally.affected.get(EffectKind.INDETERMINATE, 0) != undecided:
            reported = [
                f"{each.message} {each.examples}"
                for each in report.tally.findings()
                if each.kind is EffectKind.INDETERMINATE
            ]
            self._tally.wrong.append(
                f"{name} of {self._scene.name}: doubts {reported} beside {undecided} of ours"
            )


def _scenes() -> list[tuple[Json, dict[str, Change]]]:
    """CRDs and the changes that each of them gets."""
    if COUNT:
        definitions = list(all_definitions())
        others = Random(SEED).sample(definitions[len(OWN) :], len(definitions) - len(OWN))
        return [(each, _some(i)) for i, each in enumerate((*OWN, *others)[:COUNT])]
    scenes = [(each, dict[str, Change]()) for each in OWN * DEALT]
    for i, (name, change) in enumerate(CHANGES.items()):
        scenes[i % len(scenes)][1][name] = change
    for _, changes in scenes[: len(OWN)]:
        changes |= LAST
    return scenes


def _some(number: int) -> dict[str, Change]:
    """Some of the changes, and at the end those that leave a trace."""
    random = Random(SEED * 1000 + number)
    return {name: CHANGES[name] for name in random.sample(list(CHANGES), PER_DEFINITION)} | LAST


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_predictions_come_true(plane: Cluster) -> None:
    tally = Tally()
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(client: Client, number: int, crd: Json, changes: dict[str, Change]) -> None:
        async with limit:
            made = prepared(copy.deepcopy(crd), f"reh-{uuid.uuid4().hex[:8]}.example.com")
            random = Random(SEED * 1000 + number)
            await Comparison(client, made, random, tally, changes, aged=number % 2 == 1).run()

    async with Client(Connection(plane.kubeconfig)) as client, asyncio.TaskGroup() as group:
        for number, (crd, changes) in enumerate(_scenes()):
            group.create_task(one(client, number, crd, changes))
    print(tally)
    assert not tally.wrong, f"{tally}\n" + "\n".join(tally.wrong[:SHOWN])
    # This proves something only if much happens, with many kinds of changes, and little is left open.
    assert len(tally.objects) >= 20, tally
    assert all(tally.affected[each] for each in _HAPPENS), tally
    assert tally.undecided.total() <= 0.1 * tally.objects.total(), tally
