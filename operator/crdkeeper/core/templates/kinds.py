"""The kinds that templates make: their schemas, and whether their objects are in namespaces."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.composition import CompositeType
from crdkeeper.api.meta import GROUP
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.apiserver.schema.props import Schema

_API_VERSION: Final = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
)
_CRD: Final = "apiextensions.k8s.io", "CustomResourceDefinition"
"""Like kinds of crdkeeper.dev: the composer may write them without an opt-in."""
_CLUSTER_SCOPED: Final = frozenset(
    (
        *(("", each) for each in ("Namespace", "Node", "PersistentVolume")),
        *(
            ("admissionregistration.k8s.io", f"{each}{part}")
            for each in ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
            for part in ("", "Binding")
        ),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        _CRD,
        ("apiregistration.k8s.io", "APIService"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        *(("networking.k8s.io", each) for each in ("IngressClass", "IPAddress", "ServiceCIDR")),
        ("node.k8s.io", "RuntimeClass"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("internal.apiserver.k8s.io", "StorageVersion"),
        *(
            ("resource.k8s.io", each)
            for each in ("DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice")
        ),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storagemigration.k8s.io", "StorageVersionMigration"),
        *(
            ("storage.k8s.io", each)
            for each in ("CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass")
        ),
    )
)
"""The kinds of Kubernetes itself that are in no namespace (`kubectl api-resources --namespaced=false`)."""


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A kind of objects."""

    schema: Schema | None
    """None if it is not known: then nothing in it is checked."""
    namespaced: bool | None
    """None if that is not known."""


KnownKinds = Mapping[tuple[str, str], TargetKind]
"""By apiVersion and kind."""


def is_api_version(text: str) -> bool:
    """Whether it can be a version, or a group and version, and so the beginning of a path."""
    return _API_VERSION.fullmatch(text) is not None


def group_of(api_version: str) -> str:
    """The API group, empty for that of v1."""
    return api_version.rpartition("/")[0]


def not_composed(api_version: str, kind: str, composites: CompositeType) -> tuple[str, str] | None:
    """Why composites cannot compose a kind, and a hint; None if they can."""
    group = group_of(api_version)
    if (group, kind) == (group_of(composites.api_version), composites.kind):
        return "a composite cannot compose its own kind", "Each would compose another one, without end."
    if group == GROUP or (group, kind) == _CRD:
        return f"a composite cannot compose a {kind}", "Create it beside the Composition."
    return None


def kinds_of(crd: Mapping[str, Any]) -> dict[tuple[str, str], TargetKind]:
    """The kinds of a CRD, one for each version. Raises UnreadableDefinition."""
    schemas = schemas_of(crd)
    spec = crd["spec"]
    namespaced = spec.get("scope") == "Namespaced"
    return {
        (f"{spec['group']}/{version}", spec["names"]["kind"]): TargetKind(schema, namespaced)
        for version, schema in schemas.items()
    }


def find_kind(kinds: KnownKinds, api_version: str, kind: str) -> TargetKind:
    """What is known of a kind."""
    known = kinds.get((api_version, kind))
    if known is not None and known.namespaced is not None:
        return known
    schema = known.schema if known is not None else None
    return TargetKind(schema, False if (group_of(api_version), kind) in _CLUSTER_SCOPED else None)
