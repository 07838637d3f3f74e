"""Admission rules that name a version: which of them end with it, and which policies fail without it.

A rule of matchPolicy Equivalent matches requests at every version of a CRD as long as spec.versions has one
that it names, also if that is not served: it ends without a word when that version is removed. A rule of
matchPolicy Exact matches requests at the versions that it names, and never those at others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.api.versionretirement import NOT_SERVED, RetirementHold
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.retirement.evidence import HeldStep, Obstacle

REGISTRATION: Final = "admissionregistration.k8s.io"
PLURALS: Final[Mapping[str, str]] = {
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
"""The kinds that have admission rules, with their plurals."""
_MOST: Final = 50
"""Holds of each step, and warnings, that are kept: cluster administrators have a few."""
_ALL: Final = "*"
_SUBRESOURCES: Final = ("", "/status", "/scale")
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE")


@dataclass(slots=True)
class AdmissionUses:
    """What admission rules show of a version."""

    holds: list[Obstacle] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What ends with the version and holds nothing, as sentences."""
    hidden: list[str] = field(default_factory=list)
    """Plurals that the client may not list."""

    def add(self, others: Self) -> None:
        """Take in more, up to what a status shows: holds of one step leave room for those of another."""
        for each in others.holds:
            if sum(known.step == each.step for known in self.holds) < _MOST:
                self.holds.append(each)
        self.warnings += others.warnings[: _MOST - len(self.warnings)]


def admission_uses(
    kind: str, found: Mapping[str, Any], definition: DefinitionFacts, version: str
) -> AdmissionUses:
    """What a webhook configuration, a policy, or the binding of a policy shows, as it is stored."""
    name, spec, uses = found["metadata"]["name"], found.get("spec") or {}, AdmissionUses()
    of = spec.get("paramKind") or {}
    if (of.get("apiVersion"), of.get("kind")) == (f"{definition.group}/{version}", definition.kind):
        said = (
            f"{kind} {name} reads its parameters at {version} (spec.paramKind): once that is not served, API "
            "servers cannot read them"
        )
        uses.holds.append(_hold("NotServed", kind, name, said, definition))
    for where, rules in _rules(found):
        if not _ends(rules.get("rules") or (), definition, version):
            continue
        said = f"{kind} {name} matches {definition.plural} only by {version} ({where})"
        if rules.get("matchPolicy") == "Exact":
            exact = f"{said} and matchPolicy is Exact: requests at other versions already pass it by."
            uses.warnings.append(bounded(exact, LINE_BYTES))
        else:
            said += f": it matches requests at all versions, and none once the CRD does not have {version}"
            uses.holds.append(_hold("Removed", kind, name, said, definition))
    return uses


def hidden_holds(before: Iterable[RetirementHold], uses: AdmissionUses) -> Iterator[Obstacle]:
    """What held by rules that can no longer be listed: a right may return, a removed version does not."""
    found = {(each.step, kind, each.name) for each in uses.holds for kind in _kinds(each)}
    for each in before:
        step: HeldStep = "NotServed" if each.step == NOT_SERVED else "Removed"
        for kind in _kinds(each):
            if PLURALS[kind] in uses.hidden and (step, kind, each.name) not in found:
                said = (
                    f"{kind} {each.name} may still name the version: its kind can no longer be listed. The "
                    f"missing rule: {list_rule([PLURALS[kind]])}. To go on without it, create the retirement "
                    "anew."
                )
                yield Obstacle(step, each.reason, each.name, bounded(said, LINE_BYTES))


def _kinds(hold: RetirementHold | Obstacle) -> Sequence[str]:
    """The kind of what holds, as its text begins with it; all that it may be if the text does not."""
    kinds = [kind for kind in PLURALS if _reason(kind) == hold.reason]
    return [kind for kind in kinds if hold.message.startswith(f"{kind} ")] or kinds


def list_rule(plurals: Sequence[str]) -> str:
    """The rule by which kinds of admission rules can be listed, as YAML."""
    listed = ", ".join(f'"{each}"' for each in plurals)
    return f'{{apiGroups: ["{REGISTRATION}"], resources: [{listed}], verbs: ["list"]}}'


def _hold(step: HeldStep, kind: str, name: str, said: str, definition: DefinitionFacts) -> Obstacle:
    todo = f"Name another version there, such as {definition.storage_version}."
    return Obstacle(step, _reason(kind), name, bounded(f"{said}. {todo}", LINE_BYTES))


def _reason(kind: str) -> str:
    return "AdmissionWebhook" if kind.endswith("WebhookConfiguration") else "AdmissionPolicy"


def _rules(found: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The field that has rules, and these with their matchPolicy."""
    for each in found.get("webhooks") or ():
        yield f"webhook {each.get('name')}", each
    spec = found.get("spec") or {}
    for where in ("matchConstraints", "matchResources"):
        match = spec.get(where) or {}
        for what in ("resourceRules", "excludeResourceRules"):
            yield f"spec.{where}.{what}", {**match, "rules": match.get(what)}


def _ends(rules: Iterable[Mapping[str, Any]], definition: DefinitionFacts, version: str) -> bool:
    """Whether some request is matched by that version, and by no other one that the CRD has."""
    others = {_ALL, *(each.name for each in definition.versions if each.name != version)}
    named: set[tuple[str, str, frozenset[str], str]] = set()
    kept: set[tuple[str, str, frozenset[str], str]] = set()
    for rule in rules:
        if not {definition.group, _ALL} & _texts(rule, "apiGroups"):
            continue
        versions, resources = _texts(rule, "apiVersions"), _texts(rule, "resources")
        names, scope = frozenset(_texts(rule, "resourceNames")), rule.get("scope") or _ALL
        for subresource in _SUBRESOURCES:
            spelled = {f"{each}{end}" for each in (definition.plural, _ALL) for end in (subresource, "/*")}
            if not spelled & resources:
                continue
            for operation in _OPERATIONS:
                if {operation, _ALL} & _texts(rule, "operations"):
                    key = (subresource, operation, names, scope)
                    if version in versions:
                        named.add(key)
                    if others & versions:
                        kept.add(key)
    # A rule for all names and scopes matches what a narrower one does.
    return any(each not in kept and (*each[:2], frozenset(), _ALL) not in kept for each in named)


def _texts(rule: Mapping[str, Any], name: str) -> set[str]:
    return {str(each) for each in rule.get(name) or ()}
