"""What a policy's status says about the finalizers that it names."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from crdkeeper.api.finalizerrelease import FinalizerRule, FinalizerStanding
from crdkeeper.api.meta import ConditionStatus, format_time
from crdkeeper.core.finalizers.tally import EXAMPLES, HeldLook, RuleCount
from crdkeeper.core.text import count

CONDITION: Final = "FinalizersReleased"
RELEASER_LABEL: Final = "rbac.crdkeeper.dev/aggregate-to-releaser"
FAILING: Final = frozenset(
    ("InvalidFinalizers", "FinalizersNotPermitted", "HeldObjectsUnreadable", "ReleaseRefused")
)
"""The reasons with which the policy is not ready, because somebody has to do something."""
_SHOWN: Final = 3
_PLURALS_BYTES: Final = 3000
"""Of the resources in the ClusterRole: a message that is cut has none that can be applied."""


@dataclass(frozen=True, slots=True)
class FinalizersStanding:
    """The condition FinalizersReleased, and the figures of each rule."""

    status: ConditionStatus
    reason: str
    message: str
    rules: list[FinalizerStanding]


def finalizers_standing(
    rules: Sequence[FinalizerRule], looks: Sequence[HeldLook], problems: Sequence[str]
) -> FinalizersStanding:
    """The state of a policy's finalizers, after all its CRDs were looked at."""
    found = _figures(rules, looks)
    named = {each.name for each in rules if each.mode == "Automatic"}
    automatic = [each for each in found if each.name in named]
    held, due = sum(each.held for each in found), sum(each.due for each in found)
    releasing = sum(each.due for each in automatic)
    refused = sum(each.refused for each in found)
    written, unmet = sum(each.written for each in found), sum(each.unmet for each in found)
    lacking = [each for each in looks if each.missing]
    passing = [each for each in looks if each.passing]
    unreadable = [each for each in looks if each.failure and not each.missing and not each.passing]
    if problems:
        return FinalizersStanding(
            "False", "InvalidFinalizers", f"Not released: {'; '.join(problems)}.", found
        )
    if lacking:
        return FinalizersStanding("False", "FinalizersNotPermitted", _missing(lacking), found)
    if unreadable:
        shown = "; ".join(f"{each.definition}: {_said(each)}" for each in unreadable[:_SHOWN])
        message = f"The objects of {count(len(unreadable), 'CRD')} cannot be listed: {shown}."
        return FinalizersStanding("False", "HeldObjectsUnreadable", message, found)
    if refused:
        message = (
            f"{count(refused, 'object')} refused: {_refused(found, looks)}. The operator's log has "
            "the API server's words; it tries again every five minutes."
        )
        return FinalizersStanding("False", "ReleaseRefused", message, found)
    if releasing:
        message = f"{count(releasing, 'finalizer')} being released: {_examples(automatic, 'due')}."
        return FinalizersStanding("False", "ReleasingFinalizers", message, found)
    if due:
        message = f"{count(due, 'finalizer')} would be released in mode Automatic: {_examples(found, 'due')}."
        return FinalizersStanding("False", "ReleasePlanned", message, found)
    if passing:
        message = f"The objects of {passing[0].definition} cannot be listed yet: {_said(passing[0])}."
        return FinalizersStanding("Unknown", "LookingForFinalizers", message, found)
    if held:
        next_ = min((each.next_release_time for each in found if each.next_release_time), default=None)
        parts = [f"{count(held, 'finalizer')} held: {_examples(found, 'held')}."]
        if written:
            parts.append(f"{written:,} with writes since the deletion, by {_writers(looks)}.")
        if unmet:
            parts.append(f"{unmet:,} for which `when` is not true, or that cannot be read.")
        unasked = sum(each.unasked for each in looks)
        if unasked:
            parts.append(f"{unasked:,} for which `when` is evaluated in one of the next looks.")
        if next_ is not None:
            parts.append(f"The next is due at {format_time(next_)} if nobody writes it.")
        return FinalizersStanding("False", "FinalizersHeld", " ".join(parts), found)
    message = "No object in deletion, of CRDs that the policy governs, has a finalizer that it names."
    if not looks:
        message = "The policy governs no CRD that is served, so it releases nothing: see Ready."
    return FinalizersStanding("True", "NothingHeld", message, found)


