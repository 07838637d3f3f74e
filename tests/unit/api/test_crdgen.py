"""The CRDs in `crds/`: up to date with the models, and acceptable for an API server."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
import yaml
from pydantic import Field

from crdkeeper.api import crdgen
from crdkeeper.api.compositekinds import COMPOSITE_KINDS
from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.definitionpolicy import (
    DefinitionPolicy,
    DefinitionPolicySpec,
    DefinitionRequirement,
    DefinitionSelector,
    MigrationPolicy,
)
from crdkeeper.api.definitionreport import DefinitionReport, Finding, FindingCounts
from crdkeeper.api.kinds import KINDS
from crdkeeper.api.meta import ApiModel, Column, Kind, ObjectMeta, set_condition
from crdkeeper.api.storagemigration import (
    GroupResource,
    MigrationLimits,
    MigrationSweep,
    MigrationTarget,
    MigrationTemplate,
    RefusedObject,
    StorageMigration,
    StorageMigrationSpec,
)

CRDS = Path(__file__).parents[3] / "crds"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ALL = (*KINDS, *COMPOSITE_KINDS)
EVERY_KIND = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
FOLDERS = dict.fromkeys(KINDS, CRDS) | dict.fromkeys(COMPOSITE_KINDS, CRDS / "composer")

Schema = Mapping[str, Any]


def root(kind: type[Kind]) -> Schema:
    """The schema of a kind, as in its CRD."""
    schema: Schema = crdgen.definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """The schema and everything below it, with paths."""
    yield path, schema
    for name, each in schema.get("properties", {}).items():
        yield from nodes(each, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


def would_be_pruned(schema: Schema, value: Any, path: str = "") -> list[str]:
    """The unknown fields of an object; empty metadata is known to all schemas."""
    if isinstance(value, list):
        return [lost for each in value for lost in would_be_pruned(schema["items"], each, f"{path}[]")]
    if not isinstance(value, dict) or path == ".metadata":
        return []
    if "additionalProperties" in schema:
        return []
    known = schema["properties"]
    return [
        lost
        for name, each in value.items()
        for lost in (
            would_be_pruned(known[name], each, f"{path}.{name}") if name in known else [f"{path}.{name}"]
        )
    ]


def a_migration() -> StorageMigration:
    """A migration with a value in as many fields as one can have at once."""
    migration = StorageMigration(
        metadata=ObjectMeta(name="widgets", labels={"a": "b"}),
        spec=StorageMigrationSpec(
            resource=GroupResource(group="example.com", resource="widgets"),
            limits=MigrationLimits(max_objects_per_second=100, max_bytes_per_second=1 << 40),
            ttl_seconds_after_finished=600,
        ),
    )
    status = migration.status
    set_condition(status.conditions, "Succeeded", "Unknown", "Rewriting", "Going on.", generation=1, now=NOW)
    status.target = MigrationTarget(
        uid="1-2-3",
        generation=4,
        storage_version="v2",
        endpoint_version="v2",
        stored_versions=["v1", "v2"],
        kind="Widget",
        namespaced=True,
    )
    status.sweep = MigrationSweep(type="Rewrite", continue_token="abc", scanned=5)
    status.quarantine.objects = [RefusedObject(name="w", code=422, reason="Invalid", message="No.")]
    status.quarantine.next_retry_time = status.start_time = NOW
    return migration


def a_policy() -> DefinitionPolicy:
    """A policy with a value in all of its spec."""
    requirement = DefinitionRequirement(key="team", operator="In", values=["a", "b"])
    return DefinitionPolicy(
        metadata=ObjectMeta(name="all"),
        spec=DefinitionPolicySpec(
            selector=DefinitionSelector(match_labels={"a": "b"}, match_expressions=[requirement]),
            groups=["*.example.com"],
            storage_migration=MigrationPolicy(mode="Plan", template=MigrationTemplate(trim=False)),
        ),
    )


def a_report() -> DefinitionReport:
    """A report with a value in every field."""
    report = DefinitionReport(metadata=ObjectMeta(name="widgets.example.com"))
    status = report.status
    set_condition(status.conditions, "Ready", "True", "Healthy", "All is well.", generation=1, now=NOW)
    status.storage_version, status.stored_versions, status.assessed = "v2", ["v1", "v2"], "abc"
    status.findings = [Finding(severity="Warning", id="a", path="v1:.spec", message="No.")]
    status.finding_counts = FindingCounts(total=1, warnings=1)
    return report


@EVERY_KIND
def test_the_file_is_fresh(kind: type[Kind]) -> None:
    text = (FOLDERS[kind] / crdgen.file_name(kind)).read_text(encoding="utf-8")
    assert text == crdgen.render(kind), "run: python -m crdkeeper.api.crdgen crds"
    assert yaml.safe_load(text) == crdgen.definition(kind)


def test_the_directory_holds_all_kinds_and_no_other() -> None:
    expected = sorted(map(crdgen.file_name, KINDS))
    assert sorted(path.name for path in CRDS.glob("*.*")) == sorted([*expected, "kustomization.yaml"])
    assert yaml.safe_load((CRDS / "kustomization.yaml").read_text())["resources"] == expected
    assert (CRDS / "kustomization.yaml").read_text() == crdgen.kustomization()


def test_the_command_writes_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["crdgen", str(tmp_path)])
    crdgen.main()
    for folder, kinds in ((tmp_path, KINDS), (tmp_path / "composer", COMPOSITE_KINDS)):
        written = {path.name for path in folder.glob("*.*")}
        assert written == {*(crdgen.file_name(kind) for kind in kinds), "kustomization.yaml"}


def test_the_composers_kinds_are_in_a_directory_of_their_own() -> None:
    expected = sorted(map(crdgen.file_name, COMPOSITE_KINDS))
    folder = CRDS / "composer"
    assert sorted(path.name for path in folder.iterdir()) == sorted([*expected, "kustomization.yaml"])
    assert (folder / "kustomization.yaml").read_text() == crdgen.kustomization(COMPOSITE_KINDS)


@EVERY_KIND
def test_the_schema_is_structural(kind: type[Kind]) -> None:
    for path, node in nodes(root(kind)):
        if "type" not in node:
            assert node["x-kubernetes-preserve-unknown-fields"] is True, path
            continue
        assert node["type"] in {"object", "array", "string", "integer", "boolean"}, path
        assert not node.keys() & {"$ref", "title", "anyOf", "const", "nullable"}, path
        assert not ("properties" in node and "additionalProperties" in node), path
        if node["type"] == "array":
            assert node["x-kubernetes-list-type"] in {"atomic", "set", "map"}, path
        if node["type"] == "integer":
            assert node["format"] in {"int32", "int64"}, path


@EVERY_KIND
def test_nothing_with_a_default_is_required(kind: type[Kind]) -> None:
    for path, node in nodes(root(kind)):
        for name in node.get("required", ()):
            assert "default" not in node["properties"][name], f"{path}.{name}"


@EVERY_KIND
def test_status_carries_no_obligations_but_those_of_conditions(kind: type[Kind]) -> None:
    status = root(kind)["properties"]["status"]
    assert status.pop("default") == {"observedGeneration": -1}
    for path, node in nodes(status):
        assert "default" not in node, path
        if path != ".conditions[]":
            assert "required" not in node, path
    assert status["properties"]["conditions"]["items"]["required"] == [
        "lastTransitionTime",
        "message",
        "reason",
        "status",
        "type",
    ]


@EVERY_KIND
def test_whatever_cel_looks_at_is_bounded(kind: type[Kind]) -> None:
    bounds = {"string": {"maxLength", "enum"}, "array": {"maxItems"}}
    # Rules for whole objects are about names; the API server estimates only the cost of what they read.
    ruled = [each for each in nodes(root(kind)) if each[0] and "x-kubernetes-validations" in each[1]]
    if kind is CompositeResourceDefinition:
        # The rules of its spec look at a few bounded fields among unbounded ones.
        ruled = [each for each in ruled if each[0] != ".spec"]
    for path, node in (below for base, top in ruled for below in nodes(top, base)):
        assert node.get("type") not in bounds or node.keys() & bounds[node["type"]], path
        assert "additionalProperties" not in node or "maxProperties" in node, path


def test_the_spec_is_required_only_if_something_in_it_is() -> None:
    assert root(StorageMigration)["required"] == ["spec"]
    assert "required" not in root(DefinitionPolicy)


def test_a_kind_that_users_do_not_write_has_no_spec() -> None:
    assert set(root(DefinitionReport)["properties"]) == {"apiVersion", "kind", "metadata", "status"}
    assert "required" not in root(DefinitionReport)


@pytest.mark.parametrize("migrated", [a_migration(), a_policy(), a_report()], ids=lambda each: each.kind)
def test_an_object_survives_the_round_trip(migrated: Kind) -> None:
    written = migrated.to_object()
    assert would_be_pruned(root(type(migrated)), written) == []
    assert type(migrated).model_validate(written) == migrated


class Inner(ApiModel):
    """What the outer one holds."""

    size: int = 1
    unit: Literal["m", "ft"] = "m"


class OuterSpec(ApiModel):
    """One field for each way to have a default, or none."""

    plain: Annotated[Inner, Field(default_factory=Inner)]
    special: Annotated[Inner, Field(default_factory=lambda: Inner(size=2))]
    """Said of the field, not of its type."""
    absent: Inner | None = None
    empty: Annotated[list[str], Field(default_factory=list)]
    filled: Annotated[list[str], Field(default_factory=lambda: ["*"])]
    needed: str


class OuterStatus(ApiModel):
    """Nothing yet."""


class Outer(Kind):
    """A kind for the tests of the generator itself."""

    plural: ClassVar[str] = "outers"
    short_names: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="A", type="string", json_path=".spec.needed", description="What for."),
    )

    kind: Literal["Outer"] = "Outer"
    spec: OuterSpec
    status: Annotated[OuterStatus, Field(default_factory=OuterStatus)]


def test_defaults_are_those_that_the_model_has() -> None:
    spec = root(Outer)["properties"]["spec"]
    defaults = {name: each["default"] for name, each in spec["properties"].items() if "default" in each}
    assert defaults == {"plain": {}, "special": {"size": 2}, "filled": ["*"]}
    assert spec["required"] == ["needed"]


def test_a_reference_is_replaced_by_the_type_and_keeps_what_the_field_says() -> None:
    fields = root(Outer)["properties"]["spec"]["properties"]
    inner = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "format": "int32", "default": 1},
            "unit": {"type": "string", "enum": ["m", "ft"], "default": "m"},
        },
    }
    assert fields["absent"] == {"description": "What the outer one holds."} | inner
    assert fields["special"]["description"] == "Said of the field, not of its type."


def test_a_column_has_only_what_is_set() -> None:
    (column,) = crdgen.definition(Outer)["spec"]["versions"][0]["additionalPrinterColumns"]
    assert column == {"name": "A", "type": "string", "jsonPath": ".spec.needed", "description": "What for."}


def test_what_crds_cannot_say_is_an_error() -> None:
    class Odd(OuterSpec):
        """Has a field for which a structural schema has no word."""

        either: int | str = 0

    class OddKind(Outer):
        """A kind with it."""

        spec: Odd

    with pytest.raises(ValueError, match="'anyOf' has no counterpart"):
        crdgen.definition(OddKind)
