"""A status that the API server accepts, whatever expressions give, and the values that fields keep."""

from typing import Any

import pytest

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.core.templates.kinds import TargetKind
from crdkeeper.core.templates.mappedstatus import MappedStatus, mapped_status
from tests.unit.core.templates.compositions import COMPOSITE, DATABASE, rendered, server

TEXT = {"type": "string"}
STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "phase": {"type": "string", "enum": ["Up", "Down"]},
        "short": {"type": "string", "maxLength": 3},
        "address": TEXT,
        "end": {"type": "object", "required": ["host", "port"], "properties": {"host": TEXT, "port": TEXT}},
        "hosts": {"type": "array", "items": TEXT},
        "conditions": {"type": "array", "items": {"type": "object", "properties": {"type": TEXT}}},
        "observedGeneration": {"type": "integer"},
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.address) || self.address != 'bad'", "message": "must not be bad"}
    ],
}
OURS = {"observedGeneration": 3, "conditions": [{"type": "Ready"}]}
EXCLUDED = server("a", IncludeWhen=["${false}"])


def made(status: dict[str, Any], *, live: dict[str, Any] | None = None, a: Any = None) -> MappedStatus:
    """The status of a composite that has the status `live`."""
    properties: Any = COMPOSITE["properties"]
    schema = {**COMPOSITE, "properties": {**properties, "status": STATUS}}
    report = Report()
    decoded = SCHEMA.decode(schema, root("schema"), report)
    assert not report.violations
    composite = {**DATABASE, "status": {**OURS, **(live or {})}}
    rendering = rendered(
        a or server("a"), given=composite, composite=TargetKind(decoded, True), status=status
    )
    return mapped_status(rendering, composite, ObjectSchema.of(decoded))


def fields(found: MappedStatus) -> dict[str, Any]:
    assert {name: found.status[name] for name in OURS} == OURS
    return {name: each for name, each in found.status.items() if name not in OURS}


ENGINE = "${composite.spec.engine}"
NOT_YET = "${a.status.phase}"
WITH_AN_END = {"host": "h", "port": "1"}


@pytest.mark.parametrize(
    ("status", "live", "wanted", "reason"),
    [
        ({"address": ENGINE}, {}, {"address": "postgres"}, ""),
        ({"phase": ENGINE, "address": "x"}, {}, {"address": "x"}, "status.phase: Unsupported value"),
        ({"phase": ENGINE}, {"phase": "Up"}, {"phase": "Up"}, "status.phase: Unsupported value"),
        ({"phase": ENGINE}, {"phase": "Old"}, {"phase": "Old"}, "status.phase: Unsupported value"),
        ({"short": ENGINE}, {}, {}, "status.short: Too long"),
        ({"end": {"host": "h", "port": NOT_YET}}, {}, {}, "status.end.port: Required value"),
        (
            {"end": {"host": "x", "port": NOT_YET}},
            {"end": WITH_AN_END},
            {"end": {"host": "x", "port": "1"}},
            "",
        ),
        ({"address": "bad", "short": "x"}, {"short": "y"}, {"short": "y"}, "must not be bad"),
    ],
)
def test_what_the_api_server_would_refuse(
    status: dict[str, Any], live: dict[str, Any], wanted: dict[str, Any], reason: str
) -> None:
    found = made(status, live=live)
    assert fields(found) == wanted
    said = [each.text for each in found.gaps if each.text.startswith("the API server would refuse it: ")]
    assert bool(said) == bool(reason)
    assert all(reason in each for each in said)
    assert all("postgres" not in each for each in said)


def test_what_has_no_value_now_keeps_the_one_it_has() -> None:
    live = {"phase": "Up", "address": "x"}
    assert fields(made({"phase": NOT_YET, "address": "y"}, live=live)) == {"phase": "Up", "address": "y"}
    failing = "${string(int(composite.spec.engine))}"
    assert fields(made({"address": failing}, live=live)) == {"address": "x"}
    hosts = {"hosts": ["a", NOT_YET]}
    assert fields(made(hosts, live={"hosts": ["b", "c"]})) == {"hosts": ["b", "c"]}
    assert fields(made(hosts)) == {"hosts": ["a"]}


def test_what_needs_an_excluded_resource_goes() -> None:
    assert fields(made({"phase": NOT_YET}, live={"phase": "Up"}, a=EXCLUDED)) == {}


def test_what_is_no_longer_mapped_goes() -> None:
    assert fields(made({"address": "x"}, live={"phase": "Up"})) == {"address": "x"}


def test_what_is_wrong_without_the_mapped_fields_hides_none() -> None:
    broken = {"conditions": [{"type": 5}]}
    found = made({"address": "x"}, live=broken)
    assert found.status == {**OURS, **broken, "address": "x"}


def test_nothing_is_changed() -> None:
    live = {"end": dict(WITH_AN_END)}
    made({"end": {"host": "x", "port": NOT_YET}}, live=live)
    assert live == {"end": WITH_AN_END}
