"""The kinds of changes outside of schemas: names, versions, subresources, conversion."""

from crdkeeper.core.compatibility.change import Audience
from crdkeeper.core.compatibility.registry import NOBODY, breaks, kind, risks

_WRITERS, _READERS = Audience.WRITERS, Audience.READERS
_STORED, _OPERATORS = Audience.STORED, Audience.OPERATORS

DEFINITION_REMOVED = kind(
    "definition-removed",
    breaks(_WRITERS, _READERS, _STORED),
    why="Deleting a CRD deletes all objects of its kind.",
    remedy="Keep the CRD until nobody has objects; deprecate its versions first.",
)
DEFINITION_ADDED = kind("definition-added", NOBODY, why="Nobody relies on a new kind yet.", remedy="Nothing.")
REFUSED = kind(
    "refused",
    breaks(_OPERATORS),
    why="The API server refuses to put the new CRD in the place of the old one, in these words.",
    remedy="`crdkeeper lint` says how to repair what the message names.",
)
NOT_ACCEPTED = kind(
    "not-accepted",
    risks(_OPERATORS),
    why="The API server would accept neither the old CRD nor the new one, so that what else is said of the "
    "change may never matter.",
    remedy="`crdkeeper lint` says how to repair what the message names.",
)
IDENTITY = kind(
    "identity",
    breaks(_WRITERS, _READERS, _STORED, _OPERATORS),
    why="Group and plural name are the CRD's identity: with another one it is another CRD, without "
    "the objects.",
    remedy="Keep them; or add the new CRD beside the old one, copy the objects, and retire the old one.",
)
SCOPE = kind(
    "scope",
    breaks(_WRITERS, _READERS, _STORED, _OPERATORS),
    why="The scope is a part of every object's URL; the API server refuses to change it.",
    remedy="Keep it; or define another kind, copy the objects, and retire the old one.",
)
KIND = kind(
    "kind",
    breaks(_WRITERS, _READERS, _STORED, _OPERATORS),
    why="Every object and every client names the kind; the API server refuses to change it.",
    remedy="Keep it; or define another kind, copy the objects, and retire the old one.",
)
LIST_KIND = kind(
    "list-kind",
    risks(_READERS),
    why="Typed clients check the kind of the lists that they read.",
    remedy="Keep listKind.",
)
NAME_REMOVED = kind(
    "name-removed",
    risks(_WRITERS, _READERS),
    why="People and scripts call the resource by its singular and short names, and by its categories.",
    remedy="Keep the old name beside the new one.",
)
NAME_ADDED = kind(
    "name-added",
    NOBODY,
    why="One more name to call the resource by.",
    remedy="Nothing. If another CRD of the group has it, the condition NamesAccepted will say so.",
)

VERSION_REMOVED = kind(
    "version-removed",
    breaks(_WRITERS, _READERS),
    why="Requests to a version that is gone are answered with 404, and manifests that name it are refused.",
    remedy="Deprecate the version (deprecated: true) for a release or more, then set served: false, "
    "which can be taken back, and remove it at last.",
)
VERSION_NOT_SERVED = kind(
    "version-not-served",
    breaks(_WRITERS, _READERS),
    why="Requests to a version that is not served are answered with 404, and manifests that name it "
    "are refused.",
    remedy="Deprecate the version (deprecated: true) for a release or more before. Serving it again "
    "repairs it.",
)
STORED_VERSION_REMOVED = kind(
    "stored-version-removed",
    breaks(_STORED, _OPERATORS),
    why="The API server refuses to remove a version that status.storedVersions holds: objects in etcd "
    "may still be written in it, and nobody could read them.",
    remedy="First `crdkeeper migrate PLURAL.GROUP`, which rewrites all objects at the storage version "
    "and trims status.storedVersions.",
)
VERSION_MAYBE_STORED = kind(
    "version-maybe-stored",
    risks(_OPERATORS),
    why="In clusters where the version was once the storage version, the API server refuses to remove "
    "it until status.storedVersions no longer holds it. A file does not tell.",
    remedy="Tell users to run `crdkeeper migrate PLURAL.GROUP` before they upgrade, or compare with the "
    "live CRD.",
)
VERSION_DROPPED = kind(
    "version-dropped",
    NOBODY,
    why="A version that was not served and that nothing is stored in goes unnoticed.",
    remedy="Nothing.",
)
VERSION_ADDED = kind(
    "version-added",
    NOBODY,
    why="Old versions go on to be served. How they differ from the new one is told separately.",
    remedy="Nothing.",
)
VERSION_SERVED = kind(
    "version-served",
    NOBODY,
    why="One more version can be used. How the served versions differ is told separately.",
    remedy="Nothing.",
)
PREFERRED_VERSION = kind(
    "preferred-version",
    risks(_READERS),
    why="kubectl and other clients that name no version get another one from now on, with another schema.",
    remedy="Tell users to name the version, as in `kubectl get widgets.v1beta1.example.com`.",
)
STORAGE_VERSION = kind(
    "storage-version",
    risks(_OPERATORS),
    why="New objects are stored in the new version, old ones stay in the old one until each is "
    "written again; until then the old version cannot be removed.",
    remedy="After the upgrade `crdkeeper migrate PLURAL.GROUP` rewrites all objects and trims "
    "status.storedVersions.",
)
STORAGE_VERSION_NEW = kind(
    "storage-version-new",
    risks(_STORED, _OPERATORS),
    why="The new version stores objects from its first day on. The old CRD cannot be put back: it lacks a "
    "version that status.storedVersions holds.",
    remedy="Serve the new version for a release before it becomes the storage version; then migrate with "
    "`crdkeeper migrate PLURAL.GROUP`.",
)
DEPRECATION = kind(
    "deprecation",
    NOBODY,
    why="Whoever uses a deprecated version gets a warning with each answer, and nothing else.",
    remedy="Nothing; say in deprecationWarning what to use instead.",
)

