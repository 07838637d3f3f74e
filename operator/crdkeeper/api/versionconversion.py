"""VersionConversion: how to convert between the versions of a CRD, as rules that work in both directions."""

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
"""The most problems, losses and failures that status lists; the counts cover all of them."""

VersionName = Annotated[str, Field(min_length=1, max_length=63)]
AnyValue = Annotated[JsonValue, Field(json_schema_extra=_ANY)]
FieldPath = Annotated[str, Field(min_length=1, max_length=1024)]
"""A field such as `spec.host` or `metadata.annotations[example.com/host]`; within `each`, of an item."""
Units = Annotated[str, Field(max_length=2, pattern="^[A-Za-z]*$")]


class _Strict(ApiModel):
    """Rejects unknown fields: a rule with a misspelled keyword must not count as a rule without it."""

    model_config = ConfigDict(extra="forbid")


class ValuePair(_Strict):
    """A value in the hub version and its counterpart in the spoke version."""

    hub: AnyValue
    spoke: AnyValue


class Scale(_Strict):
    """A ratio of units. For example, {hub: 1, spoke: 1000} converts seconds in the hub to milliseconds."""

    hub: Annotated[int, Field(ge=1)] = 1
    spoke: Annotated[int, Field(ge=1)] = 1


class Join(_Strict):
    """A string in one version that is several fields in the other."""

    template: Annotated[str, Field(min_length=1, max_length=1024)]
    """The string, with the names of its parts in braces: `{host}:{port}`. Adjacent names need a separator."""
    parts: Annotated[dict[str, FieldPath], Field(min_length=1, max_length=16)]
    """The field in the other version for each name in the template."""


class Expressions(_Strict):
    """CEL expressions, one for each direction. In a direction without an expression, the field is not set.

    `self` is the value of the rule's field in the version being converted from. If that field is absent or
    null, the expression is not evaluated. `object` is the whole object or, within `each`, the item. If the
    rule names no field in the version being converted from, only `object` is available. Of metadata, only
    name and generateName are accessible. The result must have the type of the field that it sets;
    `optional.none()` leaves the field unset.
    """

    to_hub: Annotated[str, Field(min_length=1, max_length=8192)] | None = None
    """Computes the hub's field from the spoke's object."""
    to_spoke: Annotated[str, Field(min_length=1, max_length=8192)] | None = None
    """Computes the spoke's field from the hub's object."""


class ConversionRule(_Strict):
    """How to convert a field. The rule names the field in both versions, or in the only version that has it.

    With only `hub` and `spoke`, the value is copied unchanged. Set at most one of the other fields to
    convert it.
    """

    hub: FieldPath | None = None
    """Path of the field in the hub version."""
    spoke: FieldPath | None = None
    """Path of the field in the spoke version."""
    values: Annotated[
        list[ValuePair] | None, Field(min_length=1, max_length=256, json_schema_extra=_ATOMIC)
    ] = None
    """The counterpart of each value, for values that the two versions spell differently. List all values."""
    scale: Scale | None = None
    """Converts numbers between different units."""
    cast: Literal[True] | None = None
    """Converts scalars between the types in the two schemas, such as 8080 and "8080"."""
    quantity: Units | None = None
    """Unit of the number, if one version has a quantity, the other a number: with `Mi`, "1Gi" and 1024."""
    duration: Units | None = None
    """Unit of the number, if one version has a duration, the other a number: with `s`, "1m30s" and 90."""
    wrap: Literal[True] | None = None
    """Converts between a single value and a list of one item."""
    separator: Annotated[str, Field(min_length=1, max_length=16)] | None = None
    """Separator, if one version has a list of scalars and the other one string: [a, b] and "a,b"."""
    key: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """The items' field that is the key, if one version has a list and the other a map. If the items have
    only one other field, the values of the map are plain values."""
    each: Annotated["list[ConversionRule] | None", Field(json_schema_extra=_ATOMIC)] = None
    """Rules for the items of two lists, the values of two maps, or the fields of two objects. Can be combined
    with `key` and `wrap`."""
    join: Join | None = None
    """Splits a string into several fields of the other version. The rule names only the string's field."""
    cel: Expressions | None = None
    """CEL expressions, for what no other rule can express. Values that would not survive the way back are
    kept in an annotation."""
    aside: Literal[True] | None = None
    """Keeps a field that only one version has in an annotation while the object is at the other version."""
    drop: Literal[True] | None = None
    """Drops a field that only one version has. Its value is lost."""
    fill: AnyValue | None = None
    """With `aside` or `drop`: the value to set if none is known. With a rule under which a value may have no
    counterpart: {hub: …, spoke: …}, the value that each field shows in that case. If unset, the field shows
    the schema's default, or nothing, or a value that the schema allows. The real value is kept in an
    annotation."""
    refuse: Literal[True] | None = None
    """Fails the conversion of a value that has no counterpart. Clients then cannot read the object, nor a
    list that includes it, at the other version."""


