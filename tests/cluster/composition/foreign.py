"""Composite APIs as users of kro and of Crossplane write them, for a group of the test's own.

They are written for these tests; their shapes are those of the projects' examples.
"""

from typing import Final

SHOPS: Final = """
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: shops-NAME}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Shop
    group: GROUP
    spec:
      name: string
      namespace: string | default=default
      image: string | default="registry.example.com/shop:1" printColumn="IMAGE"
      port: integer | default=8080
      replicas: integer | default=2
      service: {enabled: boolean | default=true}
      ingress: {enabled: boolean | default=false}
      settings: 'map[string]string | default={"theme":"dark"}'
      limits:
        cpu: string | default=100m
        memory: string | default=128Mi
    status:
      deploymentConditions: ${deployment.status.conditions}
      availableReplicas: ${deployment.status.availableReplicas}
      host: ${ingress.spec.rules[0].host}
      address: ${service.metadata.name}.${service.metadata.namespace}:${string(schema.spec.port)}
    additionalPrinterColumns:
    - {name: STATE, type: string, jsonPath: .status.state}
    - {name: Available, type: integer, jsonPath: .status.availableReplicas}
    - {name: AGE, type: date, jsonPath: .metadata.creationTimestamp}
  resources:
  - id: config
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.spec.name}-config", namespace: "${schema.spec.namespace}"}
      data: ${schema.spec.settings}
  - id: deployment
    readyWhen: ["${deployment.spec.replicas == deployment.status.availableReplicas}"]
    template:
      apiVersion: apps/v1
      kind: Deployment
      metadata:
        name: ${schema.spec.name}
        namespace: ${schema.spec.namespace}
        labels: {app: "${schema.spec.name}"}
      spec:
        replicas: ${schema.spec.replicas}
        selector: {matchLabels: {app: "${schema.spec.name}"}}
        template:
          metadata: {labels: {app: "${schema.spec.name}"}}
          spec:
            containers:
            - name: web
              image: ${schema.spec.image}
              ports: [{containerPort: "${schema.spec.port}"}]
              resources: {limits: "${schema.spec.limits}"}
              env:
              - {name: THEME, value: "${config.data.?theme.orValue('none')}"}
              - {name: PORT, value: "${string(schema.spec.port)}"}
              envFrom: [{configMapRef: {name: "${config.metadata.name}"}}]
  - id: service
    includeWhen: ["${schema.spec.service.enabled}"]
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: "${deployment.metadata.name}", namespace: "${deployment.metadata.namespace}"}
      spec:
        selector: ${deployment.spec.selector.matchLabels}
        ports: [{name: http, port: 80, targetPort: "${schema.spec.port}"}]
  - id: ingress
    includeWhen: ["${schema.spec.ingress.enabled}"]
    template:
      apiVersion: networking.k8s.io/v1
      kind: Ingress
      metadata:
        name: ${deployment.metadata.name}
        annotations:
          example.org/listen: '[{"HTTP": 80}]'
          example.org/class: '${schema.spec.port == 443 ? "tls" : "plain"}'
      spec:
        rules:
        - host: ${schema.spec.name}.example.org
          http:
            paths:
            - path: /
              pathType: Prefix
              backend: {service: {name: "${service.metadata.name}", port: {number: 80}}}
"""
"""A web application: optional parts, a map, an object as a whole, and a status that is there later."""

