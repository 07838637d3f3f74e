"""Compares the rules of x-kubernetes-validations as parsed CEL.

A rule that is there twice is the same, however it is laid out; one that went refuses nothing. One that came
or changed may refuse, unless every object that was valid before satisfies it (see `rulemeaning`).
"""

import re
from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.schema.props import VALIDATIONS
from crdkeeper.core.compatibility import schemakinds as kinds
from crdkeeper.core.compatibility.node import FieldPair, Teller, cut, shown
from crdkeeper.core.compatibility.rulemeaning import always_holds, meaning

_Rule = Mapping[str, Any]
_TRANSITION = re.compile(r"\boldSelf\b")
_TEXTS = ("message", "messageExpression", "reason", "fieldPath")


def compare_rules(node: FieldPair, teller: Teller) -> None:
    """The rules of one node."""
    old, new = list(node.old.get(VALIDATIONS) or ()), list(node.new.get(VALIDATIONS) or ())
    if old == new:
        return
    teller.findings.spend(len(old) + len(new))
    _tell_reworded(old, new, node, teller)
    for before, after in _pairs(old, new):
        message = f"{_shown(before)} → {_shown(after)}"
        kind = kinds.RULE_SATISFIED if _satisfied(after, node, teller) else kinds.RULE_CHANGED
        teller.say(kind, node, message, VALIDATIONS)
    for rule in old:
        teller.say(kinds.RULE_REMOVED, node, _shown(rule), VALIDATIONS)
    for rule in new:
        transition = _TRANSITION.search(_text(rule)) and not rule.get("optionalOldSelf")
        kind = kinds.TRANSITION_RULE_ADDED if transition else kinds.RULE_ADDED
        if _satisfied(rule, node, teller):
            kind = kinds.RULE_SATISFIED
        teller.say(kind, node, _shown(rule), VALIDATIONS)


def _satisfied(rule: _Rule, node: FieldPair, teller: Teller) -> bool:
    return always_holds(_text(rule), node.old, node.new, teller.elsewhere)


def _text(rule: _Rule) -> str:
    text: str = rule.get("rule", "")
    return text.strip()


def _shown(rule: _Rule) -> str:
    """The rule in CEL, and in the words that users read."""
    message = rule.get("message")
    return f"{cut(_text(rule))} ({shown(message)})" if message else cut(_text(rule))


def _key(rule: _Rule) -> tuple[Any, bool]:
    return meaning(_text(rule)), bool(rule.get("optionalOldSelf"))


def _tell_reworded(old: list[_Rule], new: list[_Rule], node: FieldPair, teller: Teller) -> None:
    """Takes the rules out of both lists that both have."""
    by_key: dict[tuple[Any, bool], list[_Rule]] = {}
    for rule in new:
        by_key.setdefault(_key(rule), []).append(rule)
    kept: list[_Rule] = []
    for rule in old:
        same = by_key.get(_key(rule))
        if not same:
            kept.append(rule)
            continue
        match = same.pop(0)
        if _text(rule) != _text(match) or any(rule.get(each) != match.get(each) for each in _TEXTS):
            teller.say(kinds.RULE_REWORDED, node, _shown(rule), VALIDATIONS)
    old[:] = kept
    left = {id(rule) for rules in by_key.values() for rule in rules}
    new[:] = [rule for rule in new if id(rule) in left]


def _pairs(old: list[_Rule], new: list[_Rule]) -> list[tuple[_Rule, _Rule]]:
    """Rules that are probably two states of one, out of both lists: same words, or the only ones left."""
    found: list[tuple[_Rule, _Rule]] = []
    by_words = {_words(rule): rule for rule in new if any(_words(rule))}
    for rule in list(old):
        match = by_words.pop(_words(rule), None)
        if match is not None:
            found.append((rule, match))
            old.remove(rule)
            new[:] = [each for each in new if each is not match]
    if len(old) == 1 and len(new) == 1:
        found.append((old.pop(), new.pop()))
    return found


def _words(rule: _Rule) -> tuple[str, str]:
    return rule.get("message", ""), rule.get("messageExpression", "")
