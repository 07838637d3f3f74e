"""How messages of the composer list things."""

from collections.abc import Sequence
from typing import Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.meta import GROUP
from crdkeeper.core.text import count

LABEL: Final = f'rbac.{GROUP}/aggregate-to-composer: "true"'
"""Of ClusterRoles whose rules the composer gets."""

SHOWN: Final = 5
"""The most problems, changes or composites that a message names."""


def listed(texts: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f"; and {len(texts) - SHOWN:,} more" if len(texts) > SHOWN else ""
    return "; ".join(texts[:SHOWN]) + more


def sentences(texts: Sequence[str], called: str) -> str:
    """The first of texts that are sentences, and how many more there are of what is called so."""
    more = [f"And {count(len(texts) - SHOWN, f'more {called}')}."] if len(texts) > SHOWN else []
    return " ".join([*texts[:SHOWN], *more])


def own_rules(rules: str) -> str:
    """What to do about rights that the composer's manifests give it, but that it lacks."""
    return f"Apply manifests/composer, whose ClusterRole has the missing rule: {rules}"


def rule_on_composites(definition: CompositeResourceDefinition, *, composed: bool) -> str:
    """What to do about missing rights on composites; `composed` is whether it needs those to compose."""
    spec = definition.spec
    plural = spec.names.plural
    resources = f"{plural}, {plural}/status" if composed else plural
    verbs = "get, list, watch, patch" if composed else "list, watch"
    if spec.deletion == "Cascade":
        verbs += ", delete"
    return (
        f"Create a ClusterRole that has the label {LABEL} and this rule: "
        f"{{apiGroups: [{spec.group}], resources: [{resources}], verbs: [{verbs}]}}"
    )
