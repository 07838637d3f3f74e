"""The fence: a rule in all versions of a CRD, by which its API refuses new composites and nothing else.

Composites that exist can still be written, so that whoever was faster than the fence loses nothing. All that
is known of a fence is in the CRD itself: whoever replaces the versions takes it off.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from crdkeeper.apiserver.schema.props import VALIDATIONS

_SERVING: Final = ("NamesAccepted", "Established")
_RULE: Final = {"rule": "oldSelf.hasValue()", "optionalOldSelf": True}
_MESSAGE: Final = "the CompositeResourceDefinition "
"""How the message of such a rule begins, of any release: the rest may change."""
NOT_KNOWN: Final = (
    "The API server does not know optionalOldSelf, which such a rule needs: Kubernetes 1.30 and later do, "
    "unless their feature gate CRDValidationRatcheting is off"
)
"""What to say if an API server cannot have the rule.

It drops the field before it validates the rule, which is then invalid. Source: dropDisabledFields in
k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go, and kube_features.go.
"""

Operation = dict[str, Any]
"""Of a JSON patch (RFC 6902)."""


def takes_composites(crd: Mapping[str, Any]) -> bool:
    """Whether an API server may let anyone create a composite.

    It does as soon as the names are accepted. Source: crdHandler.ServeHTTP in k8s.io/apiextensions-apiserver.
    """
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each["type"] in _SERVING and each["status"] == "True" for each in conditions)


def is_fenced(crd: Mapping[str, Any]) -> bool:
    """Whether all versions have the rule."""
    return all(_places(crd))


def is_partly_fenced(crd: Mapping[str, Any]) -> bool:
    """Whether any version has the rule."""
    return any(_places(crd))


def setters(crd: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Manager and operation of whoever has set the versions last, or has applied the same.

    The list of versions has managers only as a whole. Who changes it takes it from all others. Source:
    https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
    """
    return {
        (str(each.get("manager", "")), str(each.get("operation", "")))
        for each in crd["metadata"].get("managedFields") or ()
        if "f:versions" in ((each.get("fieldsV1") or {}).get("f:spec") or {})
    }


def fencing(crd: Mapping[str, Any]) -> list[Operation]:
    """What adds the rule to the versions that do not have it."""
    rule = _rule(crd)
    made: list[Operation] = []
    for number, (each, places) in enumerate(zip(_roots(crd), _places(crd), strict=True)):
        if places:
            continue
        has_rules = bool(each.get(VALIDATIONS))
        path, value = (f"{_path(number)}/-", rule) if has_rules else (_path(number), [rule])
        made.append({"op": "add", "path": path, "value": value})
    return made


def unfencing(crd: Mapping[str, Any]) -> list[Operation]:
    """What removes the rule from all versions."""
    made: list[Operation] = []
    for number, (each, places) in enumerate(zip(_roots(crd), _places(crd), strict=True)):
        if places and len(places) == len(each[VALIDATIONS]):
            made.append({"op": "remove", "path": _path(number)})
        else:
            # From behind, so that the numbers stay right.
            made += [{"op": "remove", "path": f"{_path(number)}/{place}"} for place in reversed(places)]
    return made


def _rule(crd: Mapping[str, Any]) -> dict[str, Any]:
    """It holds for an object that exists already.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
    (field optional oldSelf).
    """
    name = crd["metadata"]["name"]
    return {
        **_RULE,
        "reason": "FieldValueForbidden",
        "message": f"{_MESSAGE}{name} is being deleted: its API takes no new objects",
    }


def _places(crd: Mapping[str, Any]) -> Iterator[list[int]]:
    """Where each version has the rule among those of its root."""
    for each in _roots(crd):
        yield [number for number, rule in enumerate(each.get(VALIDATIONS) or ()) if _is_fence(rule)]


def _is_fence(rule: Mapping[str, Any]) -> bool:
    """Also that of another release, which nobody else would remove."""
    same = all(rule.get(key) == value for key, value in _RULE.items())
    return same and str(rule.get("message") or "").startswith(_MESSAGE)


def _roots(crd: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for each in crd["spec"]["versions"]:
        # A CRD from before v1, which a namesake may be, can lack a schema.
        yield (each.get("schema") or {}).get("openAPIV3Schema") or {}


def _path(number: int) -> str:
    return f"/spec/versions/{number}/schema/openAPIV3Schema/{VALIDATIONS}"
