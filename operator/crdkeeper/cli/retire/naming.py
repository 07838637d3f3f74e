"""The CRD and the version that a person names."""

from collections.abc import Mapping
from typing import Any, Final

import click
from pydantic import ValidationError

from crdkeeper.api.storagemigration import GroupResource
from crdkeeper.api.versionretirement import VersionRetirementSpec
from crdkeeper.cli.output.printing import Trouble
from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.resources.discovery import list_resources
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.resourcenames import parse_resource, suggest

_PERIOD: Final = "--quiet-period", "write hours, minutes and seconds, such as 168h or 1h30m"
_SAID: Final = {
    "version": ("VERSION", "write a version as in the CRD, such as v1alpha1"),
    "quiet_period": _PERIOD,
    "quietPeriod": _PERIOD,
}
"""By the field that is not valid: what the command calls it, and how to write it instead of its pattern."""


class RetiredResource(click.ParamType[GroupResource]):
    """`PLURAL.GROUP`."""

    name = "resource"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> GroupResource:
        """The resource of a CRD, so with a group."""
        try:
            found = parse_resource(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not found.group:
            self.fail(f"{value!r} is no resource of a CRD: write PLURAL.GROUP.", param, ctx)
        return found


def retirement_spec(resource: GroupResource, version: str, **fields: Any) -> VersionRetirementSpec:
    """The spec of a retirement. Raises UsageError for what the API server would refuse."""
    try:
        return VersionRetirementSpec.model_validate({"resource": resource, "version": version, **fields})
    except ValidationError as error:
        field, message = str(error.errors()[0]["loc"][0]), error.errors()[0]["msg"]
        name, said = _SAID.get(field, (field, message))
        raise click.UsageError(f"{name} is not valid: {said}") from None


async def named_definition(client: Client, resource: GroupResource) -> dict[str, Any]:
    """The CRD. Raises Trouble if there is none, with the one that was probably meant."""
    crd = await get_definition_object(client, str(resource))
    if crd is None:
        meant = suggest(str(resource), await list_resources(client))
        raise Trouble(f"no CRD {resource}" + (f"; did you mean {meant}?" if meant else ""))
    return crd


def named_version(crd: Mapping[str, Any], version: str, *more: str) -> None:
    """Raises Trouble if the CRD has no such version: a mistyped one must not look as if it were removed.

    `more` are further lines about what that means.
    """
    names = [each["name"] for each in crd["spec"]["versions"]]
    if version not in names:
        said = f"{crd['metadata']['name']} has no version {version}: its versions are {', '.join(names)}"
        raise Trouble(said, *more)
