"""VersionConversion: how the versions of a CRD become one another, as rules that read both ways."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue

from crdkeeper.api.meta import UNSEEN, ApiModel, Column, Condition, Kind, Time, immutable
from crdkeeper.api.storagemigration import GroupResource
from crdkeeper.api.texts import Line

_INT64: dict[str, Any] = {"format": "int64"}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
_MAP_BY_VERSION: dict[str, Any] = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["version"],
}
_ANY: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}

SHOWN = 50
"""How many problems, losses and failures status lists; counts are always full."""

VersionName = Annotated[str, Field(min_length=1, max_length=63)]
AnyValue = Annotated[JsonValue, Field(json_schema_extra=_ANY)]
FieldPath = Annotated[str, Field(min_length=1, max_length=1024)]
"""A field such as `spec.host` or `metadata.annotations[example.com/host]`; within `each`, of an item."""
Units = Annotated[str, Field(max_length=2, pattern="^[A-Za-z]*$")]


class _Strict(ApiModel):
    """A rule with a word that is not known must not be taken for one without it."""

    model_config = ConfigDict(extra="forbid")


class ValuePair(_Strict):
    """One value as the hub writes it, and as the spoke does."""

    hub: AnyValue
    spoke: AnyValue


class Scale(_Strict):
    """So many units of the hub are so many of the spoke: {hub: 1, spoke: 1000} for s and ms."""

    hub: Annotated[int, Field(ge=1)] = 1
    spoke: Annotated[int, Field(ge=1)] = 1


class Join(_Strict):
    """One text on one side, several fields on the other."""

    template: Annotated[str, Field(min_length=1, max_length=1024)]
    """The text with the fields' names in braces: `{host}:{port}`. Two names need something between them."""
    parts: Annotated[dict[str, FieldPath], Field(min_length=1, max_length=16)]
    """The fields of the other side by these names."""


class Expressions(_Strict):
    """Expressions of CEL, one for each direction; in a direction without one the field is not set.

    `self` is the value of the rule's field on the side that is read; where that is not there or null, nothing
    is evaluated. `object` is the whole of that side: the object, or within `each` the item. A rule that names
    no field of the side that is read has `object` alone. Of metadata only name and generateName are seen. The
    result has the type of the field that is written; `optional.none()` leaves it unset.
    """

    to_hub: Annotated[str, Field(min_length=1, max_length=8192)] | None = None
    """What the hub's field is, of the spoke's object."""
    to_spoke: Annotated[str, Field(min_length=1, max_length=8192)] | None = None
    """What the spoke's field is, of the hub's object."""


class ConversionRule(_Strict):
    """What a field of the hub is in the spoke. It names a field on both sides, or on one that alone has it.

    With nothing but the two fields the value moves as it is. At most one of the others says what becomes of
    it.
    """

    hub: FieldPath | None = None
    """The field in the hub version."""
    spoke: FieldPath | None = None
    """The field in the spoke version."""
    values: Annotated[
        list[ValuePair] | None, Field(min_length=1, max_length=256, json_schema_extra=_ATOMIC)
    ] = None
    """Values that the two sides write differently, all of them."""
    scale: Scale | None = None
    """Numbers of different units."""
    cast: Literal[True] | None = None
    """Scalars of different types, as the two schemas say: 8080 and "8080"."""
    quantity: Units | None = None
    """A quantity on one side and a number of this unit on the other: "1Gi" and 1024 with `Mi`."""
    duration: Units | None = None
    """A duration on one side and a number of this unit on the other: "1m30s" and 90 with `s`."""
    wrap: Literal[True] | None = None
    """A list on one side of what stands alone on the other."""
    separator: Annotated[str, Field(min_length=1, max_length=16)] | None = None
    """A list of scalars on one side, on the other one text with this between them: [a, b] and "a,b"."""
    key: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """A list on one side, on the other a map by this field of the items; a map of plain values if the items
    have one other field."""
    each: Annotated["list[ConversionRule] | None", Field(json_schema_extra=_ATOMIC)] = None
    """Rules for the items of two lists, the values of two maps or the fields of two objects; also beside
    `key` and `wrap`."""
    join: Join | None = None
    """A text that the other side holds in several fields; the rule names the text's field alone."""
    cel: Expressions | None = None
    """Expressions for what no other rule can say; what the way back would change is kept aside."""
    aside: Literal[True] | None = None
    """One side alone has the field: it is kept in an annotation while the object has the other version."""
    drop: Literal[True] | None = None
    """One side alone has the field, and it may be lost."""
    fill: AnyValue | None = None
    """With `aside` or `drop`: the value where none is known. With a rule by which a value may have no
    counterpart: {hub: …, spoke: …}, what each field shows then; without it the schema's default, or nothing,
    or a value that the schema allows. The value itself is kept aside."""
    refuse: Literal[True] | None = None
    """A value that has no counterpart is an error for whoever reads the object at the other version, alone or
    in a list."""


