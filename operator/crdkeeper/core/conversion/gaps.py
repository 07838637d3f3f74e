"""Fields that no rule covers, described so that an author finds the rule."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion.alike import difference, fields
from crdkeeper.core.conversion.fieldpaths import Steps, show
from crdkeeper.core.conversion.likeness import LIKELY, between, in_yaml, likeness, words

HUB: Final = "hub"
SPOKE: Final = "spoke"
_SCALARS: Final = frozenset(("string", "integer", "number", "boolean"))
_LONGEST: Final = 4000
"""Characters of the rules that are proposed for one list."""
_MOST_PAIRS: Final = 50_000
"""Fields to be compared by their names at most."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A field without a rule."""

    path: str
    reason: str
    rules: Sequence[str]
    """YAML of rules that could be added, the likeliest first; the author replaces `...`."""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}; add a rule such as {' or '.join(self.rules)}"


@dataclass(frozen=True, slots=True)
class Missing:
    """A field that only one side has."""

    at: Steps
    side: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class Unlike:
    """A field that both sides have, with different types."""

    at: Steps
    hub: Schema
    spoke: Schema


GapsInside = Callable[[Schema, Schema], Sequence[Gap]]


def described(found: Sequence[Missing | Unlike], inside: GapsInside) -> list[Gap]:
    """Describe these fields, and propose rules: fields with similar names are paired."""
    pairing = _Pairing(found, inside)
    gaps: list[Gap] = []
    for each in found:
        gaps += pairing.missing(each) if isinstance(each, Missing) else pairing.unlike(each)
    return gaps


def _rules_inside(hub: Schema, spoke: Schema, inside: GapsInside) -> str | None:
    gaps = inside(hub, spoke)
    rules = ", ".join(dict.fromkeys(each.rules[0] for each in gaps))
    if not gaps:
        return None
    return rules if len(rules) <= _LONGEST else "..."


def _path(steps: Steps) -> str:
    return in_yaml(show(steps))


