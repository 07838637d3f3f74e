"""What reads of one object at all versions prove, however it is stored."""

from collections.abc import Mapping
from typing import Any, cast

import orjson
import pytest

from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.apiserver.definitions.facts import definition_facts
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.cluster.probes.looking import FirstObject
from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.controllers.versionconversion.reading import read_through
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from tests.cluster.conversion.rules import RULES, SPECS, STRING, crontab_definition, rules_of

GROUP = "example.com"
LEGACY = {**SPECS, "v1beta1": {**SPECS["v1beta1"], "legacy": STRING}}
DROPPING = {**RULES, "v1beta1": [*RULES["v1beta1"], {"spoke": "spec.legacy", "drop": True, "fill": "x"}]}
NEW = {"host": "a", "port": 80, "schedule": "* * * * *", "replicas": 1, "containers": []}
OLD = {"host": "a", "port": "80", "cronSpec": "* * * * *", "replicas": 1, "containers": []}


def crontab(version: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": "mine", "namespace": "default", "resourceVersion": "5"}
    return {"apiVersion": f"{GROUP}/{version}", "kind": "CronTab", "metadata": metadata, "spec": {**spec}}


class Reads:
    """An API server that has one object, and converts it or only leaves out unknown fields."""

    def __init__(self, stored: Mapping[str, Any], storage: str = "v1") -> None:
        self.crd = crontab_definition(GROUP, storage=storage, client_config={}, specs=LEGACY)
        self.crd["metadata"] |= {"uid": "u1", "resourceVersion": "1", "generation": 1}
        self.crd["status"] = {"storedVersions": ["v1beta1", "v1"], "conditions": []}
        spec = VersionConversion.model_validate(rules_of(GROUP, DROPPING)).spec
        made = compile_conversion(spec, schemas_of(self.crd))
        assert isinstance(made, Conversion)
        self.conversion, self.stored = made, stored
        self.converts = True

    async def send(self, method: str, path: str, **_: Any) -> Answer:
        version = path.split("/")[3]
        if self.converts:
            return Answer(200, orjson.dumps(self.conversion.convert(self.stored, version)))
        kept = {key: each for key, each in self.stored["spec"].items() if key in LEGACY[version]}
        return Answer(200, orjson.dumps(crontab(version, kept)))

    async def outcome(self) -> tuple[str, str]:
        found = FirstObject("default", "mine")
        step = await read_through(cast(Client, self), definition_facts(self.crd), found, self.conversion)
        return step.status, step.reason


@pytest.mark.parametrize("storage", ["v1", "v1beta1", "v1alpha1"])
@pytest.mark.parametrize(
    "stored",
    [
        crontab("v1", NEW),
        crontab("v1beta1", {**OLD, "legacy": "x"}),
        crontab("v1beta1", {**OLD, "legacy": "y"}),
        crontab("v1beta1", OLD),
        # Written before there was a conversion: the schema does not allow it, and the rules make it a text.
        crontab("v1beta1", {**OLD, "port": 80}),
        crontab("v1alpha1", {"hostPort": "a:80", "cronSpec": "* * * * *", "containers": {}}),
    ],
    ids=["v1", "filled", "dropped", "without", "mistyped", "v1alpha1"],
)
async def test_an_object_that_is_converted_proves_it_at_whatever_version_it_is_stored(
    stored: dict[str, Any], storage: str
) -> None:
    assert await Reads(stored, storage).outcome() == ("True", "Converting")


@pytest.mark.parametrize("storage", ["v1", "v1beta1"])
@pytest.mark.parametrize(
    "stored", [crontab("v1", NEW), crontab("v1beta1", {**OLD, "legacy": "y"})], ids=["v1", "v1beta1"]
)
async def test_one_that_is_not_converted_yet_proves_nothing(stored: dict[str, Any], storage: str) -> None:
    reads = Reads(stored, storage)
    reads.converts = False
    assert await reads.outcome() == ("Unknown", "NotConvertedYet")


async def test_what_is_stored_at_the_storage_version_only_shows_all_that_is_filled() -> None:
    """Without a conversion, this object lacks at v1beta1 what one that is stored there may lack, too."""
    reads = Reads(crontab("v1", {"replicas": 1}))
    reads.crd["status"]["storedVersions"] = ["v1"]
    assert await reads.outcome() == ("True", "Converting")
    reads.converts = False
    assert await reads.outcome() == ("Unknown", "NotConvertedYet")
