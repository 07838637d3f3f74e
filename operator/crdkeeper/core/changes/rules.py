"""How a VersionConversion's rules convert before a change of its CRD, and after it.

The webhook serves the rules as they were verified, with the schemas of that time. After a change, the
operator verifies them anew; as long as they do not fit the changed schemas, the former ones are served.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.core.conversion.bundle import BadBundle, unpacked
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.target import ConversionOwner, WebhookAddress, holder

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServedRules:
    """The conversions of a CRD; None where its objects are not converted by rules."""

    old: Conversion | None = None
    new: Conversion | None = None
    misfit: str = ""
    """Why the rules do not fit the changed CRD; empty if they do."""


def rules_around(bundle: bytes, address: WebhookAddress, old: Json, new: Json) -> ServedRules:
    """The conversions by the bundle that the webhook at that address serves for a CRD.

    Raises BadBundle and UnreadableDefinition.
    """
    converted_before, converted_after = (holder(each, address) is ConversionOwner.OURS for each in (old, new))
    if not (converted_before or converted_after):
        return ServedRules()
    spec, schemas = unpacked(bundle)
    served = compile_conversion(spec, schemas)
    if not isinstance(served, Conversion):
        raise BadBundle("; ".join(map(str, served)))
    before = served if converted_before else None
    if not converted_after:
        return ServedRules(before)
    after = compile_conversion(spec, schemas_of(new))
    if isinstance(after, Conversion):
        return ServedRules(before, after)
    return ServedRules(before, served, str(after[0]))
