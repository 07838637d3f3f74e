"""What all kinds share: the group, the model's base, time, conditions and object metadata.

Conditions follow metav1.Condition of the Kubernetes API conventions
(https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md).
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, PlainSerializer
from pydantic.alias_generators import to_camel

from crdkeeper.api.texts import Message

GROUP = "crdkeeper.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
FIELD_MANAGER = "crdkeeper"
OPERATOR = f"{GROUP}/operator"
CLI = f"{GROUP}/cli"
POLICY_LABEL = f"{GROUP}/policy"
DEFINITION_UID = f"{GROUP}/definition-uid"
"""The annotation of a CRD with the uid of the CompositeResourceDefinition that it belongs to."""


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, the format of metav1.Time."""
    # Not strftime, which prints the year 5 without zeros.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _in_utc(moment: datetime) -> datetime:
    """The time in UTC; the first or the last one that Python has if it is beyond these there.

    Who may write a status may write such a time, and the API server stores it.
    """
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return (datetime.min if moment.year == 1 else datetime.max).replace(tzinfo=UTC)


Time = Annotated[
    datetime,
    AfterValidator(_in_utc),
    PlainSerializer(format_time, return_type=str, when_used="json"),
]
ConditionStatus = Literal["True", "False", "Unknown"]


class ApiModel(BaseModel):
    """Fields are snake_case here and camelCase in Kubernetes; fields of a newer version are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")

    def to_object(self) -> dict[str, Any]:
        """The JSON form, without unset fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def rules(*validations: tuple[str, str]) -> ConfigDict:
    """Of a model: rules in CEL with their messages."""
    listed: list[JsonValue] = [{"rule": rule, "message": message} for rule, message in validations]
    return ConfigDict(json_schema_extra={"x-kubernetes-validations": listed})


def immutable(field: str) -> dict[str, Any]:
    """Mark a field's schema: its value cannot be changed."""
    return {
        "x-kubernetes-validations": [
            {"rule": "self == oldSelf", "message": f"{field} is immutable", "reason": "FieldValueForbidden"}
        ]
    }


class Condition(ApiModel):
    """One aspect of the object's current state (metav1.Condition)."""

    type: Annotated[str, Field(max_length=316)]
    """CamelCase name of the condition."""
    status: ConditionStatus
    """True, False or Unknown."""
    observed_generation: Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})] = 0
    """The metadata.generation that the condition was set for."""
    last_transition_time: Time
    """When the status last changed."""
    reason: Annotated[
        str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ]
    """Machine-readable CamelCase reason for the status."""
    message: Annotated[Message, Field(max_length=32768)]
    """Human-readable explanation: what the state is, and what to do about it."""


def find_condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((each for each in conditions if each.type == type_), None)


def set_condition(
    conditions: list[Condition],
    type_: str,
    status: ConditionStatus,
    reason: str,
    message: str,
    *,
    generation: int,
    now: datetime,
) -> bool:
    """Add or update a condition in place; lastTransitionTime changes only with `status`.

    Returns whether status or reason changed, which deserves an Event.
    """
    old = find_condition(conditions, type_)
    since = old.last_transition_time if old is not None and old.status == status else now
    new = Condition(
        type=type_,
        status=status,
        observed_generation=generation,
        last_transition_time=since,
        reason=reason,
        message=message,
    )
    if old is None:
        conditions.append(new)
        return True
    conditions[conditions.index(old)] = new
    return (old.status, old.reason) != (status, reason)


READY = "Ready"
RECONCILING = "Reconciling"
STALLED = "Stalled"
"""Like Reconciling, present only while it is True."""
UNSEEN = -1
"""The default of status.observedGeneration: an object is in progress until its controller has seen it."""


def summarize(conditions: list[Condition], *, stalled: bool, now: datetime) -> None:
    """Set, next to Ready and in place, the conditions by which Flux, Argo CD and Helm judge an object.

    Reconciling while Ready is not True and work continues; Stalled instead if only a person can help. So
    sigs.k8s.io/cli-utils/pkg/kstatus reports: in progress, failed, or else as Ready says.
    """
    ready = find_condition(conditions, READY)
    wanted = None if ready is None or ready.status == "True" else STALLED if stalled else RECONCILING
    conditions[:] = [
        each for each in conditions if each.type == wanted or each.type not in (RECONCILING, STALLED)
    ]
    if ready is not None and wanted is not None:
        set_condition(
            conditions,
            wanted,
            "True",
            ready.reason,
            ready.message,
            generation=ready.observed_generation,
            now=now,
        )


class OwnerReference(ApiModel):
    """An object whose deletion also deletes this one (metav1.OwnerReference)."""

    api_version: str
    kind: str
    name: str
    uid: str


class ObjectMeta(ApiModel):
    """The part of metav1.ObjectMeta that crdkeeper reads and writes."""

    name: str
    uid: str | None = None
    resource_version: str | None = None
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    owner_references: list[OwnerReference] = Field(default_factory=list)
    finalizers: list[str] = Field(default_factory=list)


class Column(BaseModel):
    """A printer column of `kubectl get`."""

    name: str
    type: Literal["string", "integer", "number", "boolean", "date"]
    json_path: str
    priority: int = 0
    description: str = ""


class Kind(ApiModel):
    """Base of the kinds; subclasses add `spec` (if users write one) and `status`, and their names."""

    plural: ClassVar[str]
    short_names: ClassVar[tuple[str, ...]]
    columns: ClassVar[tuple[Column, ...]]
    validations: ClassVar[tuple[dict[str, str], ...]] = ()
    """CEL rules for whole objects."""

    api_version: str = API_VERSION
    kind: str
    metadata: ObjectMeta
