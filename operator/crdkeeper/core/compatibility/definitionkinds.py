"""The kinds of changes outside of schemas: names, versions, subresources, conversion."""

from crdkeeper.core.compatibility.change import Audience
from crdkeeper.core.compatibility.registry import NOBODY, breaks, kind, risks
from crdkeeper.core.removedversions import APPLY_FAILS, APPLY_REMEDY

_WRITERS, _READERS = Audience.WRITERS, Audience.READERS
_STORED, _OPERATORS = Audience.STORED, Audience.OPERATORS

DEFINITION_REMOVED = kind(
    "definition-removed",
    breaks(_WRITERS, _READERS, _STORED),
    why="Deleting a CRD deletes all objects of its kind.",
    remedy="Deprecate its versions first, and keep the CRD until no objects are left.",
)
DEFINITION_ADDED = kind(
    "definition-added", NOBODY, why="No client relies on a new kind yet.", remedy="Nothing."
)
REFUSED = kind(
    "refused",
    breaks(_OPERATORS),
    why="The API server refuses to replace the old CRD with the new one. The message quotes it.",
    remedy="`crdkeeper lint` says how to fix it.",
    fixed=True,
)
NOT_ACCEPTED = kind(
    "not-accepted",
    risks(_OPERATORS),
    why="The API server would accept neither the old CRD nor the new one, so that what else is said of the "
    "change may never matter.",
    remedy="`crdkeeper lint` says how to repair what the message names.",
    fixed=True,
)
IDENTITY = kind(
    "identity",
    breaks(_WRITERS, _READERS, _STORED, _OPERATORS),
    why="Group and plural name identify the CRD. If one of them changes, it is another CRD, without the "
    "objects.",
    remedy="Keep them. Or add the new CRD alongside the old one, copy the objects, and retire the old one.",
    fixed=True,
)
SCOPE = kind(
    "scope",
    breaks(_WRITERS, _READERS, _STORED, _OPERATORS),
    why="The scope is part of every object's URL. The API server refuses to change it.",
    remedy="Keep it. Or define another kind, copy the objects, and retire the old one.",
    fixed=True,
)
KIND = kind(
    "kind",
    breaks(_WRITERS, _READERS, _STORED, _OPERATORS),
    why="Every object and every client uses the kind. The API server refuses to change it.",
    remedy="Keep it. Or define another kind, copy the objects, and retire the old one.",
    fixed=True,
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
    why="People and scripts refer to the resource by its singular name, short names and categories.",
    remedy="Keep the old name alongside the new one.",
)
NAME_ADDED = kind(
    "name-added",
    NOBODY,
    why="The resource gets an additional name.",
    remedy="Nothing. If another CRD in the group uses it, the condition NamesAccepted says so.",
)

