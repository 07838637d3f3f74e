"""VersionConversion: how the versions of a CRD become one another, as rules that read both ways."""

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from crdkeeper.api.meta import ApiModel
from crdkeeper.api.storagemigration import GroupResource

FieldPath = Annotated[str, Field(min_length=1, max_length=1024)]
"""A field such as `spec.host` or `metadata.annotations[example.com/host]`; within `each`, of an item."""
Units = Annotated[str, Field(max_length=8)]


class ValuePair(ApiModel):
    """One value as the hub writes it, and as the spoke does."""

    hub: JsonValue
    spoke: JsonValue


class Scale(ApiModel):
    """So many units of the hub are so many of the spoke: {hub: 1, spoke: 1000} for s and ms."""

    hub: Annotated[int, Field(ge=1)] = 1
    spoke: Annotated[int, Field(ge=1)] = 1


class Join(ApiModel):
    """One text on one side, several fields on the other."""

    template: Annotated[str, Field(min_length=1, max_length=1024)]
    """The text with the fields' names in braces: `{host}:{port}`. Two names need something between them."""
    parts: Annotated[dict[str, FieldPath], Field(min_length=1, max_length=16)]
    """The fields of the other side by these names."""


class ConversionRule(ApiModel):
    """What a field of the hub is in the spoke. It names a field on both sides, or on one that alone has it.

    With nothing but the two fields the value moves as it is. At most one of the others says what becomes of
    it.
    """

    hub: FieldPath | None = None
    """The field in the hub version."""
    spoke: FieldPath | None = None
    """The field in the spoke version."""
    values: Annotated[list[ValuePair], Field(min_length=1, max_length=256)] | None = None
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
    key: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """A list on one side, on the other a map by this field of the items."""
    each: "list[ConversionRule] | None" = None
    """Rules for the items of two lists or the values of two maps; also beside `key`."""
    join: Join | None = None
    """A text that the other side holds in several fields; the rule names the text's field alone."""
    aside: Literal[True] | None = None
    """One side alone has the field: it is kept in an annotation while the object has the other version."""
    drop: Literal[True] | None = None
    """One side alone has the field, and it may be lost."""
    fill: JsonValue | None = None
    """With `aside` or `drop`: the value where none is known."""


class Spoke(ApiModel):
    """A version and how it differs from the hub."""

    version: Annotated[str, Field(min_length=1, max_length=63)]
    rules: Annotated[list[ConversionRule], Field(default_factory=list, max_length=512)]
    """For the fields that differ; all others are carried over as they are."""


class VersionConversionSpec(ApiModel):
    """Which CRD, which of its versions all others are converted through, and how."""

    resource: GroupResource
    hub: Annotated[str, Field(min_length=1, max_length=63)]
    """The version that can hold most, usually the storage version."""
    spokes: Annotated[list[Spoke], Field(min_length=1, max_length=32)]


class VersionConversion(ApiModel):
    """Makes the versions of a CRD convert without a webhook to write."""

    api_version: str
    kind: Literal["VersionConversion"]
    metadata: dict[str, Any]
    spec: VersionConversionSpec
