"""The fields of a CustomResourceDefinition in apiextensions.k8s.io/v1, decoded as the API server does."""

from crdkeeper.core.schema.decoding import Anything, Flag, Integer, ListOf, MapOf, Struct, Text
from crdkeeper.core.schema.props import SCHEMA

_TEXT, _FLAG, _OPTIONAL_TEXT = Text(), Flag(), Text(pointer=True)
_TEXTS = ListOf(_TEXT, "")

_METADATA = Struct(
    {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": _TEXT,
        "labels": MapOf(_TEXT, ""),
        "annotations": MapOf(_TEXT, ""),
        "finalizers": _TEXTS,
        "ownerReferences": ListOf(Anything(), {}),
        "uid": _TEXT,
        "resourceVersion": _TEXT,
        "generation": Integer(),
        "creationTimestamp": _TEXT,
        "deletionTimestamp": _TEXT,
        "deletionGracePeriodSeconds": Integer(),
        "selfLink": _TEXT,
        "managedFields": Anything(),
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
                        "caBundle": _TEXT,
                    }
                ),
                "conversionReviewVersions": _TEXTS,
            }
        ),
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
        "status": Anything(),
    }
)
