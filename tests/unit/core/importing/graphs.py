"""ResourceGraphDefinitions of kro to import."""

from typing import Any, Final

import yaml

Json = Any

A_RESOURCE: Final[Json] = {
    "id": "settings",
    "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
}
WEB: Final[Json] = yaml.safe_load(
    """
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: web-application}
spec:
  schema:
    apiVersion: v1alpha1
    kind: WebProxy
    group: example.org
    shortNames: [wp]
    types:
      Port: {number: integer | required=true minimum=1 maximum=65535, name: string | default="http"}
    spec:
      image: string | required=true immutable=true printColumn="IMAGE"
      replicas: integer | default=2 minimum=1
      ingress: {enabled: boolean | default=false, host: string}
      ports: "[]Port | minItems=1"
      regions: "[]string"
    status:
      available: ${deployment.status.availableReplicas}
      url: http://${service.metadata.name}.${schema.metadata.namespace}
      total: ${size(configs)}
  resources:
  - id: deployment
    template:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "${schema.metadata.name}"}
      spec:
        replicas: ${schema.spec.replicas}
        selector: {matchLabels: {app: "${schema.metadata.name}"}}
        template:
          metadata: {labels: {app: "${schema.metadata.name}"}}
          spec: {containers: [{name: app, image: "${schema.spec.image}"}]}
    readyWhen: ["${deployment.status.availableReplicas == schema.spec.replicas}"]
  - id: service
    includeWhen: ["${schema.spec.ingress.enabled}"]
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: "${deployment.metadata.name}-svc"}
      spec:
        selector: ${deployment.spec.selector.matchLabels}
        ports: "${schema.spec.ports.map(each_, {'name': each_.name, 'port': each_.number})}"
  - id: configs
    forEach: [{region: "${schema.spec.regions}"}]
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name + '-' + region}"}
  - id: shared
    externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: shared, namespace: platform}}
"""
)


def graph(*, schema: Json = None, resources: Json = None) -> Json:
    """A small one, with other fields of its schema, and other resources."""
    given = {"apiVersion": "v1alpha1", "kind": "Thing", "spec": {"a": "string"}, **(schema or {})}
    return {
        "apiVersion": "kro.run/v1alpha1",
        "kind": "ResourceGraphDefinition",
        "metadata": {"name": "things"},
        "spec": {"schema": given, "resources": [A_RESOURCE] if resources is None else resources},
    }