class _Pairing:
    """Which of the fields that only one side has are probably the same thing."""

    def __init__(self, found: Sequence[Missing | Unlike], inside: GapsInside) -> None:
        self._inside = inside
        self._rules: dict[tuple[str, Steps], str] = {}
        self._around: set[tuple[str, Steps]] = set()
        """What contains fields that have a rule."""
        self._both: set[Steps] = set()
        """Fields that both sides have, and that are paired only with fields exactly like them."""
        sides: Mapping[str, list[Missing]] = {HUB: [], SPOKE: []}
        for each in found:
            if isinstance(each, Missing):
                sides[each.side] += _parts(each)
            else:
                self._both.add(each.at)
                sides[HUB].append(Missing(each.at, HUB, each.hub))
                sides[SPOKE].append(Missing(each.at, SPOKE, each.spoke))
        if len(sides[HUB]) * len(sides[SPOKE]) <= _MOST_PAIRS:
            for one, other in ((HUB, SPOKE), (SPOKE, HUB)):
                self._join(sides[one], sides[other])
            self._pair(sides[HUB], sides[SPOKE])

    def _free(self, field: Missing) -> bool:
        """Whether nothing is proposed yet for a field, for what contains it, and for what it contains."""
        side, at = field.side, field.at
        inside_one = any((side, at[: i + 1]) in self._rules for i in range(len(at)))
        return not inside_one and (side, at) not in self._around

    def _propose(self, rule: str, *these: Missing) -> None:
        for each in these:
            self._rules[each.side, each.at] = rule
            self._around.update((each.side, each.at[:i]) for i in range(len(each.at)))

    def _pair(self, hub: Sequence[Missing], spoke: Sequence[Missing]) -> None:
        found = []
        for one in hub:
            for other in spoke:
                if one.at == other.at or (likely := likeness(one.at, other.at)) < LIKELY:
                    continue
                # Of lists and objects with similar names, the ones with equal schemas are meant.
                same = not _SCALARS.issuperset((one.schema.get("type"), other.schema.get("type")))
                same = same and one.at[-1] == other.at[-1] and not difference(one.schema, other.schema)
                if same or self._both.isdisjoint((one.at, other.at)):
                    found.append((not same, -likely, show(one.at), show(other.at), one, other))
        for *_, one, other in sorted(found, key=lambda each: each[:4]):
            if not self._free(one) or not self._free(other):
                continue
            rule = self._between(one.at, one.schema, other.at, other.schema)
            if rule is not None:
                text = f"{{hub: {_path(one.at)}, spoke: {_path(other.at)}{', ' if rule else ''}{rule}}}"
                self._propose(text, one, other)

    def _between(self, one: Steps, hub: Schema, other: Steps, spoke: Schema) -> str | None:
        names = one[-1], other[-1]
        return between(hub, spoke, names, lambda a, b: _rules_inside(a, b, self._inside))

    def _join(self, texts: Sequence[Missing], parts: Sequence[Missing]) -> None:
        """A string such as hostPort on one side, the fields host and port on the other."""
        for text in texts:
            if text.at in self._both or text.schema.get("type") != "string" or len(words(text.at[-1])) < 2:
                continue
            near = [
                each
                for each in parts
                if each.at[:-1] == text.at[:-1]
                and each.schema.get("type") in _SCALARS
                and each.at not in self._both
                and words(each.at[-1]) < words(text.at[-1])
                and self._free(each)
            ]
            if sum(len(words(each.at[-1])) for each in near) != len(words(text.at[-1])):
                continue
            near.sort(key=lambda each: text.at[-1].lower().find(each.at[-1].lower()))
            template = ":".join(f"{{{each.at[-1]}}}" for each in near)
            named = ", ".join(f"{each.at[-1]}: {_path(each.at)}" for each in near)
            rule = f'{{{text.side}: {_path(text.at)}, join: {{template: "{template}", parts: {{{named}}}}}}}'
            self._propose(rule, text, *near)

    def unlike(self, field: Unlike) -> Iterator[Gap]:
        """The proposals for the field, or for each side's field if it has a partner."""
        path, reason = _path(field.at), difference(field.hub, field.spoke) or ""
        known = {side: self._rules.get((side, field.at)) for side in (HUB, SPOKE)}
        if any(known.values()):
            for side, rule in known.items():
                yield Gap(show(field.at), reason, [rule or f"{{{side}: {path}, aside: true}}"])
            return
        rule = self._between(field.at, field.hub, field.at, field.spoke)
        rule = "cel: {toHub: ..., toSpoke: ...}" if rule is None else rule
        rules = [rule, "cast: true"] if "..." in rule and field.hub.get("enum") else [rule]
        yield Gap(show(field.at), reason, [f"{{hub: {path}, spoke: {path}, {each}}}" for each in rules])

    def missing(self, field: Missing) -> Iterator[Gap]:
        """The proposals for the field, or for its parts that have a partner and then for the rest."""
        aside = f"{{{field.side}: {_path(field.at)}, aside: true}}"
        other = SPOKE if field.side == HUB else HUB
        rule = self._rules.get((field.side, field.at))
        if rule is not None:
            yield Gap(show(field.at), f"the {other} has no such field", [rule, aside])
            return
        parts = _parts(field)
        paired = [each for each in parts if (each.side, each.at) in self._rules]
        for part in paired:
            yield Gap(show(part.at), f"the {other} has no such field", [self._rules[part.side, part.at]])
        left = [
            show(each.at)
            for each in parts
            if not each.schema.get("properties")
            and not any(each.at[: len(part.at)] == part.at for part in paired)
        ]
        if not paired:
            yield Gap(show(field.at), f"the {other} has no such field", [aside])
        elif left:
            yield Gap(", ".join(left), f"the {other} has no such fields", [aside])


def _parts(field: Missing) -> list[Missing]:
    """A field and everything in it, except the content of lists and maps."""
    found = [field]
    for steps in fields(field.schema, field.at):
        schema: Schema = field.schema
        for step in steps[len(field.at) :]:
            schema = schema["properties"][step]
        found.append(Missing(steps, field.side, schema))
    return found