def _figures(rules: Iterable[FinalizerRule], looks: Iterable[HeldLook]) -> list[FinalizerStanding]:
    found = {each.name: FinalizerStanding(name=each.name, examples=[]) for each in rules}
    others: dict[str, list[str]] = {name: [] for name in found}
    for look in looks:
        for each in look.counts:
            # There are as many counts as rules times CRDs, and in most CRDs nothing is held.
            if not each.held or each.rule.name not in found:
                continue
            figures, further = found[each.rule.name], others[each.rule.name]
            figures.held += each.held
            figures.waiting += each.waiting
            figures.written += each.written
            figures.unmet += each.unmet
            figures.due += each.due
            figures.refused += each.refused
            figures.next_release_time = min(
                filter(None, (figures.next_release_time, each.next)), default=None
            )
            figures.examples += [f"{look.definition} {example}" for example in each.of_due]
            further += [f"{look.definition} {example}" for example in each.of_others]
            del figures.examples[EXAMPLES:], further[EXAMPLES:]
    for name, figures in found.items():
        figures.examples = [*figures.examples, *others[name]][:EXAMPLES]
    return [*found.values()]


def _examples(found: Iterable[FinalizerStanding], what: str) -> str:
    some = [
        f"{each.name} ({getattr(each, what):,}, such as {each.examples[0]})"
        for each in found
        if getattr(each, what) and each.examples
    ]
    more = f"; and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
    return "; ".join(some[:_SHOWN]) + more


def _refused(found: Iterable[FinalizerStanding], looks: Iterable[HeldLook]) -> str:
    such: dict[str, list[str]] = {}
    for look in looks:
        for each in look.counts:
            such.setdefault(each.rule.name, []).extend(f"{look.definition} {one}" for one in each.of_refused)
    return _examples(
        (each.model_copy(update={"examples": such.get(each.name, [])}) for each in found), "refused"
    )


def _writers(looks: Iterable[HeldLook]) -> str:
    totals: dict[str, int] = {}
    for each in _counts(looks):
        for writer, number in each.writers.items():
            totals[writer] = totals.get(writer, 0) + number
    top = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    more = f" and {len(top) - _SHOWN} more managers" if len(top) > _SHOWN else ""
    return (
        ", ".join(f"{name or 'a manager without a name'} ({number:,})" for name, number in top[:_SHOWN])
        + more
    )


def _counts(looks: Iterable[HeldLook]) -> Iterable[RuleCount]:
    return (count_ for each in looks for count_ in each.counts)


def _said(look: HeldLook) -> str:
    return look.failure.message.rstrip(".") if look.failure is not None else ""


def _missing(looks: Sequence[HeldLook]) -> str:
    by_group: dict[str, list[HeldLook]] = {}
    for each in looks:
        by_group.setdefault(each.group, []).append(each)
    verbs = sorted({verb for each in looks for verb in each.missing})
    group, first = next(iter(sorted(by_group.items())))
    more = f" The same for {count(len(by_group) - 1, 'other API group')}." if len(by_group) > 1 else ""
    plurals = sorted(each.plural for each in first)
    sizes = accumulate(len(f"{_quoted(each)}, ") for each in plurals)
    fitting = sum(each <= _PLURALS_BYTES for each in sizes)
    if fitting < len(plurals):
        more += f" Add {count(len(plurals) - fitting, 'more resource')} of {group} to this role."
    return (
        f"crdkeeper may not {', '.join(verbs)} objects of {count(len(looks), 'CRD')}.{more} Apply:\n"
        f"{releaser_role(group, plurals[:fitting])}"
    )


def releaser_role(group: str, plurals: Sequence[str]) -> str:
    """The ClusterRole, as YAML, that lets the operator release finalizers of these resources."""
    rule: dict[str, Sequence[str]] = {
        "apiGroups": [group],
        "resources": plurals,
        "verbs": ["get", "list", "patch"],
    }
    # Quoted, because a plural may be what YAML takes for a bool.
    lines = "\n".join(f"  {key}: [{', '.join(map(_quoted, values))}]" for key, values in rule.items())
    return (
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: ClusterRole\n"
        "metadata:\n"
        f"  name: crdkeeper-release-{group}\n"
        f'  labels: {{{RELEASER_LABEL}: "true"}}\n'
        "rules:\n"
        f"-{lines[1:]}\n"
    )


def _quoted(name: str) -> str:
    return f'"{name}"'
