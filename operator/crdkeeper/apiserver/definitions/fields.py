"""The fields of a CustomResourceDefinition in apiextensions.k8s.io/v1, decoded as the API server does."""

from crdkeeper.apiserver.schema.decoding import (
    Anything,
    Base64,
    Flag,
    Integer,
    ListOf,
    MapOf,
    Struct,
    Text,
    Time,
)
from crdkeeper.apiserver.schema.props import SCHEMA

_TEXT, _FLAG, _OPTIONAL_TEXT = Text(), Flag(), Text(pointer=True)
_TEXTS = ListOf(_TEXT, "")
_TIME, _OPTIONAL_FLAG = Time(), Flag(pointer=True)

_OWNER = Struct(
    {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "name": _TEXT,
        "uid": _TEXT,
        "controller": _OPTIONAL_FLAG,
        "blockOwnerDeletion": _OPTIONAL_FLAG,
    }
)

_MANAGED_FIELDS = Struct(
    {
        "manager": _TEXT,
        "operation": _TEXT,
        "apiVersion": _TEXT,
        "time": _TIME,
        "fieldsType": _TEXT,
        "fieldsV1": Anything(),
        "subresource": _TEXT,
    }
)

_METADATA = Struct(
    {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": _TEXT,
        "labels": MapOf(_TEXT, ""),
        "annotations": MapOf(_TEXT, ""),
        "finalizers": _TEXTS,
        "ownerReferences": ListOf(_OWNER, {}),
        "uid": _TEXT,
        "resourceVersion": _TEXT,
        "generation": Integer(),
        "creationTimestamp": _TIME,
        "deletionTimestamp": _TIME,
        "deletionGracePeriodSeconds": Integer(),
        "selfLink": _TEXT,
        "managedFields": ListOf(_MANAGED_FIELDS, {}),
    }
)

_NAMES = Struct(
    {
        "plural": _TEXT,
        "singular": _TEXT,
        "shortNames": _TEXTS,
        "kind": _TEXT,
        "listKind": _TEXT,
        "categories": _TEXTS,
    }
)

_COLUMN = Struct(
    {
        "name": _TEXT,
        "type": _TEXT,
        "format": _TEXT,
        "description": _TEXT,
        "priority": Integer(32, pointer=False),
        "jsonPath": _TEXT,
    }
)

_SUBRESOURCES = Struct(
    {
        "status": Struct({}),
        "scale": Struct(
            {"specReplicasPath": _TEXT, "statusReplicasPath": _TEXT, "labelSelectorPath": _OPTIONAL_TEXT}
        ),
    }
)

_VERSION = Struct(
    {
        "name": _TEXT,
        "served": _FLAG,
        "storage": _FLAG,
        "deprecated": _FLAG,
        "deprecationWarning": _OPTIONAL_TEXT,
        "schema": Struct({"openAPIV3Schema": SCHEMA}),
        "subresources": _SUBRESOURCES,
        "additionalPrinterColumns": ListOf(_COLUMN, {}),
        "selectableFields": ListOf(Struct({"jsonPath": _TEXT}), {}),
    }
)

_CONVERSION = Struct(
    {
        "strategy": _TEXT,
        "webhook": Struct(
            {
                "clientConfig": Struct(
                    {
                        "url": _OPTIONAL_TEXT,
                        "service": Struct(
                            {
                                "namespace": _TEXT,
                                "name": _TEXT,
                                "path": _OPTIONAL_TEXT,
                                "port": Integer(32),
                            }
                        ),
                        "caBundle": Base64(),
                    }
                ),
                "conversionReviewVersions": _TEXTS,
            }
        ),
    }
)

_STATUS = Struct(
    {
        "conditions": ListOf(
            Struct(
                {
                    "type": _TEXT,
                    "status": _TEXT,
                    "lastTransitionTime": _TIME,
                    "reason": _TEXT,
                    "message": _TEXT,
                    "observedGeneration": Integer(),
                }
            ),
            {},
        ),
        "acceptedNames": _NAMES,
        "storedVersions": _TEXTS,
        "observedGeneration": Integer(),
    }
)

DEFINITION = Struct(
    {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": _METADATA,
        "spec": Struct(
            {
                "group": _TEXT,
                "names": _NAMES,
                "scope": _TEXT,
                "versions": ListOf(_VERSION, {}),
                "conversion": _CONVERSION,
                "preserveUnknownFields": _FLAG,
            }
        ),
        "status": _STATUS,
    }
)