ROSTERS: Final = """
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: rosters-NAME}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Roster
    group: GROUP
    types:
      Role: {title: string, levels: "[]integer"}
      Person: {name: string, role: Role, deputies: "map[string]Role"}
      Team: {name: string, members: "[]Person"}
    spec:
      teams: "[]Team"
      domain: string | default="desk.north.example.org"
      regions: '[]string | default=["north","south"]'
      shared: string | required=true
    status:
      regions: ${perRegion.map(one, one.data.region)}
      finished: ${job.status.completionTime}
  resources:
  - id: zone
    externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${schema.spec.shared}"}}
  - id: roster
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-roster"}
      data:
        teams: |
          ${schema.spec.teams.map(t, t.name + ": " + t.members.map(m, m.name + " (" + m.role.title + ")").join(", ")).join("; ")}
        host: ${schema.spec.domain.split('.')[0]}
        parent: ${schema.spec.domain.split('.').slice(1, 3).join('.')}
        zone: ${zone.data.?name.orValue("nowhere")}
        size: "${quantity(\\"500Mi\\").isLessThan(quantity(\\"1Gi\\")) ? \\"small\\" : \\"large\\"}"
  - id: perRegion
    forEach: [{region: "${schema.spec.regions}"}]
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-${region}"}
      data: {of: "${roster.metadata.name}", region: "${region}"}
  - id: job
    readyWhen: ["${job.status.completionTime != null}"]
    template:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: "${schema.metadata.name}-job"}
      spec:
        template:
          spec:
            restartPolicy: Never
            containers:
            - {name: main, image: registry.example.com/none, command: [sleep, "${string(size(schema.spec.regions))}"]}
"""  # noqa: E501
"""Types in types, functions, an object of somebody else, a list of objects, and a job that ends."""

TENANTS: Final = """
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: tenants-NAME}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Tenant
    group: GROUP
    scope: Cluster
    spec: {tenantId: string | required=true, theme: string | default=plain}
    status: {theme: "${application.status.theme}", space: "${space.metadata.name}"}
  resources:
  - id: space
    template:
      apiVersion: GROUP/v1alpha1
      kind: Space
      metadata: {name: "${schema.spec.tenantId}", labels: {name: "${schema.spec.tenantId}"}}
      spec: {tenantId: "${schema.spec.tenantId}"}
    readyWhen: ["${space.status.?namespace.hasValue()}"]
  - id: application
    template:
      apiVersion: GROUP/v1alpha1
      kind: Application
      metadata: {name: main, namespace: "${space.status.namespace}"}
      spec: {theme: "${schema.spec.theme}"}
---
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: spaces-NAME}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Space
    group: GROUP
    scope: Cluster
    spec: {tenantId: string}
    status: {namespace: "${home.metadata.name}"}
  resources:
  - id: home
    template:
      apiVersion: v1
      kind: Namespace
      metadata: {name: "${schema.spec.tenantId}", labels: {tenant: "${schema.spec.tenantId}"}}
  - id: quota
    template:
      apiVersion: v1
      kind: ResourceQuota
      metadata: {name: quota, namespace: "${home.metadata.name}"}
      spec: {hard: {requests.cpu: "1", limits.memory: 2Gi}}
  - id: policy
    template:
      apiVersion: networking.k8s.io/v1
      kind: NetworkPolicy
      metadata: {name: isolation, namespace: "${home.metadata.name}"}
      spec:
        podSelector:
          matchLabels:
        ingress: [{from: [{podSelector: {}}]}]
---
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: applications-NAME}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Application
    group: GROUP
    spec:
      theme: string | enum="plain,dark"
    status: {theme: "${settings.data.theme}"}
  resources:
  - id: settings
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-settings"}
      data: {theme: "${schema.spec.theme}"}
"""
"""Composites in composites, in no namespace and in one that is composed, too."""

