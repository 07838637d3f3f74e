"""Conventions on status and scale."""

from typing import Final

from crdkeeper.core.lint.convention import error, info, warning

_GROUP: Final = "status"
ABOUT: Final = "status and scale"

STATUS_SUBRESOURCE = warning(
    _GROUP,
    "status-subresource",
    "Without the subresource, each write of status increments metadata.generation, and everyone who "
    "can write spec can write status.",
    "Add `subresources: {status: {}}` to the version.",
    otherwise="info unless the root has a spec and status has an observedGeneration, which each write of it "
    "then makes outdated; and where the root requires status, which then is written with the object",
)
STATUS_SCHEMA = info(
    _GROUP,
    "status-schema",
    "A field that the schema does not declare is pruned, so everything that a controller writes to "
    "status is lost.",
    "Add properties.status to the schema, or remove the subresource.",
)
STATUS_REQUIRED = error(
    _GROUP,
    "status-required",
    "With the subresource, the API server drops status on creation and then requires it, so no object can be "
    "created. Without it, whoever creates an object must write the status.",
    "Remove `status` from `required` at the root.",
    otherwise="info without the subresource, because whoever has created an object knows it",
)
CONDITIONS_LIST = info(
    _GROUP,
    "conditions-list",
    "Unless the list is a map keyed by type, controllers that apply conditions overwrite each "
    "other's, and a type can occur twice.",
    "Set x-kubernetes-list-type: map and x-kubernetes-list-map-keys: [type] on status.conditions.",
    otherwise="warning where the list is a map by other keys and its entries are metav1.Condition",
)
CONDITIONS_FIELDS = info(
    _GROUP,
    "conditions-fields",
    "Tools read conditions as metav1.Condition: type, status, reason, message, lastTransitionTime and "
    "observedGeneration.",
    "Use the schema of metav1.Condition.",
)
OBSERVED_GENERATION = info(
    _GROUP,
    "observed-generation",
    "Clients cannot tell whether status describes the current spec or an older one: `kubectl wait` "
    "and GitOps tools report success too early.",
    "Add observedGeneration (integer, int64) to status or to its conditions, and set it to "
    "metadata.generation.",
)
STATUS_PHASE = info(
    _GROUP,
    "status-phase",
    "A phase reduces several facts to one word, so adding a phase breaks clients. The API "
    "conventions deprecate it.",
    "Use conditions.",
)
SCALE_TARGET = error(
    _GROUP,
    "scale-target",
    "If a path points to a field of another type, objects with a value there are refused. If it "
    "points to no field, the scale subresource fails or reports nothing.",
    "Point specReplicasPath and statusReplicasPath to integers, and labelSelectorPath to a string.",
)
SCALE_SELECTOR = warning(
    _GROUP,
    "scale-selector",
    "A HorizontalPodAutoscaler does not work with a target whose scale has no selector.",
    "Publish the pods' selector as a string in status, and point labelSelectorPath to it.",
    otherwise="info where spec has neither the template of a pod nor a selector, because it scales no pods",
)
STATUS_FIELDS = info(
    _GROUP,
    "status-fields",
    "Controllers fill status step by step, and several may share it. A write without a required field is "
    "refused.",
    "Remove `required` from status itself.",
)