STATUS_ENABLED = kind(
    "status-enabled",
    breaks(_WRITERS),
    why="With the status subresource, writes to the object ignore .status, in silence, and writes to "
    "/status ignore all else; metadata.generation counts changes of all but status.",
    remedy="Have the controller write to /status first, and grant it the right to; better in a new version.",
)
STATUS_ADDED = kind(
    "status-added",
    NOBODY,
    why="Objects had no status so far, so that no write of one can be lost.",
    remedy="Nothing; the controller writes to /status, and needs the right to.",
)
STATUS_DISABLED = kind(
    "status-disabled",
    breaks(_WRITERS),
    why="Requests to /status are answered with 404, and everyone who may write an object can write "
    "its status.",
    remedy="Keep the status subresource.",
)
SCALE_ADDED = kind("scale-added", NOBODY, why="The object can be scaled from now on.", remedy="Nothing.")
SCALE_REMOVED = kind(
    "scale-removed",
    breaks(_WRITERS, _READERS),
    why="kubectl scale and autoscalers get 404.",
    remedy="Keep the scale subresource.",
)
SCALE_PATH = kind(
    "scale-path",
    breaks(_WRITERS, _READERS),
    why="kubectl scale and autoscalers read and write another field than before.",
    remedy="Keep the path and the field that it leads to.",
)
SELECTOR_PATH_ADDED = kind(
    "selector-path-added", NOBODY, why="A HorizontalPodAutoscaler can find the pods now.", remedy="Nothing."
)
COLUMNS = kind(
    "columns",
    NOBODY,
    why="kubectl get shows other columns. Tables are for people; scripts should use -o json.",
    remedy="Nothing.",
)
SELECTABLE_FIELD_REMOVED = kind(
    "selectable-field-removed",
    breaks(_READERS),
    why="Lists and watches with a field selector on it are answered with 400.",
    remedy="Keep it in selectableFields.",
)
SELECTABLE_FIELD_ADDED = kind(
    "selectable-field-added", NOBODY, why="One more field can be selected by.", remedy="Nothing."
)

CONVERSION_WEBHOOK = kind(
    "conversion-webhook",
    risks(_OPERATORS),
    why="Requests at versions other than the storage version, and reads of objects stored in others, "
    "fail while the webhook does not answer.",
    remedy="Have the webhook answer for all versions before the CRD names it.",
)
CONVERSION_DROPPED = kind(
    "conversion-dropped",
    breaks(_WRITERS, _READERS, _STORED),
    why="Without the webhook only apiVersion changes between versions: fields that only one version "
    "has are lost.",
    remedy="Keep the webhook as long as the schemas of the versions differ.",
)
CONVERSION_NEEDLESS = kind(
    "conversion-needless",
    NOBODY,
    why="All versions have the same schema, so nothing but apiVersion must change between them.",
    remedy="Nothing, if the webhook changed no field.",
)
REVIEW_VERSION_REMOVED = kind(
    "review-version-removed",
    risks(_OPERATORS),
    why="A webhook that only understands the version of ConversionReview that is gone fails.",
    remedy="Keep it as long as a release of the webhook without the other one is in use.",
)
KEEPS_UNKNOWN_FIELDS = kind(
    "preserve-unknown-fields",
    breaks(_WRITERS, _READERS, _STORED),
    why="With preserveUnknownFields: false, fields that the schema does not name are pruned, also "
    "from stored objects when they are read.",
    remedy="Describe all fields, or set x-kubernetes-preserve-unknown-fields: true where they are open.",
)

SERVED_FIELD = kind(
    "served-field",
    breaks(_WRITERS, _READERS, _STORED),
    why="Both versions are served and nothing converts between them: the field is lost when an object "
    "is written through the version that lacks it, and never seen there.",
    remedy="Give both versions the field, or convert by a webhook that keeps it (in an annotation, say).",
)
SERVED_TYPE = kind(
    "served-type",
    breaks(_WRITERS, _READERS, _STORED),
    why="Both versions are served and nothing converts between them: an object written in one has a "
    "value of a wrong type in the other.",
    remedy="Use the same type, a field of another name, or convert by a webhook.",
)
SERVED_VALUE = kind(
    "served-value",
    risks(_WRITERS, _READERS),
    why="Both versions are served and nothing converts between them: an object that is valid in one may be "
    "invalid in the other, and refused when it is changed there.",
    remedy="Restrict both versions alike.",
)
SERVED_DEFAULT = kind(
    "served-default",
    risks(_WRITERS, _READERS),
    why="What an omitted field means depends on the version in which the object is written and stored.",
    remedy="Use the same default in both versions.",
)
SERVED_CONVERSION = kind(
    "served-conversion",
    risks(_STORED, _OPERATORS),
    why="Both versions are served: the conversion webhook must carry the difference both ways without "
    "a loss.",
    remedy="Test a round trip through the webhook with this field.",
)
