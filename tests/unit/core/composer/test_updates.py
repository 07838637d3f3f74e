"""What an update is refused for, in what words, and which versions wait for rules before they are served."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import yaml

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.core.compatibility.change import Impact
from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.plan import ComposerStep, Gathered, Plan, plan
from crdkeeper.core.composer.standing import standing
from crdkeeper.core.composer.update import (
    Rehearsed,
    Update,
    UpdateFacts,
    judge,
    judge_update,
)
from crdkeeper.core.composer.updaterefusal import needs_rehearsal, staged
from crdkeeper.core.composition.acceptance import accept
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.target import WebhookAddress, wanted_conversion
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.rehearsal.definition import compile_definition
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.judgement import Judge
from crdkeeper.core.rehearsal.report import RehearsalReport
from crdkeeper.core.rehearsal.update import applied
from tests.unit.core.composer.test_plan import NOW, OURS, crd
from tests.unit.core.composition.documents import SPEC, document, schema, version

Json = Any
NAME = "databases.platform.example.com"


def spec(**properties: Json) -> Json:
    """The schema of a version whose spec has these properties besides."""
    found = {key: each for key, each in {**SPEC["properties"], **properties}.items() if each is not None}
    return schema({**SPEC, "properties": found})


SIZED = spec(size={"type": "string"}, replicas=None)
"""Of a version that has size instead of replicas."""
ADDRESS = WebhookAddress("crdkeeper-system", "crdkeeper-webhook")
WEBHOOK = wanted_conversion(ADDRESS, NAME, "PEM")
"""Our webhook, of which the VersionConversion says that it serves the rules."""
OTHER = wanted_conversion(WebhookAddress("former", "crdkeeper-webhook"), NAME, "PEM")


def versions(*given: Json, **fields: Any) -> Json:
    return document(*given, metadata=OURS, **fields)


def two(**fields: Any) -> Json:
    """A definition with v1 and the different, referenceable v2."""
    return versions(version("v1", referenceable=False), version("v2", SIZED), **fields)


def conversion(
    *spokes: Json, hub: str = "v2", ready: bool = False, at: int = 1, mode: str = "Execute"
) -> Json:
    """A VersionConversion; with `ready` it converts the CRD of that generation."""
    rules = [{"hub": "spec.size", "aside": True}, {"spoke": "spec.replicas", "aside": True}]
    given = list(spokes) or [{"version": "v1", "rules": rules}]
    resource = {"group": "platform.example.com", "resource": "databases"}
    found = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "VersionConversion",
        "metadata": {"name": NAME, "uid": "3", "generation": 4},
        "spec": {"resource": resource, "hub": hub, "spokes": given, "mode": mode},
    }
    if ready:
        said = {
            "type": "Ready",
            "status": "True",
            "reason": "Converting",
            "message": "",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }
        found["status"] = {
            "observedGeneration": 4,
            "servedGeneration": 4,
            "clientConfig": ADDRESS.client_config(NAME),
            "definitionGeneration": at,
            "conditions": [said],
        }
    return found


def known(
    value: Json,
    live: Json = None,
    *objects: Json,
    rules: Json = None,
    composites: int | None = None,
) -> Gathered:
    """What is known once the update was rehearsed on these composites."""
    definition = CompositeResourceDefinition.model_validate(value)
    judged, update = judge(accept(value), live, rules)
    count = len(objects) if composites is None else composites
    rehearsal = None
    if live is not None and judged.crd is not None and needs_rehearsal(definition, count, update):
        old = compile_definition(live, update.rules.before)
        new = compile_definition(applied(live, judged.crd), update.rules.after, old)
        rehearsal = RehearsalReport(NAME)
        for each in objects:
            effects = Judge(old, new).predict(each).effects
            rehearsal.tally.add("default", each["metadata"]["name"], effects)
    return Gathered(definition, judged, live, count, facts=UpdateFacts(update, Rehearsed(rehearsal), rules))


def composite(name: str, at: str = "v1", **fields: Json) -> Json:
    return {
        "apiVersion": f"platform.example.com/{at}",
        "kind": "Database",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"engine": "MySQL", "replicas": 1, **fields},
    }


def live_with(*given: Json, stored: tuple[str, ...] = ("v1",), by: Json = None) -> Json:
    """The CRD of a definition; `by` is its conversion."""
    found = crd(versions(*given))
    found["status"]["storedVersions"] = list(stored)
    found["spec"]["conversion"] = copy.deepcopy(by or {"strategy": "None"})
    return found


def refusal(gathered: Gathered) -> tuple[str, str]:
    decided = plan(gathered).refusal
    assert decided is not None
    return decided.reason.name, decided.message


def decided(gathered: Gathered) -> Plan:
    found = plan(gathered)
    assert found.step is ComposerStep.APPLY, found
    return found


# What would hurt composites


POSTGRES = versions(version(of=spec(engine={"type": "string", "enum": ["Postgres"]})))


def test_a_change_names_whom_it_hurts_how_many_and_the_remedy() -> None:
    objects = [composite(f"a-{number}") for number in range(7)]
    reason, message = refusal(known(POSTGRES, crd(), *objects))
    assert reason == "BreakingChanges"
    first = ", ".join(f"default/a-{number}" for number in range(5))
    assert (
        f"Tried on 7 composites: 7 ({first} and 2 more): spec.engine: refused if it is created again"
        in message
    )
    assert 'Unsupported value: "MySQL"' in message
    assert "v1 spec.engine: " in message
    assert "(for writers, stored objects). " in message
    assert message.endswith("Or set spec.breakingChanges to Allow.")


def test_a_change_that_hurts_clients_but_no_composite_is_refused() -> None:
    reason, message = refusal(known(POSTGRES, crd(), composite("a", engine="Postgres")))
    assert reason == "BreakingChanges"
    assert message.startswith("Tried on 1 composite: none is affected. v1 spec.engine: ")


def test_without_composites_nobody_is_hurt() -> None:
    assert decided(known(POSTGRES, crd())).held == ()


def test_what_is_safe_is_not_rehearsed() -> None:
    wider = versions(version(of=spec(note={"type": "string"})))
    found = known(wider, crd(), composites=5)
    assert found.facts.rehearsal.report is None
    decided(found)


def test_an_unchanged_definition_is_not_rehearsed() -> None:
    found = known(versions(version()), crd(), composites=5)
    assert not found.facts.update.changes
    decided(found)


def test_what_is_too_large_to_compare_can_stay_as_it_is() -> None:
    rules = [{"rule": f"self.engine != '{'x' * 1_300_000}'"}]
    live = crd()
    made = accept(versions(version(of=schema({**SPEC, "x-kubernetes-validations": rules})))).crd
    assert made is not None
    assert "too large" in judge_update(made, live, None).problem
    assert judge_update(made, applied(live, made), None) == Update()


def test_what_cannot_be_predicted_is_refused() -> None:
    found = known(POSTGRES, crd())
    unclear = RehearsalReport(NAME)
    effect = Effect(EffectKind.INDETERMINATE, "spec", "v1", "the rule may take too long", "too long", "spec")
    unclear.tally.add("default", "a", [effect])
    changes = [replace(each, chosen=Impact.RISKY) for each in found.facts.update.changes]
    facts = UpdateFacts(replace(found.facts.update, changes=changes), Rehearsed(unclear))
    reason, message = refusal(replace(found, facts=facts, composites=1))
    assert reason == "NotPredicted"
    assert "1 (default/a): spec: not predicted, or not wholly: the rule may take too long" in message


def test_a_risk_for_composites_that_cannot_be_listed_for_now() -> None:
    moved = versions(version("v1", referenceable=False), version("v2"))
    found = known(moved, live_with(version("v1"), version("v2", referenceable=False)))
    hidden = Verdict(reasons.NOT_LISTED, "the conversion webhook is away")
    found = replace(found, composites=None, hidden=hidden)
    reason, message = refusal(found)
    assert reason == "CompositesNotListed"
    assert "Composites may exist: the conversion webhook is away. " in message
    conditions = {each.type: each for each in standing(found, plan(found), NOW).conditions}
    assert conditions["Reconciling"].status == "True", "it passes by itself"
    assert conditions["Ready"].reason == "CompositesNotListed"


def test_a_risk_for_composites_that_may_not_be_listed() -> None:
    moved = versions(version("v1", referenceable=False), version("v2"))
    found = known(moved, live_with(version("v1"), version("v2", referenceable=False)))
    hidden = Verdict(reasons.RIGHT_MISSING, "the composer lacks rights")
    reason, message = refusal(replace(found, composites=None, hidden=hidden))
    assert reason == "CompositesUnknown"
    assert "Composites may exist: the composer lacks rights. " in message


# Versions that go


def test_a_stored_version_cannot_go_and_the_remedy_comes_first() -> None:
    gone = versions(version("v2"))
    live = live_with(version("v1", referenceable=False, served=False), version("v2"), stored=("v1", "v2"))
    reason, message = refusal(known(gone, live, composites=0))
    assert reason == "VersionStored"
    assert "status.storedVersions still has v1" in message
    assert "StorageCurrent" in message
    allowed = versions(version("v2"), breakingChanges="Allow")
    assert refusal(known(allowed, live, composites=0))[0] == "VersionStored"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, None, "v1 is served: set deprecated: true, then served: false, before you remove it"),
        ({}, {"served": False}, "v1 is not deprecated: set deprecated: true first"),
        ({"deprecated": True}, {"served": False}, ""),
        ({"deprecated": True}, None, "v1 is served: "),
        ({"served": False}, None, ""),
    ],
)
def test_a_version_goes_in_steps(before: Json, after: Json, said: str) -> None:
    live = live_with(version("v1", referenceable=False, **before), version("v2"), stored=("v2",))
    kept = [version("v1", referenceable=False, **after)] if after is not None else []
    found = known(versions(*kept, version("v2")), live, composite("a", "v2"))
    if said:
        reason, message = refusal(found)
        assert reason == "VersionInUse"
        assert message.startswith(f"1 composite: {said}")
    else:
        decided(found)
    # Without composites, no client loses anything.
    decided(replace(found, composites=0))


def test_a_version_that_managed_fields_name_is_not_dropped() -> None:
    live = live_with(version("v1", referenceable=False, served=False), version("v2"), stored=("v2",))
    applied_once = composite("a", "v2")
    applied_once["metadata"]["managedFields"] = [{"manager": "m", "apiVersion": "platform.example.com/v1"}]
    reason, message = refusal(known(versions(version("v2")), live, applied_once))
    assert reason == "BreakingChanges"
    assert f"crdkeeper migrate {NAME} --managed-fields retarget --verify full" in message


# Between versions


@pytest.mark.parametrize("live", [None, crd()], ids=["new", "existing"])
def test_versions_that_differ_need_a_conversion_which_is_proposed(live: Json) -> None:
    reason, message = refusal(known(two(), live))
    assert reason == "ConversionMissing"
    assert "v1 and v2: spec.replicas: only v1 has the field" in message
    proposal = yaml.safe_load(message.partition("such as ")[2].partition(" Or set ")[0])
    assert proposal["metadata"] == {"name": NAME}
    made = accept(two()).crd
    assert made is not None
    compiled = compile_conversion(VersionConversionSpec.model_validate(proposal["spec"]), schemas_of(made))
    assert isinstance(compiled, Conversion)


def test_loss_between_versions_can_be_allowed() -> None:
    assert decided(known(two(breakingChanges="Allow"), crd(), composites=2)).held == ()


def test_versions_alike_need_no_conversion() -> None:
    assert decided(known(versions(version("v1", referenceable=False), version("v2")))).held == ()


def test_what_another_webhook_converts_is_left_to_it() -> None:
    found = known(two(), live_with(version(), by=OTHER))
    assert decided(found).held == ()


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (conversion({"version": "v1"}), "add a rule such as"),
        (conversion(hub="v3"), "spec.hub: v3 is none of the CRD's versions"),
        (conversion(mode="Plan"), "spec.mode is Plan"),
        (conversion() | {"spec": {"hub": 1}}, "hub: Input should be a valid string"),
    ],
)
def test_rules_that_do_not_convert(rules: Json, said: str) -> None:
    reason, message = refusal(known(two(), crd(), rules=rules))
    assert reason == "ConversionIncomplete"
    assert said in message


def test_rules_of_a_definition_that_has_not_changed_are_none_of_its_business() -> None:
    both = version("v1", referenceable=False), version("v2", SIZED)
    live = live_with(*both, by=WEBHOOK)
    decided(known(versions(*both), live, rules=conversion({"version": "v1"}, ready=True)))


def test_a_new_version_is_not_served_before_the_rules_convert_it() -> None:
    live, rules = crd(), conversion()
    found = known(two(), live, composite("a"), rules=rules)
    made = decided(found)
    assert made.held == ("v2",)
    status = standing(found, made, NOW)
    accepted = next(each for each in status.conditions if each.type == "Accepted")
    assert (accepted.status, accepted.reason) == ("Unknown", "ConversionPending")
    assert "it has no status yet" in accepted.message
    assert "Reconciling" in {each.type for each in status.conditions}

    assert found.judged.crd is not None
    first = staged(found.judged.crd, live, made.held)
    assert [(each["name"], each["served"], each["storage"]) for each in first["spec"]["versions"]] == [
        ("v1", True, True),
        ("v2", False, False),
    ]
    # The operator has verified the rules on that, and points the CRD to its webhook.
    second = applied(live, first)
    second["metadata"]["generation"] = 7
    second["spec"]["conversion"] = WEBHOOK
    for at, held in ((6, ("v2",)), (7, ())):
        ready = conversion(ready=True, at=at)
        assert decided(known(two(), second, composite("a"), rules=ready)).held == held


def test_a_new_definition_with_two_versions_serves_the_referenceable_one_first() -> None:
    found = known(two(), rules=conversion())
    made = decided(found)
    assert made.held == ("v1",)
    assert found.judged.crd is not None
    first = staged(found.judged.crd, None, made.held)
    assert [(each["name"], each["served"], each["storage"]) for each in first["spec"]["versions"]] == [
        ("v1", False, False),
        ("v2", True, True),
    ]
    assert found.judged.crd["spec"]["versions"][0]["served"]


def test_a_version_that_is_replaced_stays_served_until_the_new_one_is() -> None:
    live = live_with(version("v1", deprecated=True))
    value = versions(version("v1", referenceable=False, served=False), version("v2", SIZED))
    found = known(value, live, composites=0)
    assert found.judged.crd is not None
    first = staged(found.judged.crd, live, ("v2",))
    assert [(each["served"], each["storage"]) for each in first["spec"]["versions"]] == [
        (True, True),
        (False, False),
    ]


def test_dropping_a_version_does_not_wait_for_its_rules_to_go() -> None:
    live = live_with(
        version("v1", referenceable=False, served=False),
        version("v2", SIZED),
        stored=("v2",),
        by=WEBHOOK,
    )
    rules = conversion(ready=True)
    decided(known(versions(version("v2", SIZED)), live, composite("a", "v2"), rules=rules))


def test_errors_of_the_api_server_for_an_update_come_first() -> None:
    live = crd()
    other = copy.deepcopy(document(metadata=OURS))
    other["spec"]["names"]["kind"] = "Other"
    reason, message = refusal(known(other, live))
    assert reason == "Invalid"
    assert 'spec.names.kind: Invalid value: "Other": field is immutable' in message
