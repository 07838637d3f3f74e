"""How a VersionConversion's rules convert before a change of its CRD, and after it.

The webhook serves the rules as they were verified, with the schemas of that time. After a change, the
operator verifies them anew; as long as they do not fit the changed schemas, the former ones are served.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.core.conversion.bundle import BadBundle, unpacked
from crdkeeper.core.conversion.objects import Conversion, compile_conversion

_PATH: Final = "/convert/"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServedRules:
    """The conversions of a CRD; None where its objects are not converted by rules."""

    old: Conversion | None = None
    new: Conversion | None = None
    misfit: str = ""
    """Why the rules do not fit the changed CRD; empty if they do."""


def rules_around(bundle: bytes, old: Json, new: Json) -> ServedRules:
    """The conversions by the bundle that is served for a CRD. Raises BadBundle and UnreadableDefinition."""
    if not any(map(_is_converted, (old, new))):
        return ServedRules()
    spec, schemas = unpacked(bundle)
    served = compile_conversion(spec, schemas)
    if not isinstance(served, Conversion):
        raise BadBundle("; ".join(map(str, served)))
    before = served if _is_converted(old) else None
    if not _is_converted(new):
        return ServedRules(before)
    after = compile_conversion(spec, schemas_of(new))
    if isinstance(after, Conversion):
        return ServedRules(before, after)
    return ServedRules(before, served, str(after[0]))


def _is_converted(crd: Json) -> bool:
    """Whether the CRD has our path, for whose name this process serves rules."""
    conversion = crd["spec"].get("conversion") or {}
    config = (conversion.get("webhook") or {}).get("clientConfig") or {}
    path = (config.get("service") or {}).get("path") or config.get("url") or ""
    ours = f"{_PATH}{crd['metadata']['name']}"
    return conversion.get("strategy") == "Webhook" and path.endswith(ours)
