"""Compares the rules of x-kubernetes-validations as parsed CEL.

A rule that both have is the same, however it is formatted; a removed one rejects nothing. An added or changed
one may reject, unless every object that was valid before satisfies it (see `rulemeaning`).
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from crdkeeper.apiserver.schema.props import VALIDATIONS
from crdkeeper.core.compatibility import schemakinds as kinds
from crdkeeper.core.compatibility.change import ChangeKind
from crdkeeper.core.compatibility.node import FieldPair, Teller, cut, shown
from crdkeeper.core.compatibility.rulemeaning import ValidValues
from crdkeeper.core.compatibility.ruleparsing import ParsedRules, names_old_self

_Rule = Mapping[str, Any]
_Rules = list[_Rule]
_Sides = tuple[_Rules, _Rules]
_TEXTS = ("message", "messageExpression", "reason", "fieldPath")


def compare_rules(node: FieldPair, teller: Teller) -> None:
    """The rules of one node. Raises Exhausted."""
    old, new = list(node.old.get(VALIDATIONS) or ()), list(node.new.get(VALIDATIONS) or ())
    if old == new:
        return
    teller.findings.spend(len(old) + len(new))
    rules = ParsedRules(teller.findings)
    values = ValidValues(node.old, node.new, teller.elsewhere, rules)
    old, new = _tell_reworded(_without_equals(old, new), rules, node, teller)
    pairs, old, new = _pairs(old, new)
    for before, after in pairs:
        message = f"{_shown(before)} → {_shown(after)}"
        _tell_stricter(kinds.RULE_CHANGED, message, after, values, node, teller)
    for rule in old:
        teller.say(kinds.RULE_REMOVED, node, _shown(rule), VALIDATIONS)
    for rule in new:
        transition = names_old_self(_text(rule)) and not rule.get("optionalOldSelf")
        kind = kinds.TRANSITION_RULE_ADDED if transition else kinds.RULE_ADDED
        _tell_stricter(kind, _shown(rule), rule, values, node, teller)


def _tell_stricter(
    kind: ChangeKind, message: str, rule: _Rule, values: ValidValues, node: FieldPair, teller: Teller
) -> None:
    """Says that a rule came, or became another one."""
    if values.all_satisfy(_text(rule)):
        teller.say(kinds.RULE_SATISFIED, node, message, VALIDATIONS)
    elif kind is kinds.TRANSITION_RULE_ADDED:
        # Only an update can violate it.
        teller.say(kind, node, message, VALIDATIONS)
    else:
        proved = kinds.RULE_TIGHTENED if kind is kinds.RULE_CHANGED else kind
        teller.say_tried(kind, node, message, {VALIDATIONS: [rule]}, proved=proved)


def _text(rule: _Rule) -> str:
    text: str = rule.get("rule", "")
    return text.strip()


def _shown(rule: _Rule) -> str:
    """The rule in CEL, and in the words that users read."""
    message = rule.get("message")
    return f"{cut(_text(rule))} ({shown(message)})" if message else cut(_text(rule))


def _without_equals(old: _Rules, new: _Rules) -> _Sides:
    """What is left of both without rules that are equal."""
    return _matched(old, new, lambda rule: frozenset(rule.items()))[1:]


def _tell_reworded(sides: _Sides, rules: ParsedRules, node: FieldPair, teller: Teller) -> _Sides:
    """What is left of both without rules whose meaning the other has."""
    matches, old, new = _matched(
        *sides, lambda rule: (rules.meaning(_text(rule)), bool(rule.get("optionalOldSelf")))
    )
    for rule, match in matches:
        if _text(rule) != _text(match) or any(rule.get(each) != match.get(each) for each in _TEXTS):
            teller.say(kinds.RULE_REWORDED, node, _shown(rule), VALIDATIONS)
    return old, new


def _pairs(old: _Rules, new: _Rules) -> tuple[list[tuple[_Rule, _Rule]], _Rules, _Rules]:
    """Rules that are probably two states of one, because they have the same message or are the only ones
    left; and the rest.
    """
    pairs, old, new = _matched(old, new, _words)
    return ([*pairs, (old[0], new[0])], [], []) if len(old) == len(new) == 1 else (pairs, old, new)


def _words(rule: _Rule) -> tuple[str, str] | None:
    words = rule.get("message", ""), rule.get("messageExpression", "")
    return words if any(words) else None


def _matched(
    old: _Rules, new: _Rules, key: Callable[[_Rule], Hashable | None]
) -> tuple[list[tuple[_Rule, _Rule]], _Rules, _Rules]:
    """Rules of both with one key, each once, and what is left of both; a rule whose key is None is left."""
    by_key: dict[Hashable, list[int]] = {}
    for i in reversed(range(len(new))):
        found = key(new[i])
        if found is not None:
            by_key.setdefault(found, []).append(i)
    matches: list[tuple[_Rule, _Rule]] = []
    left: _Rules = []
    taken: set[int] = set()
    for rule in old:
        same = by_key.get(key(rule))
        if same:
            matches.append((rule, new[same[-1]]))
            taken.add(same.pop())
        else:
            left.append(rule)
    return matches, left, [rule for i, rule in enumerate(new) if i not in taken]
