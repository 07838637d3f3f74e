"""Judges live objects by the part that a change concerns: many at once, because few of these parts differ."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from crdkeeper.apiserver.objects.effort import SharedAllowance
from crdkeeper.core.changes.concern import Concern, concern_of
from crdkeeper.core.changes.rules import ServedRules
from crdkeeper.core.conversion.nesting import dumps
from crdkeeper.core.rehearsal.definition import compile_definition
from crdkeeper.core.rehearsal.effect import Effect
from crdkeeper.core.rehearsal.judgement import Judge, new_effects

Json = Any
_RESERVE: Final = 20_000_000
"""Steps for all objects that need more than their share."""
_MOST_KNOWN: Final = 10_000
_MOST_EFFECTS: Final = 20
"""Of a part whose judgement is kept."""
_DIGEST_BYTES: Final = 16


class ObjectJudge:
    """Compares a CRD with what it will be."""

    def __init__(self, old: Json, new: Json, rules: ServedRules) -> None:
        """Raises UnreadableDefinition."""
        self._definitions = old, new, rules
        self._allowance = SharedAllowance(_RESERVE)
        self._known: dict[bytes, list[Effect]] = {}
        self._concern: Concern | None = None
        if rules.old is None and rules.new is None:
            try:
                self._concern = concern_of(old, new)
            except RecursionError:
                # The whole object is judged, which says where it nests too deep.
                self._concern = None
        self._of_part = self._judges(self._concern)
        self._of_whole = self._of_part if self._concern is None else None

    def effects(self, obj: Mapping[str, Any]) -> list[Effect]:
        """What the change does to an object and the present CRD does not."""
        concern = self._concern
        if concern is None:
            return new_effects(obj, *self._of_part)
        part = concern.part(obj)
        try:
            digest = blake2b(dumps(part, sort=True), digest_size=_DIGEST_BYTES).digest()
        except RecursionError:
            return self._effects(concern, part, obj)
        found = self._known.get(digest)
        if found is None:
            found = self._effects(concern, part, obj)
            is_of_part = not (concern.has_rules and _is_refused(found))
            if is_of_part and len(found) <= _MOST_EFFECTS and len(self._known) < _MOST_KNOWN:
                self._known[digest] = found
        return found

    def _effects(self, concern: Concern, part: Json, obj: Json) -> list[Effect]:
        found = new_effects(part, *self._of_part)
        if not concern.has_rules or not _is_refused(found):
            return found
        # The present CRD may refuse the object for what was left out; rules are not evaluated then either.
        if self._of_whole is None:
            self._of_whole = self._judges(None)
        return new_effects(obj, *self._of_whole)

    def _judges(self, concern: Concern | None) -> tuple[Judge, Judge]:
        old, new, rules = self._definitions
        of_old, of_new = (concern.old, concern.new) if concern is not None else (None, None)
        before = compile_definition(old, rules.old, schemas=of_old)
        after = compile_definition(new, rules.new, before, of_new)
        return Judge(before, after, self._allowance), Judge(before, before, self._allowance)


def _is_refused(effects: Sequence[Effect]) -> bool:
    return any(each.kind.is_refusal for each in effects)
