"""Conventions on the CRD as a whole: names, versions, conversion, size."""

from typing import Final

from crdkeeper.core.lint.convention import error, info, warning

_GROUP: Final = "definition"
ABOUT: Final = "the CRD as a whole: names, versions, conversion, size"

RESOURCE_NAMES = info(
    _GROUP,
    "resource-names",
    "Tools derive one name of a resource from the other, and people guess them.",
    "Use UpperCamelCase for kind, its lowercase plural without '-' for plural, its lowercase for "
    "singular, and kind with the suffix List for listKind.",
)
SHORT_NAME = warning(
    _GROUP,
    "short-name",
    "kubectl resolves the name to the built-in resource that has it, never to this one.",
    "Choose another short name, or prefix it.",
)
NAMES_CONFLICT = error(
    _GROUP,
    "names-conflict",
    "If two CRDs in a group claim the same name, the second never becomes established (NamesAccepted=False).",
    "Give one of them another name.",
)
CATEGORY_ALL = warning(
    _GROUP,
    "category-all",
    "The category `all` is for the workloads of an application. Whoever deletes these rarely means objects "
    "of another kind.",
    "Remove `all` from spec.names.categories. Use your own category.",
    otherwise="info for namespaced objects",
)
VERSION_STYLE = info(
    _GROUP,
    "version-style",
    "Clients prefer v2 to v1 and v1 to v1beta1. Versions in any other form sort alphabetically after these.",
    "Name versions v1, v1beta1 or v1alpha1.",
)
STORAGE_STABILITY = info(
    _GROUP,
    "storage-stability",
    "Objects stored at an alpha or beta version must be migrated before that version can be removed.",
    "Mark the stable version with storage: true, then migrate the objects (crdkeeper migrate).",
)
STORAGE_DEPRECATED = info(
    _GROUP,
    "storage-deprecated",
    "New objects are stored at a version that is about to be removed.",
    "Mark the version that replaces it with storage: true, then migrate the objects (crdkeeper migrate).",
)
DEPRECATION_TEXT = info(
    _GROUP,
    "deprecation-text",
    "The API server's automatic warning names only a version that is served, not deprecated, and ranks "
    "higher: stable before beta before alpha, then by number.",
    "Set deprecationWarning to a sentence that says what to use instead, and by when.",
)
CONVERSION_LOSS = warning(
    _GROUP,
    "conversion-loss",
    "With conversion strategy None, only apiVersion changes. A field that the other version lacks is "
    "pruned without an error.",
    "Add the field to both versions, or convert with a webhook. If kustomize adds the webhook, as to "
    "config/crd/bases, check what kustomize builds.",
    otherwise="info where a deprecated version lacks the field or alone has it, where the version that lacks "
    "it is not the preferred one, where only a stored version that is not served has it, and where the file "
    "does not mention conversion, but another tool probably adds the webhook: because the versions differ in "
    "both directions, or controller-gen wrote the file and a field has types without a common value",
)
CONVERSION_CA = info(
    _GROUP,
    "conversion-ca",
    "Without caBundle, the API server trusts only public authorities, which do not sign certificates "
    "for services in a cluster.",
    "Set caBundle, or let cert-manager set it (annotation cert-manager.io/inject-ca-from).",
    otherwise="warning for a CRD in a cluster",
)
STATUS_IN_MANIFEST = info(
    _GROUP,
    "status-in-manifest",
    "The API server owns status and ignores it in a manifest. Tools that compare the file with the "
    "cluster themselves report a permanent difference.",
    "Remove status from the file.",
)
APPLY_SIZE = warning(
    _GROUP,
    "apply-size",
    "kubectl apply keeps a copy of the object in an annotation, and annotations hold 256 KiB at most.",
    "Use `kubectl apply --server-side`, and tell users to do so. Or shorten the CRD: descriptions, "
    "embedded pod templates, old versions.",
)
DEFINITION_SIZE = warning(
    _GROUP,
    "definition-size",
    "etcd accepts at most 1.5 MiB per request.",
    "Shorten the CRD: remove versions that are no longer served, descriptions, and embedded pod templates.",
)
SERVER_CONDITION = error(
    _GROUP,
    "server-condition",
    "The API server itself reports a problem with the CRD.",
    "Follow the message.",
)
