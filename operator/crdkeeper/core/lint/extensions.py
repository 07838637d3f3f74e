"""Keys of a schema that its author adds for other tools, such as `x-ui-order`.

OpenAPI reserves keys that begin with `x-` for extensions
(https://spec.openapis.org/oas/v3.0.3#specification-extensions). The API server knows only its own.
"""

from typing import Final

from crdkeeper.apiserver.schema.fieldpath import Step
from crdkeeper.apiserver.schema.props import SCHEMA

_ROOT: Final = "openAPIV3Schema"
_OF_KUBERNETES: Final = ("x-kube", "x-k8s")
_MISSPELT: Final = tuple(
    each.removeprefix("x-kubernetes") for each in SCHEMA.fields if each.startswith("x-kubernetes-")
)
"""The ends of the keys of Kubernetes: a key with one of these was meant to be one of them."""


def is_extension(steps: tuple[Step, ...]) -> bool:
    """Whether an unknown field is a schema's extension, and not a misspelt keyword of Kubernetes."""
    key = steps[-1]
    if _ROOT not in steps[:-1] or not isinstance(key, str) or not key.startswith("x-"):
        return False
    return not key.casefold().startswith(_OF_KUBERNETES) and not key.endswith(_MISSPELT)
