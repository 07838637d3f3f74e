"""Crossplane's CompositeResourceDefinitions, with what its documentation shows of them."""

from typing import Any

Json = Any


def crossplane(version: str = "v2", *, versions: Json = None, metadata: Json = None, **spec: Any) -> Json:
    """A definition of one version with a region and a size."""
    return {
        "apiVersion": f"apiextensions.crossplane.io/{version}",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "stores.example.org", **(metadata or {})},
        "spec": {
            "group": "example.org",
            "names": {"kind": "Store", "plural": "stores"},
            "versions": [at("v1alpha1")] if versions is None else versions,
            **spec,
        },
    }


def at(name: str, *, spec: Json = None, root: Json = None, status: Json = None, **fields: Any) -> Json:
    """A version; `spec`, `root` and `status` are keywords besides those of all."""
    properties = {
        "spec": {
            "type": "object",
            "properties": {"region": {"type": "string"}, "size": {"type": "string", "enum": ["S", "L"]}},
            "required": ["region"],
            **(spec or {}),
        },
        **({"status": {"type": "object", **status}} if status is not None else {}),
    }
    schema = {"type": "object", "properties": properties, **(root or {})}
    return {
        "name": name,
        "served": True,
        "referenceable": True,
        "schema": {"openAPIV3Schema": schema},
        **fields,
    }


EXAMPLES: dict[str, Json] = {
    "the smallest": crossplane(),
    "v1, with claims and connection secrets": crossplane(
        "v1",
        claimNames={"kind": "StoreClaim", "plural": "storeclaims"},
        connectionSecretKeys=["username", "password"],
        defaultCompositeDeletePolicy="Background",
        scope="LegacyCluster",
    ),
    "cluster-scoped": crossplane(scope="Cluster"),
    "two versions, one deprecated": crossplane(
        versions=[
            at("v1"),
            at("v1alpha1", referenceable=False, deprecated=True, deprecationWarning="Use v1."),
        ]
    ),
    "a webhook converts": crossplane(
        versions=[at("v1"), at("v1beta1", referenceable=False)],
        conversion={
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": "a", "name": "b", "path": "/c"}},
            },
        },
    ),
    "defaults": crossplane(
        defaultCompositionRef={"name": "small"},
        defaultCompositionUpdatePolicy="Manual",
        defaultCompositionRevisionSelector={"matchLabels": {"channel": "dev"}},
    ),
    "a Composition enforced": crossplane(enforcedCompositionRef={"name": "secure"}),
    "names": crossplane(
        names={
            "kind": "Store",
            "plural": "stores",
            "singular": "store",
            "listKind": "StoreList",
            "shortNames": ["st"],
            "categories": ["platform"],
        },
        metadata={"labels": {"team": "a"}},
    ),
    "metadata of the CRD": {
        **crossplane(),
        "spec": {
            **crossplane()["spec"],
            "metadata": {"labels": {"a": "b"}, "annotations": {"example.org/c": "d"}},
        },
    },
    "columns and scale": crossplane(
        versions=[
            at(
                "v1",
                spec={"properties": {"region": {"type": "string"}, "replicas": {"type": "integer"}}},
                status={"properties": {"replicas": {"type": "integer"}}},
                additionalPrinterColumns=[
                    {"name": "Region", "type": "string", "jsonPath": ".spec.region", "priority": 1}
                ],
                subresources={
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                    }
                },
            )
        ]
    ),
    "rules": crossplane(
        versions=[
            at(
                "v1",
                spec={
                    "oneOf": [{"required": ["size"]}, {"not": {"required": ["size"]}}],
                    "x-kubernetes-validations": [{"rule": "self.region != ''", "message": "a region"}],
                },
                root={"x-kubernetes-validations": [{"rule": "self.spec.region == oldSelf.spec.region"}]},
            )
        ]
    ),
    "nested fields that are required": crossplane(
        versions=[
            at(
                "v1",
                spec={
                    "properties": {
                        "region": {"type": "string"},
                        "owner": {
                            "type": "object",
                            "properties": {"team": {"type": "string"}, "desk": {"type": "string"}},
                            "required": ["team"],
                        },
                    },
                    "required": ["region", "owner"],
                },
                status={
                    "properties": {"address": {"type": "string"}, "replicas": {"type": "integer"}},
                },
            )
        ]
    ),
    "LegacyCluster of v2": crossplane(scope="LegacyCluster", connectionSecretKeys=["password"]),
}

A_FIELD_MORE: Json = crossplane(
    versions=[
        at("v1"),
        at(
            "v1alpha1",
            referenceable=False,
            spec={"properties": {"region": {"type": "string"}}, "required": ["region"]},
        ),
    ]
)
"""Crossplane accepts it without a conversion; composites written at the old version lose the field."""