STORES: Final = """
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: stores.GROUP}
spec:
  scope: Namespaced
  group: GROUP
  names: {kind: Store, plural: stores}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [region, team]
            properties:
              region: {type: string, enum: [north, south]}
              team: {type: string}
              gigabytes: {type: integer, default: 2}
              days: {type: string, default: "30"}
              tier: {type: string}
              tags: {type: object, additionalProperties: {type: string}}
          status:
            type: object
            properties:
              bucket: {type: object, properties: {id: {type: string}, url: {type: string}}}
              megabytes: {type: integer}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: stores-NAME, labels: {provider: local}}
spec:
  compositeTypeRef: {apiVersion: GROUP/v1, kind: Store}
  mode: Pipeline
  pipeline:
  - step: patch-and-transform
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      patchSets:
      - name: common
        patches:
        - {fromFieldPath: spec.team, toFieldPath: "metadata.labels[example.org/team]"}
        - type: FromCompositeFieldPath
          fromFieldPath: spec.region
          toFieldPath: spec.forProvider.location
          transforms:
          - {type: map, map: {north: eu-north-1, south: eu-south-2}}
          policy: {fromFieldPath: Required}
      resources:
      - name: bucket
        base:
          apiVersion: GROUP/v1
          kind: Bucket
          spec:
            forProvider: {location: none, class: standard, rules: [{kind: expire, days: 1}]}
            providerConfigRef: {name: default}
        patches:
        - {type: PatchSet, patchSetName: common}
        - fromFieldPath: metadata.name
          toFieldPath: metadata.name
          transforms: [{type: string, string: {type: Format, fmt: "%s-bucket"}}]
        - fromFieldPath: spec.gigabytes
          toFieldPath: spec.forProvider.megabytes
          transforms: [{type: math, math: {type: Multiply, multiply: 1024}}]
        - fromFieldPath: spec.gigabytes
          toFieldPath: metadata.annotations[example.org/gigabytes]
          transforms: [{type: convert, convert: {toType: string}}]
        - fromFieldPath: spec.days
          toFieldPath: spec.forProvider.rules[0].days
          transforms:
          - {type: convert, convert: {toType: int64}}
          - {type: math, math: {type: ClampMax, clampMax: 90}}
        - fromFieldPath: spec.tier
          toFieldPath: spec.forProvider.class
          transforms: [{type: string, string: {type: Convert, convert: ToLower}}]
        - fromFieldPath: spec.tags
          toFieldPath: spec.forProvider.tags
        - type: CombineFromComposite
          combine:
            strategy: string
            variables: [{fromFieldPath: metadata.namespace}, {fromFieldPath: spec.team}]
            string: {fmt: "%s/%s"}
          toFieldPath: spec.forProvider.prefix
        - {type: ToCompositeFieldPath, fromFieldPath: status.atProvider.id, toFieldPath: status.bucket.id}
        - type: ToCompositeFieldPath
          fromFieldPath: spec.forProvider.megabytes
          toFieldPath: status.megabytes
        - type: CombineToComposite
          combine:
            strategy: string
            variables: [{fromFieldPath: status.atProvider.id}, {fromFieldPath: spec.forProvider.location}]
            string: {fmt: "https://%s.%s.example.org"}
          toFieldPath: status.bucket.url
      - name: settings
        base: {apiVersion: v1, kind: ConfigMap, data: {note: "costs ${price}"}}
        patches:
        - fromFieldPath: spec.region
          toFieldPath: data.region
          transforms:
          - type: match
            match:
              patterns: [{type: literal, literal: north, result: cold}]
              fallbackValue: warm
        - fromFieldPath: spec.tier
          toFieldPath: data.tier
        readinessChecks:
        - {type: NonEmpty, fieldPath: data.region}
  - step: ready
    functionRef: {name: function-auto-ready}
"""
"""Of Crossplane: an API, and what it stands for by patches and transforms."""


BUCKETS: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Bucket, plural: buckets}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              providerConfigRef: {type: object, properties: {name: {type: string}}}
              forProvider:
                type: object
                required: [location]
                properties:
                  location: {type: string}
                  class: {type: string}
                  prefix: {type: string}
                  megabytes: {type: integer}
                  tags: {type: object, additionalProperties: {type: string}}
                  rules: {type: array, items: {type: object, properties: {kind: {type: string}, days: {type: integer}}}}
          status:
            type: object
            properties:
              atProvider: {type: object, properties: {id: {type: string}}}
              conditions: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}}}}
"""  # noqa: E501
"""What a provider of Crossplane looks after."""


def documents(text: str, group: str) -> str:
    """The documents for a group; what is in no namespace and no group is named after it, too."""
    return text.replace("GROUP", group).replace("-NAME", f"-{group.partition('.')[0]}")
