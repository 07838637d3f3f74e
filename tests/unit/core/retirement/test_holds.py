"""What holds a step: everything in the cluster that names the version, with what to do about it."""

from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.api.meta import DEFINITION_UID
from crdkeeper.api.versionretirement import RetirementHold
from crdkeeper.core.diagnosis.conversionfacts import Read, VersionRead
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.retirement.evidence import Obstacle
from crdkeeper.core.retirement.holds import (
    as_told,
    composition_holds,
    conversion_holds,
    definition_holds,
    hidden,
    named_kinds,
    webhook_holds,
)
from tests.unit.builders import crd, definition


def conversion(hub: str, *spokes: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"hub": hub, "spokes": [{"version": each} for each in spokes]},
    }


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (conversion("v1", "v2"), "as its hub"),
        (conversion("v2", "v1", "v0"), "Remove the spoke"),
        (conversion("v2", "v1"), "Delete it"),
    ],
)
def test_a_conversion_that_names_the_version(found: dict[str, Any], words: str) -> None:
    (held,) = conversion_holds(found, "v1")
    assert (held.step, held.reason, held.name) == ("Removed", "VersionConversion", "widgets.example.com")
    assert words in held.message


@pytest.mark.parametrize("found", [None, conversion("v2", "v3"), {"metadata": {"name": "w"}}])
def test_a_conversion_that_does_not(found: dict[str, Any] | None) -> None:
    assert not list(conversion_holds(found, "v1"))


def composition(version: str = "v1", kind: str = "Composition", **resource: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": "small"},
        "spec": {
            "compositeTypeRef": {"apiVersion": f"example.com/{version}", "kind": "Widget"},
            "resources": [resource] if resource else [],
        },
    }


OURS = {"apiVersion": "example.com/v1", "kind": "Widget"}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (composition("v1"), "Composition small is for composites at v1. Name another version in spec.comp"),
        (composition("v2", template=OURS), "makes or reads objects at v1. Name another version in its res"),
        (composition("v2", externalRef=OURS), "makes or reads objects at v1."),
        (composition("v1", "CompositionRevision"), "Let composites run by a revision"),
    ],
)
def test_a_composition_that_names_the_version(found: dict[str, Any], words: str) -> None:
    (held,) = composition_holds([named_kinds(found)], definition(), "v1")
    assert (held.step, held.reason, held.name) == ("NotServed", "Composition", "small")
    assert words in held.message


@pytest.mark.parametrize(
    "found",
    [
        composition("v2"),
        composition("v2", template={"apiVersion": "example.com/v1", "kind": "Other"}),
        composition("v2", template={"apiVersion": "v1", "kind": "Widget"}),
        composition("v2", template="text"),
    ],
)
def test_a_composition_that_does_not(found: dict[str, Any]) -> None:
    assert not list(composition_holds([named_kinds(found)], definition(), "v1"))


def test_a_crd_that_the_composer_makes() -> None:
    (held,) = definition_holds(crd(annotations={DEFINITION_UID: "u"}), "v1")
    assert (held.step, held.reason) == ("Deprecated", "CompositeResourceDefinition")
    assert not list(definition_holds(crd(), "v1"))


def test_a_webhook_holds_only_while_it_does_not_convert() -> None:
    works = VersionRead("v2", Read.CONVERTED)
    refused = VersionRead("v3", Read.FAILED, Failure(ProbeTrouble.FAILED, 500, "boom"))
    assert not list(webhook_holds("webhook Service a/b", [works], "ns/a", definition(), "v1"))
    (held,) = webhook_holds("webhook Service a/b", [works, refused], "ns/a", definition(), "v1")
    assert (held.step, held.reason) == ("NotServed", "ConversionWebhook")
    assert "ns/a cannot be read at v3 (boom)" in held.message


def read(trouble: ProbeTrouble, code: int, message: str, version: str = "v2") -> VersionRead:
    return VersionRead(version, Read.FAILED, Failure(trouble, code, message))


def test_a_webhook_is_not_blamed_for_a_missing_right() -> None:
    forbidden = [read(ProbeTrouble.FORBIDDEN, 403, "forbidden", each) for each in ("v2", "v3")]
    (held,) = webhook_holds("webhook https://w", forbidden, "ns/a", definition(), "v1")
    assert (held.step, held.reason, held.name) == ("NotServed", "NotPermitted", "widgets.example.com")
    assert held.message == (
        "Whether the conversion webhook https://w converts is not known. The missing rule: "
        '{apiGroups: ["example.com"], resources: ["widgets"], verbs: ["get"]}.'
    )


@pytest.mark.parametrize(
    ("trouble", "code"),
    [(ProbeTrouble.BUSY, 429), (ProbeTrouble.EXPIRED, 410), (ProbeTrouble.SILENT, 0)],
)
def test_a_webhook_is_not_blamed_for_what_may_be_the_api_server(trouble: ProbeTrouble, code: int) -> None:
    silent = read(trouble, code, "no answer")
    (held,) = webhook_holds("webhook https://w", [silent], "ns/a", definition(), "v1")
    # No step is taken on what is not known.
    assert (held.step, held.reason) == ("NotServed", "ConversionWebhook")
    assert "converts is not known: ns/a cannot be read at v2 (no answer)." in held.message
    assert "does not convert" not in held.message
    # What another version shows is known.
    broken = read(ProbeTrouble.FAILED, 500, "boom", "v3")
    (held,) = webhook_holds("webhook https://w", [silent, broken], "ns/a", definition(), "v1")
    assert "does not convert: ns/a cannot be read at v3 (boom)." in held.message


def test_only_a_webhook_keeps_the_words_that_were_told() -> None:
    before = [
        RetirementHold(step="NotServed", reason="ConversionWebhook", name="w", message="Port 1."),
        RetirementHold(step="Removed", reason="AdmissionWebhook", name="guard", message="Validating guard."),
        RetirementHold(step="Removed", reason="AdmissionWebhook", name="guard", message="Mutating guard."),
    ]
    guards = [Obstacle("Removed", "AdmissionWebhook", "guard", f"{each} guard.") for each in "AB"]
    other = Obstacle("NotServed", "ConversionWebhook", "x", "Port 3.")
    found = [Obstacle("NotServed", "ConversionWebhook", "w", "Port 2."), *guards, other]
    assert as_told(found, before) == (replace(found[0], message="Port 1."), *guards, other)


def test_a_missing_right_holds() -> None:
    held = hidden(("compositions", "compositionrevisions"), "crdkeeper.dev", "NotServed")
    assert (held.step, held.reason) == ("NotServed", "NotPermitted")
    rule = 'resources: ["compositions", "compositionrevisions"], verbs: ["get", "list"]}'
    assert f'{{apiGroups: ["crdkeeper.dev"], {rule}' in held.message


def test_long_names_are_bounded() -> None:
    found = composition("v1")
    found["metadata"]["name"] = "x" * 5000
    (held,) = composition_holds([named_kinds(found)], definition(), "v1")
    assert len(held.message.encode()) <= 1024
