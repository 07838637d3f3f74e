"""The API of the benchmark of composites, as a Composition and as kro's ResourceGraphDefinition."""

from typing import Any, Final

Json = Any
KIND: Final = "App"
PLURAL: Final = "apps"
ENGINE: Final = "MySQL"


def resources(root: str, objects: int, note: str) -> list[tuple[str, Json, str]]:
    """By name: templates and when they are ready, four for each part; `root` is the composite's variable.

    No controller but the Deployment's works on them, and nothing needs a node.
    """
    made: list[tuple[str, Json, str]] = []
    for part in range(objects // 4):
        name = f"${{{root}.metadata.name}}-{part}"
        labels = {"app": name}
        settings, account, server = f"settings{part}", f"account{part}", f"server{part}"
        container: Json = {
            "name": "app",
            "image": "registry.example.com/app:1",
            "env": [{"name": "ENGINE", "value": f"${{{root}.spec.engine}}"}],
            "envFrom": [{"configMapRef": {"name": f"${{{settings}.metadata.name}}"}}],
        }
        pod = {"serviceAccountName": f"${{{account}.metadata.name}}", "containers": [container]}
        spec = {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        ports = [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]
        observed = f"{server}.?status.?observedGeneration.orValue(0)"
        data = {"engine": f"${{{root}.spec.engine}}", "note": note}
        made += [
            (settings, _template("v1", "ConfigMap", name, data=data), ""),
            (account, _template("v1", "ServiceAccount", name), ""),
            (
                f"front{part}",
                _template(
                    "v1", "Service", name, spec={"clusterIP": "None", "selector": labels, "ports": ports}
                ),
                "",
            ),
            (
                server,
                _template("apps/v1", "Deployment", name, spec=spec),
                f"${{{observed} == {server}.metadata.generation}}",
            ),
        ]
    return made


def _template(api_version: str, kind: str, name: str, **fields: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


STATUS: Final = {
    "address": "${front0.metadata.name}",
    # What others write into a composed object.
    "theirs": '${settings0.data[?"theirs"].orValue("")}',
}


def definition(group: str) -> Json:
    """Ours."""
    text = {"type": "string"}
    properties = {
        "spec": {"type": "object", "required": ["engine"], "properties": {"engine": text}},
        "status": {"type": "object", "properties": dict.fromkeys(STATUS, text)},
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": KIND, "plural": PLURAL},
            "versions": [{"name": "v1", "referenceable": True, "schema": schema}],
            "deletion": "Cascade",
        },
    }


def composition(group: str, name: str, objects: int, note: str) -> Json:
    """Ours, with a note in its ConfigMaps."""
    made = [
        {"name": each, "template": template, **({"readyWhen": [when]} if when else {})}
        for each, template, when in resources("composite", objects, note)
    ]
    reference = {"apiVersion": f"{group}/v1", "kind": KIND}
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {"compositeTypeRef": reference, "resources": made, "status": STATUS},
    }


def graph(group: str, name: str, objects: int, note: str) -> Json:
    """The same for kro."""
    made = [
        {"id": each, "template": template, **({"readyWhen": [when]} if when else {})}
        for each, template, when in resources("schema", objects, note)
    ]
    schema = {
        "apiVersion": "v1",
        "kind": KIND,
        "group": group,
        "spec": {"engine": "string"},
        "status": STATUS,
    }
    return {
        "apiVersion": "kro.run/v1alpha1",
        "kind": "ResourceGraphDefinition",
        "metadata": {"name": name},
        "spec": {"schema": schema, "resources": made},
    }


def instance(group: str, namespace: str, name: str) -> Json:
    """A composite, or an instance of kro's."""
    return {
        "apiVersion": f"{group}/v1",
        "kind": KIND,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"engine": ENGINE},
    }