VERSION_REMOVED = kind(
    "version-removed",
    breaks(_WRITERS, _READERS),
    why="Requests to a removed version fail with 404, and manifests that use it are refused.",
    remedy="Deprecate the version (deprecated: true) for at least one release, then set served: false, "
    "which you can revert, and remove it last.",
)
VERSION_NOT_SERVED = kind(
    "version-not-served",
    breaks(_WRITERS, _READERS),
    why="Requests to a version that is not served fail with 404, and manifests that use it are refused.",
    remedy="Deprecate the version (deprecated: true) for at least one release first. Serving it again "
    "reverts the change.",
)
NONE_SERVED = kind(
    "none-served",
    risks(_WRITERS, _READERS),
    why="The API server accepts the CRD, but serves none of its versions: every request for an object fails "
    "with 404, while the objects stay in etcd.",
    remedy="Set served: true for at least one version, unless nobody should read or write the objects.",
)
STORED_VERSION_REMOVED = kind(
    "stored-version-removed",
    breaks(_STORED, _OPERATORS),
    why="The API server refuses to remove a version listed in status.storedVersions: objects in etcd may "
    "still be stored at it and would become unreadable.",
    remedy="Run `crdkeeper migrate PLURAL.GROUP` first. It rewrites all objects at the storage version and "
    "trims status.storedVersions.",
    fixed=True,
)
VERSION_MAYBE_STORED = kind(
    "version-maybe-stored",
    risks(_OPERATORS),
    why="In clusters where the version was once the storage version, the API server refuses to remove it "
    "until status.storedVersions no longer lists it. A file does not show whether it was.",
    remedy="Tell users to run `crdkeeper migrate PLURAL.GROUP` before they upgrade, or compare with the "
    "live CRD.",
)
APPLY_OF_REMOVED_VERSION = kind(
    "apply-of-removed-version",
    risks(_WRITERS),
    why=APPLY_FAILS,
    remedy=APPLY_REMEDY,
)
VERSION_DROPPED = kind(
    "version-dropped",
    NOBODY,
    why="No client or stored object uses a version that was neither served nor stored.",
    remedy="Nothing.",
)
VERSION_ADDED = kind(
    "version-added",
    NOBODY,
    why="The old versions are still served. Their differences from the new one are reported separately.",
    remedy="Nothing.",
)
VERSION_SERVED = kind(
    "version-served",
    NOBODY,
    why="Clients can use one more version. Differences between the served versions are reported separately.",
    remedy="Nothing.",
)
PREFERRED_VERSION = kind(
    "preferred-version",
    risks(_READERS),
    why="kubectl and other clients that do not specify a version now get a different one, with a "
    "different schema.",
    remedy="Tell users to specify the version, as in `kubectl get widgets.v1beta1.example.com`.",
)
STORAGE_VERSION = kind(
    "storage-version",
    risks(_OPERATORS),
    why="New objects are stored at the new version. Existing objects stay at the old one until each is "
    "written again. Until then, the old version cannot be removed.",
    remedy="After the upgrade, run `crdkeeper migrate PLURAL.GROUP` to rewrite all objects and trim "
    "status.storedVersions.",
)
STORAGE_VERSION_NEW = kind(
    "storage-version-new",
    risks(_STORED, _OPERATORS),
    why="The new version is the storage version immediately. You cannot roll back to the old CRD, "
    "because it lacks a version listed in status.storedVersions.",
    remedy="Serve the new version for one release before it becomes the storage version. Then migrate with "
    "`crdkeeper migrate PLURAL.GROUP`.",
)
DEPRECATION = kind(
    "deprecation",
    NOBODY,
    why="Clients of a deprecated version get a warning with each response. Nothing else changes.",
    remedy="Nothing. Say in deprecationWarning what to use instead.",
)

STATUS_ENABLED = kind(
    "status-enabled",
    breaks(_WRITERS),
    why="With the status subresource, writes to the object silently ignore .status, and writes to "
    "/status ignore everything else. metadata.generation counts all changes except to status.",
    remedy="First let the controller write to /status, and grant it permission. Better, do so in a new "
    "version.",
)
STATUS_ADDED = kind(
    "status-added",
    NOBODY,
    why="Objects had no status before, so no write to it can be lost.",
    remedy="Nothing. The controller writes to /status, and needs permission to do so.",
)
STATUS_DISABLED = kind(
    "status-disabled",
    breaks(_WRITERS),
    why="Requests to /status fail with 404, and everyone who can write an object can write its status.",
    remedy="Keep the status subresource.",
)
SCALE_ADDED = kind("scale-added", NOBODY, why="The object can now be scaled.", remedy="Nothing.")
SCALE_REMOVED = kind(
    "scale-removed",
    breaks(_WRITERS, _READERS),
    why="kubectl scale and autoscalers get 404.",
    remedy="Keep the scale subresource.",
)
SCALE_PATH = kind(
    "scale-path",
    breaks(_WRITERS, _READERS),
    why="kubectl scale and autoscalers read and write a different field than before.",
    remedy="Keep the path and the field that it points to.",
)
SELECTOR_PATH_ADDED = kind(
    "selector-path-added", NOBODY, why="A HorizontalPodAutoscaler can now find the pods.", remedy="Nothing."
)
SCALE_VALUES = kind(
    "scale-values",
    risks(_WRITERS, _STORED),
    why="Objects may have another value there than a number of replicas (an integer from 0 to 2147483647), "
    "or than a string with the selector. The API server refuses each write of such an object, even one that "
    "leaves the value unchanged.",
    remedy="Check real objects (kubectl get -A -o json). A field with type: integer, format: int32 and "
    "minimum: 0, or with type: string for the selector, has no such values.",
)
COLUMNS = kind(
    "columns",
    NOBODY,
    why="kubectl get shows different columns. Tables are for people; scripts should use -o json.",
    remedy="Nothing.",
)
SELECTABLE_FIELD_REMOVED = kind(
    "selectable-field-removed",
    breaks(_READERS),
    why="Lists and watches with a field selector on it fail with 400.",
    remedy="Keep it in selectableFields.",
)
SELECTABLE_FIELD_ADDED = kind(
    "selectable-field-added", NOBODY, why="Field selectors can use one more field.", remedy="Nothing."
)