class Spoke(_Strict):
    """A version, and how it differs from the hub."""

    version: VersionName
    rules: Annotated[
        list[ConversionRule], Field(default_factory=list, max_length=512, json_schema_extra=_ATOMIC)
    ]
    """Rules for the fields that differ. All other fields are copied unchanged."""


class VersionConversionSpec(_Strict):
    """Which CRD to convert, through which version, and how."""

    resource: Annotated[GroupResource, Field(json_schema_extra=immutable("resource"))]
    """The CRD, by plural and group. The VersionConversion must have the CRD's name, `plural.group`."""
    hub: VersionName
    """The version that all conversions go through. Choose the most expressive one, usually the storage
    version."""
    spokes: Annotated[list[Spoke], Field(min_length=1, max_length=32, json_schema_extra=_MAP_BY_VERSION)]
    """All other versions of the CRD."""
    mode: Literal["Execute", "Plan"] = "Execute"
    """Execute serves the rules once they are verified. Plan only compiles and verifies them."""
    replace_webhook: bool = False
    """Whether to replace another conversion webhook that the CRD uses."""


class RuleProblem(ApiModel):
    """An error in a rule, or a field that no rule covers."""

    path: Line
    """Path of the rule's field, such as spec.spokes[0].rules[2].hub, or of the spoke that lacks a rule."""
    message: Line


class ConversionLoss(ApiModel):
    """A field that only one version has, according to the rules."""

    version: str
    """The spoke that the rules belong to."""
    side: Literal["Hub", "Spoke"]
    """Which of the two versions has the field."""
    path: Line
    treatment: Literal["KeptAside", "Dropped"]
    """KeptAside: the value is restored on the way back. Dropped: the value is lost."""


class ConversionFailure(ApiModel):
    """A problem with converting an object from one version to another."""

    namespace: str = ""
    name: str
    from_version: str
    to_version: str
    message: Line
    """What is wrong, including the field."""


class ConversionVerification(ApiModel):
    """The objects that the rules were tried on, with the results."""

    digest: str = ""
    """Digest of the rules and schemas that were verified."""
    generated: int = 0
    """Number of objects generated from the schemas."""
    unconvertible: Annotated[list[Line], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """Why some values that the schemas allow cannot be converted. Lists the first of them."""
    objects: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Number of live objects."""
    kept_aside: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Number of those that need an annotation at another version to keep a value."""
    lossy: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Number of those that lose a value to a rule with `drop`."""
    failed: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Number of those that cannot be converted, or come back changed."""
    failures: Annotated[list[ConversionFailure], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """The first of the failed objects."""
    unmatched: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Number of those with a value that has no counterpart at another version, or with more to keep than fits
    in the annotation. They can be read, and nothing is lost."""
    unmatched_objects: Annotated[
        list[ConversionFailure], Field(default_factory=list, json_schema_extra=_ATOMIC)
    ]
    """The first of the unmatched objects."""
    completion_time: Time | None = None


class ServiceReference(ApiModel):
    """A Service that serves a webhook."""

    namespace: str
    name: str
    path: str = ""
    port: int = 443


class WebhookClientConfig(ApiModel):
    """How API servers reach a webhook: through a Service, or at a URL."""

    service: ServiceReference | None = None
    url: str | None = None


class VersionConversionStatus(ApiModel):
    """What was verified, and what the webhook serves."""

    observed_generation: Annotated[int, Field(json_schema_extra=_INT64)] = UNSEEN
    """The metadata.generation of the VersionConversion itself."""
    definition_generation: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """The metadata.generation of the CRD that was looked at; 0 without a CRD."""
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    served_generation: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """The generation whose rules were handed to the webhook. 0 if there are none."""
    client_config: WebhookClientConfig | None = None
    """How a CRD must name the webhook in spec.conversion.webhook.clientConfig (here without caBundle) to be
    converted by the rules that are served. Absent if there are none."""
    versions: str = ""
    """The hub and the spokes: `v1 <- v1beta1, v1alpha1`."""
    problems: Annotated[list[RuleProblem], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """Why the rules do not compile, including fields that no rule covers. Lists the first of them."""
    losses: Annotated[list[ConversionLoss], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """Fields that only one version has. Lists the first of them."""
    verification: Annotated[ConversionVerification, Field(default_factory=ConversionVerification)]


def _ready(path: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{path}'


class VersionConversion(Kind):
    """Converts losslessly between the versions of a CRD, by rules and through crdkeeper's webhook."""

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
            "message": "metadata.name must be <spec.resource.resource>.<spec.resource.group>",
        },
    )

    kind: Literal["VersionConversion"] = "VersionConversion"
    spec: VersionConversionSpec
    status: Annotated[VersionConversionStatus, Field(default_factory=VersionConversionStatus)]
