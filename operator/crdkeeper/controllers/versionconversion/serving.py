"""Hands verified rules to the webhook, checks that it converts by them, and points the CRD to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.cluster.probes.conversionwebhook import ask_webhook
from crdkeeper.cluster.resources.versionconversions import apply_bundle, read_bundle, set_conversion
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.conversion.bundle import digest
from crdkeeper.core.conversion.standing import StepResult
from crdkeeper.core.conversion.target import ConversionOwner, WebhookAddress, describe, holder, trusts
from crdkeeper.core.conversion.verification import Trial, generated

_TRIED = 3
"""Generated objects of each version, of which the webhook must convert those of the hub."""


@dataclass(frozen=True, slots=True)
class WebhookService:
    """`crdkeeper webhook` as the operator sees it."""

    client: Client
    namespace: str
    """The namespace of its rules."""
    address: WebhookAddress
    bundle: str
    """The certificates by which to trust it, as PEM."""

    async def serve(
        self, owner: VersionConversion, trial: Trial, schemas: Mapping[str, Schema], content: bytes
    ) -> StepResult:
        """Store the bundle `content` of rules for it, and have it convert something."""
        name, namespace = owner.metadata.name, self.namespace
        try:
            if await read_bundle(self.client, namespace, name) != content:
                await apply_bundle(self.client, namespace, owner.metadata, content)
        except ApiError as error:
            if error.code not in (403, 404, 422):
                raise
            return StepResult(
                "False", "NotPermitted", f"The rules cannot be passed to the webhook: {error.message}."
            )
        owner.status.served_generation = owner.metadata.generation
        hub, spoke = owner.spec.hub, owner.spec.spokes[0].version
        group = owner.spec.resource.group
        tried = [
            each
            for each in generated(owner.spec, schemas, _TRIED)
            if each["apiVersion"] == f"{group}/{hub}" and not trial.judge(each).faults
        ]
        reply = await ask_webhook(self.address, name, self.bundle, f"{group}/{spoke}", tried)
        if reply.error:
            return StepResult(
                "False", "WebhookUnreachable", f"{self.address} does not respond: {reply.error}."
            )
        if reply.digest != digest(content):
            return StepResult(
                "Unknown", "RulesOnTheirWay", f"{self.address} has not loaded the new rules yet."
            )
        if list(reply.objects) != [trial.conversion.convert(each, spoke) for each in tried]:
            return StepResult("False", "WebhookDiffers", f"{self.address} does not convert as the rules say.")
        return StepResult("True", "Answering", f"{self.address} converts by these rules.")

    async def configure(self, owner: VersionConversion, crd: Mapping[str, Any]) -> StepResult:
        """Point the CRD to it, unless the CRD has someone else's webhook."""
        held = holder(crd, self.address)
        if held is ConversionOwner.OTHER and not owner.spec.replace_webhook:
            message = (
                f"The CRD is converted by another webhook, {describe(crd)}. Set spec.replaceWebhook: true to "
                "take its place."
            )
            return StepResult("False", "OtherWebhook", message)
        if held is not ConversionOwner.OURS or not trusts(crd, self.bundle):
            try:
                await set_conversion(
                    self.client, crd, self.address, self.bundle, replace=held is ConversionOwner.OTHER
                )
            except ApiError as error:
                if error.code == 409:
                    return StepResult(
                        "Unknown", "Changing", "Another client changed the CRD in the meantime."
                    )
                if error.code not in (403, 422):
                    raise
                return StepResult("False", "Refused", f"spec.conversion cannot be set: {error.message}")
        return StepResult("True", "Configured", f"The CRD is converted by {self.address}.")