CONVERSION_WEBHOOK = kind(
    "conversion-webhook",
    risks(_OPERATORS),
    why="Requests at versions other than the storage version, and reads of objects stored in others, "
    "fail while the webhook does not respond.",
    remedy="Make sure that the webhook converts all versions before the CRD references it.",
)
CONVERSION_DROPPED = kind(
    "conversion-dropped",
    breaks(_WRITERS, _READERS, _STORED),
    why="Without the webhook, only apiVersion changes between versions: fields that only one version has "
    "are lost.",
    remedy="Keep the webhook as long as the schemas of the versions differ.",
)
CONVERSION_NEEDLESS = kind(
    "conversion-needless",
    NOBODY,
    why="All versions have the same schema, so only apiVersion needs to change between them.",
    remedy="Nothing, if the webhook changed no field.",
)
REVIEW_VERSION_REMOVED = kind(
    "review-version-removed",
    risks(_OPERATORS),
    why="A webhook that understands only the removed version of ConversionReview fails.",
    remedy="Keep it while any release of the webhook in use understands only that version.",
)
KEEPS_UNKNOWN_FIELDS = kind(
    "preserve-unknown-fields",
    breaks(_WRITERS, _READERS, _STORED),
    why="With preserveUnknownFields: false, fields that the schema does not declare are pruned, "
    "including from stored objects when they are read.",
    remedy="Declare all fields, or set x-kubernetes-preserve-unknown-fields: true for arbitrary content.",
)

SERVED_FIELD = kind(
    "served-field",
    breaks(_WRITERS, _READERS, _STORED),
    why="Nothing converts between the two versions: the field is lost when an object is written or stored "
    "at the version that lacks it, and never visible there.",
    remedy="Add the field to both versions, or convert with a webhook that keeps it, for example in an "
    "annotation.",
)
SERVED_TYPE = kind(
    "served-type",
    breaks(_WRITERS, _READERS, _STORED),
    why="Nothing converts between the two versions: an object written at one has a value of the wrong type "
    "at the other.",
    remedy="Use the same type or a different field name, or convert with a webhook.",
)
SERVED_VALUE = kind(
    "served-value",
    risks(_WRITERS, _READERS),
    why="Both versions are served and nothing converts between them: an object that is valid at one may "
    "be invalid at the other, and refused when it is changed there.",
    remedy="Apply the same restriction to both versions.",
)
SERVED_DEFAULT = kind(
    "served-default",
    risks(_WRITERS, _READERS),
    why="The meaning of an omitted field depends on the version at which the object is written and stored.",
    remedy="Use the same default in both versions.",
)
SERVED_CONVERSION = kind(
    "served-conversion",
    risks(_STORED, _OPERATORS),
    why="Both versions are served: the conversion webhook must preserve the difference in both directions.",
    remedy="Test a round trip through the webhook with this field.",
)
