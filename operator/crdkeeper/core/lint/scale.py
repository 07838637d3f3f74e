"""The scale subresource: whether its paths lead to what autoscalers read and write."""

from crdkeeper.apiserver.schema.props import PRESERVE
from crdkeeper.apiserver.schema.scalepaths import SCALE_TYPES, SchemaSpot, scale_path_problems
from crdkeeper.core.lint.checkeddefinition import CheckedVersion
from crdkeeper.core.lint.conventions.status import SCALE_SELECTOR, SCALE_TARGET
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.place import SchemaPlace
from crdkeeper.core.lint.severity import Severity


def check_scale(version: CheckedVersion, found: Findings) -> None:
    """Report on the scale subresource of one version."""
    root = version.root
    scale = (version.declared.get("subresources") or {}).get("scale")
    if not isinstance(scale, dict):
        return
    at = (*root.steps[:3], "subresources", "scale")
    field = f"{root.version}:subresources.scale"
    for each in scale_path_problems(scale, SchemaSpot(root.schema, version.unpruned)):
        if each.declared:
            message = f"{each.path} must be of type {SCALE_TYPES[each.key]}, but is {each.instead}"
        else:
            message = f"{each.path} leads to nothing in the schema"
        found.add(SCALE_TARGET, f"{field}.{each.key}", (*at, each.key), message)
    if not scale.get("labelSelectorPath"):
        severity = None if _scales_pods(root.child("spec")) else Severity.INFO
        found.add(SCALE_SELECTOR, field, at, "has no labelSelectorPath", severity=severity)


def _scales_pods(spec: SchemaPlace | None) -> bool:
    """Whether spec has the template of a pod, or a selector and no template.

    An autoscaler needs the selector of pods, but a CRD may scale something else, such as machines.
    """
    template = spec.child("template") if spec is not None else None
    if template is None:
        return spec is not None and spec.child("selector") is not None
    pod = template.child("spec") or template
    return pod.child("containers") is not None or any(each.schema.get(PRESERVE) for each in (template, pod))
