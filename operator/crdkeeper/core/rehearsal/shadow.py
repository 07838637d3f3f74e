"""The shadow: a CRD in a temporary group with the new schemas, by which the API server validates the objects.

Nothing is ever stored in it. It has no status subresource, so that a dry run of a creation validates spec and
status together.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from crdkeeper.apiserver.definitions.facts import ALLOW_DELETION
from crdkeeper.core.rehearsal.definition import NONE, CompiledDefinition, version_of
from crdkeeper.core.rehearsal.differences import differences, general
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.judgement import Prediction

Json = Any

GROUP: Final = "rehearsal.crdkeeper.dev"
LABEL: Final = "crdkeeper.dev/rehearsal"
MADE_BY: Final = "crdkeeper.dev/rehearsal-by"
"""The annotation with the process that created a shadow."""
STALE: Final = timedelta(hours=3)
"""A shadow of this age was left by a rehearsal that was killed."""
_KEPT = ("name", "served", "storage", "schema")
_LIST_KIND = 40
"""How much of the kind is in that of lists, which may have 63 characters like the kind."""
_WEBHOOK = "admission webhook "
"""So begins what API servers say of the refusal by a webhook, whatever its code."""


def shadow_definition(
    document: Mapping[str, Any], plural: str, kind: str, *, judged_at: str = "", made_by: str = ""
) -> dict[str, Any]:
    """The shadow of a CRD as accepted by the API server.

    With `judged_at`, a version, only its schema validates objects, as is right if a webhook converts.
    """
    spec = document["spec"]
    versions = []
    for each in spec["versions"]:
        made = {key: copy.deepcopy(each[key]) for key in _KEPT if key in each}
        if judged_at:
            made["storage"] = each["name"] == judged_at
        scale = (each.get("subresources") or {}).get("scale")
        if scale is not None:
            made["subresources"] = {"scale": copy.deepcopy(scale)}
        versions.append(made)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            "labels": {LABEL: "shadow"},
            "annotations": {
                LABEL: document["metadata"]["name"],
                # A DefinitionPolicy may protect all CRDs.
                ALLOW_DELETION: "a shadow of crdkeeper rehearse, without objects",
                **({MADE_BY: made_by} if made_by else {}),
            },
        },
        "spec": {
            "group": GROUP,
            "scope": spec["scope"],
            "names": {
                "plural": plural,
                "singular": plural,
                "kind": kind,
                "listKind": f"{kind[:_LIST_KIND]}Of{plural}",
            },
            "conversion": {"strategy": NONE},
            "versions": versions,
            # API servers refuse it in a new CRD, but a shadow without it would prune what the CRD keeps.
            **({"preserveUnknownFields": True} if spec.get("preserveUnknownFields") else {}),
        },
    }


def shadow_object(sent: Json, kind: str) -> Json:
    """An object as sent to the shadow."""
    return {**sent, "apiVersion": f"{GROUP}/{version_of(sent)}", "kind": kind}


def is_stale(shadow: Mapping[str, Any], now: datetime) -> bool:
    """Whether the rehearsal that created a shadow cannot be running any more."""
    created = shadow["metadata"].get("creationTimestamp")
    return created is not None and now - datetime.fromisoformat(created) > STALE


@dataclass(frozen=True, slots=True)
class DryRun:
    """The API server's response to the dry run of a creation."""

    code: int
    message: str
    causes: Sequence[tuple[str, str]]
    """Fields and messages."""
    object: Json = None
    by_admission: bool = False
    """Whether a webhook or a policy has refused it, which says nothing of the schema."""

    @property
    def accepts(self) -> bool:
        """Whether the object would be created."""
        return self.code in (200, 201)

    @property
    def judges(self) -> bool:
        """Whether the schema has decided."""
        return self.accepts or (self.code in (400, 422) and not self.by_admission)


def answered(code: int, body: Mapping[str, Any]) -> DryRun:
    """What a response with this body says."""
    if code < 300:
        return DryRun(code, "", (), body)
    message = str(body.get("message", ""))
    causes = (body.get("details") or {}).get("causes") or ()
    # A policy answers 422 by default. Unlike an error of the schema, its cause has no reason.
    by_policy = code == 422 and not all(each.get("reason") for each in causes)
    return DryRun(
        code,
        message,
        [(each.get("field", ""), each.get("message", "")) for each in causes],
        by_admission=by_policy or message.startswith(_WEBHOOK),
    )


def confirm(prediction: Prediction, answer: DryRun, sent: Json, new: CompiledDefinition) -> list[Effect]:
    """What the server's response adds to a prediction, or makes uncertain.

    The server's response counts: where it differs from ours, it is reported, and the rest of the prediction,
    which is the engine's, is marked uncertain.
    """
    version = version_of(sent)
    if not answer.judges:
        message = f"the dry run was not answered: {answer.code}: {answer.message}"
        return [_doubt("", version, message)]
    ours = prediction.creation
    if ours is None:
        return _servers(answer, sent, version, new)
    if agrees(prediction, answer):
        return []
    if ours.unchecked and not ours.violations:
        return _servers(answer, sent, version, new)
    return [
        *_servers(answer, sent, version, new),
        _doubt("", version, "the API server and the prediction differ about the object"),
    ]


def agrees(prediction: Prediction, answer: DryRun) -> bool:
    """Whether the server answers a creation as predicted: with errors of the same fields, or the same object.

    The message of a rule that ends in an error may differ, since Go iterates over maps in random order.
    """
    ours = prediction.creation
    if ours is None or ours.unchecked or not answer.judges:
        return False
    if answer.code == 400:
        return ours.object is None and bool(ours.violations)
    if answer.code == 422:
        return {str(each.path) for each in ours.violations} == {at for at, _ in answer.causes}
    if ours.violations or ours.object is None:
        return False
    return not differences(ours.object, _of_real_kind(answer.object, ours.object))


def _servers(answer: DryRun, sent: Json, version: str, new: CompiledDefinition) -> list[Effect]:
    """The effects that the server's response shows."""
    if answer.accepts:
        known = new.versions[version].schema
        node = known.node if known is not None else None
        kinds = {"gone": EffectKind.PRUNED, "new": EffectKind.DEFAULTED, "changed": EffectKind.CHANGED}
        return [
            Effect(kinds[each.how.value], each.field, version, exact=each.exact, by_server=True)
            for each in differences(sent, _of_real_kind(answer.object, sent), node)
        ]
    causes = answer.causes or [("", answer.message)]
    return [
        Effect(EffectKind.REFUSED, general(at), version, said, general(said), at, by_server=True)
        for at, said in causes
    ]


def _doubt(field: str, version: str, message: str) -> Effect:
    return Effect(EffectKind.INDETERMINATE, field, version, message, general(message))


def _of_real_kind(answered: Json, sent: Json) -> Json:
    return {**answered, "kind": sent.get("kind")}