class Spoke(_Strict):
    """A version and how it differs from the hub."""

    version: VersionName
    rules: Annotated[
        list[ConversionRule], Field(default_factory=list, max_length=512, json_schema_extra=_ATOMIC)
    ]
    """For the fields that differ; all others are carried over as they are."""


class VersionConversionSpec(_Strict):
    """Which CRD, which of its versions all others are converted through, and how."""

    resource: Annotated[GroupResource, Field(json_schema_extra=immutable("resource"))]
    """The CRD, by plural and group; the VersionConversion has its name, `plural.group`."""
    hub: VersionName
    """The version that can hold most, usually the storage version."""
    spokes: Annotated[list[Spoke], Field(min_length=1, max_length=32, json_schema_extra=_MAP_BY_VERSION)]
    """All other versions of the CRD."""
    mode: Literal["Execute", "Plan"] = "Execute"
    """Plan compiles and verifies the rules, and changes nothing."""
    replace_webhook: bool = False
    """Whether to take the place of another conversion webhook that the CRD has."""


class RuleProblem(ApiModel):
    """What is wrong with a rule, or a field that no rule covers."""

    path: Line
    """The rule's field, such as spec.spokes[0].rules[2].hub, or the spoke that lacks a rule."""
    message: Line


class ConversionLoss(ApiModel):
    """A field that one version alone has, by choice of the rules."""

    version: str
    """The spoke whose rules say so."""
    side: Literal["Hub", "Spoke"]
    """Which of the two versions has the field."""
    path: Line
    treatment: Literal["KeptAside", "Dropped"]
    """KeptAside comes back with the way back; Dropped is lost."""


class ConversionFailure(ApiModel):
    """What is the matter with an object on the way from one version to another."""

    namespace: str = ""
    name: str
    from_version: str
    to_version: str
    message: Line
    """Names the field."""


class ConversionVerification(ApiModel):
    """What the rules were tried on before they serve."""

    digest: str = ""
    """Of the rules and schemas that were verified."""
    generated: int = 0
    """Objects made up from the schemas."""
    unconvertible: Annotated[list[Line], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """Why some values that the schemas allow cannot be converted; the first of them."""
    objects: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Live objects."""
    kept_aside: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Of those, objects of which something must be kept in an annotation at another version."""
    lossy: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Of those, objects that lose something by a rule that drops it."""
    failed: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Of those, objects that cannot be converted or come back changed."""
    failures: Annotated[list[ConversionFailure], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """The first of them."""
    unmatched: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Of those, objects with a value that has no counterpart at another version, or with more than can be
    kept aside there. They can be read, and nothing of them is lost."""
    unmatched_objects: Annotated[
        list[ConversionFailure], Field(default_factory=list, json_schema_extra=_ATOMIC)
    ]
    """The first of them."""
    completion_time: Time | None = None


class VersionConversionStatus(ApiModel):
    """What was proved, and what serves."""

    observed_generation: Annotated[int, Field(json_schema_extra=_INT64)] = UNSEEN
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    served_generation: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """The generation whose rules the webhook was given; 0 while there are none."""
    versions: str = ""
    """The hub and the spokes, for people: `v1 <- v1beta1, v1alpha1`."""
    problems: Annotated[list[RuleProblem], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """Why the rules do not compile, with the fields that no rule covers; the first of them."""
    losses: Annotated[list[ConversionLoss], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """Fields that one version alone has; the first of them."""
    verification: Annotated[ConversionVerification, Field(default_factory=ConversionVerification)]


def _ready(path: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{path}'


class VersionConversion(Kind):
    """Makes the versions of a CRD convert losslessly by rules, through crdkeeper's webhook."""

    plural: ClassVar[str] = "versionconversions"
    short_names: ClassVar[tuple[str, ...]] = ("vconv",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="Ready", type="string", json_path=_ready("status")),
        Column(name="Reason", type="string", json_path=_ready("reason")),
        Column(name="Versions", type="string", json_path=".status.versions"),
        Column(name="Objects", type="integer", json_path=".status.verification.objects"),
        Column(name="Aside", type="integer", json_path=".status.verification.keptAside", priority=1),
        Column(name="Failed", type="integer", json_path=".status.verification.failed"),
        Column(name="Message", type="string", json_path=_ready("message"), priority=1),
        Column(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    )
    validations: ClassVar[tuple[dict[str, str], ...]] = (
        {
            "rule": "self.metadata.name == self.spec.resource.resource + '.' + self.spec.resource.group",
            "message": "the name must be that of the CRD, spec.resource.resource.spec.resource.group",
        },
    )

    kind: Literal["VersionConversion"] = "VersionConversion"
    spec: VersionConversionSpec
    status: Annotated[VersionConversionStatus, Field(default_factory=VersionConversionStatus)]
