"""Examines one change of a CRD step by step, so that what is known can be said at any time.

First both CRDs are compared, which needs no object and tells whether any object can be affected. Then live
objects are judged, page by page, by the engine of rehearsals. Only what is new counts: an object that the
present CRD refuses already is not harmed by the change.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from crdkeeper.api.definitionreport import ObjectCensus
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition
from crdkeeper.core.changes.objectjudge import ObjectJudge
from crdkeeper.core.changes.review import ChangeRequest
from crdkeeper.core.changes.rules import ServedRules, rules_around
from crdkeeper.core.compatibility.change import Impact
from crdkeeper.core.compatibility.compare import Comparison, NotComparable, compare, compare_served_versions
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.rehearsal.effect import Effect
from crdkeeper.core.rehearsal.tally import EffectTally

Json = Any
_MOST_STEPS: Final = 100_000
"""Of the comparison: about half a second. Published CRDs take a tenth of it."""
_MOST_WRITERS: Final = 100


@dataclass(slots=True)
class Examination:
    """What is known of a change so far."""

    request: ChangeRequest
    comparison: Comparison | None = None
    incomparable: str = ""
    """Why the CRDs cannot be compared."""
    tally: EffectTally = field(default_factory=EffectTally)
    left: int = 0
    """How many objects there are besides those that were examined."""
    unexamined: str = ""
    """Why not all objects were examined; empty if they were, or need not be."""
    writers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By version that goes, and manager: how many of the objects examined it wrote there."""
    census: ObjectCensus | None = None
    """The last count of all objects; None if none is known."""
    uncounted: str = ""
    """Why it is not known whether there is one."""
    rules: ServedRules = field(default_factory=ServedRules)
    unruled: str = ""
    """Why it is not known what the rules do."""
    _judge: ObjectJudge | None = None

    def compare(self) -> None:
        """Compare the CRDs."""
        request = self.request
        try:
            if request.old is None:
                self.comparison = compare_served_versions(request.new)
            else:
                self.comparison = compare(request.old, request.new, max_steps=_MOST_STEPS)
        except NotComparable as error:
            self.incomparable = str(error)

    @property
    def collection(self) -> str:
        """The path of the objects; empty if there are none."""
        old = self.request.old
        if old is None:
            return ""
        served = [each["name"] for each in old["spec"]["versions"] if each["served"]]
        stored = [each["name"] for each in old["spec"]["versions"] if each["storage"]]
        version = next((each for each in stored if each in served), next(iter(served), ""))
        return f"/apis/{self.request.group}/{version}/{self.request.plural}" if version else ""

    @property
    def concerns_objects(self) -> bool:
        """Whether any live object can be affected, as far as is known."""
        known = self.comparison
        safe = known is not None and known.complete and known.severity is Impact.SAFE
        # What is safe by the schemas need not be by the rules.
        return bool(self.collection) and not (safe and self.rules.new is None)

    def use_rules(self, bundle: bytes, address: WebhookAddress) -> None:
        """Have objects converted by the rules that the webhook at that address serves for the CRD.

        Raises BadBundle.
        """
        if self.request.old is None:
            return
        try:
            self.rules = rules_around(bundle, address, self.request.old, self.request.new)
        except UnreadableDefinition as error:
            self.unruled = str(error)

    def compile(self) -> None:
        """Prepare for objects."""
        old, new = self.request.old, self.request.new
        if old is None:
            return
        try:
            self._judge = ObjectJudge(old, new, self.rules)
        except UnreadableDefinition as error:
            self.unexamined = f"the schema cannot be compiled here: {error}"

    @property
    def is_prepared(self) -> bool:
        """Whether objects can be judged."""
        return self._judge is not None

    def judged(self, items: Sequence[Json]) -> Iterator[tuple[Json, list[Effect]]]:
        """The effects on each object, to be passed to `add`. Judging may be aborted at any point."""
        if self._judge is not None:
            for each in items:
                yield each, self._judge.effects(each)

    def add(self, obj: Json, effects: Sequence[Effect]) -> None:
        """Count an object that was judged."""
        metadata = obj.get("metadata") or {}
        self.tally.add(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""), effects)
        self._count_writers(metadata)

    def read_census(self, report: Json) -> None:
        """Use the census of a DefinitionReport, unless it is about a CRD of that name that is gone.

        Raises LookupError, TypeError, AttributeError and ValueError.
        """
        metadata, found = report["metadata"], (report.get("status") or {}).get("census")
        owners = [each["uid"] for each in metadata.get("ownerReferences") or ()]
        if found is not None and ((self.request.old or {})["metadata"]).get("uid") in owners:
            self.census = ObjectCensus.model_validate(found)

    @property
    def is_whole(self) -> bool:
        """Whether all objects were examined."""
        return not self.left and not self.unexamined

    @property
    def gone(self) -> list[str]:
        """The versions that will not be served any more."""
        after = set(_served(self.request.new))
        return [each for each in _served(self.request.old or {}) if each not in after]

    @property
    def removed(self) -> set[str]:
        """The versions that the CRD will not have any more."""
        before, after = (
            {each["name"] for each in (crd.get("spec") or {}).get("versions") or ()}
            for crd in (self.request.old or {}, self.request.new)
        )
        return before - after

    def _count_writers(self, metadata: Mapping[str, Any]) -> None:
        gone = {f"{self.request.group}/{each}" for each in self.gone}
        found = {
            (str(entry.get("apiVersion")).rpartition("/")[2], str(entry.get("manager")))
            for entry in metadata.get("managedFields") or ()
            if entry.get("apiVersion") in gone
        }
        for each in found:
            if each in self.writers or len(self.writers) < _MOST_WRITERS:
                self.writers[each] += 1


def _served(crd: Mapping[str, Any]) -> list[str]:
    return [each["name"] for each in (crd.get("spec") or {}).get("versions") or () if each.get("served")]
