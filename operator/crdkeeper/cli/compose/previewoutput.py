"""Prints what a Composition would change: as text while it is found out, or as one document at the end."""

from collections import Counter
from typing import Any, Final

from crdkeeper.cli.output.printing import Styled, line, print_json, print_yaml
from crdkeeper.core.composites.preview import Change, PreviewedComposite, PreviewedObject
from crdkeeper.core.text import count

_API_VERSION: Final = "cli.crdkeeper.dev/v1alpha1"
_MOST_FIELDS: Final = 50_000
"""Of one run: what is kept for a document, and what people read, is bounded."""
_MARKS: Final[dict[Change, tuple[str, str | None]]] = {
    "Created": ("+", "green"),
    "Changed": ("~", "yellow"),
    "Recreated": ("±", "red"),
    "Deleted": ("-", "red"),
    "Released": ("-", "yellow"),
    "Refused": ("!", "red"),
    "Waiting": ("?", None),
    "Held": ("=", None),
    "Unknown": ("!", "red"),
}
_FAILED: Final = ("Refused", "Unknown")
_LATER: Final = ("Waiting", "Held")
"""What a Composition that is new may still lead to."""


class PreviewOutput:
    """Takes composites as they are tried."""

    def __init__(self, output: str, revision: str, *, new: bool) -> None:
        self._output = output
        self._revision = revision
        self._new = new
        self._fields = 0
        self._kept: list[dict[str, Any]] = []
        self.changes: Counter[str] = Counter()
        self.composites: Counter[str] = Counter()
        if output == "text":
            line(f"CompositionRevision {revision}{' would be made' if new else ' exists with this content'}.")

    @property
    def failed(self) -> bool:
        """Whether something would be refused, or could not be tried."""
        return any(self.changes[each] for each in _FAILED)

    @property
    def differs(self) -> bool:
        """Whether an object would change, or may do so later."""
        kinds = self.changes.keys() - {"Unchanged", *(() if self._new else _LATER)}
        return any(self.changes[each] for each in kinds)

    def take(self, made: PreviewedComposite) -> None:
        """Count a composite, and print it."""
        self.changes.update(made.counts)
        self.changes["Unchanged"] += made.unchanged
        self.composites[_verdict(made)] += 1
        for each in made.objects:
            room = max(0, _MOST_FIELDS - self._fields)
            each.more_fields += len(each.fields[room:])
            each.fields = each.fields[:room]
            self._fields += len(each.fields)
        if self._output == "text":
            _print(made)
        else:
            self._kept.append(made.to_object())

    def end(self, kind: str, others: int) -> None:
        """Print the sum."""
        summary = {
            "composites": dict(sorted(self.composites.items())),
            "objects": {key: each for key, each in sorted(self.changes.items()) if each},
            "otherRevisions": others,
        }
        document = {
            "apiVersion": _API_VERSION,
            "kind": "CompositionPreview",
            "revision": self._revision,
            "isNew": self._new,
            "composites": self._kept,
            "summary": summary,
        }
        if self._output == "json":
            print_json(document)
        elif self._output == "yaml":
            print_yaml(document)
        else:
            total = self.composites.total()
            said = ", ".join(f"{number:,} {what.lower()}" for what, number in sorted(self.composites.items()))
            line(f"{total:,} of kind {kind} would run by {self._revision}{': ' if said else ''}{said}.")
            objects = ", ".join(
                f"{number:,} {what.lower()}" for what, number in sorted(self.changes.items()) if number
            )
            line(f"Objects: {objects or 'none'}.")
            if others:
                line(f"{count(others, 'composite')} would not run by it.")


def _verdict(made: PreviewedComposite) -> str:
    counts = made.counts
    if counts["Unknown"]:
        return "Unknown"
    if counts["Refused"]:
        return "Refused"
    if made.message:
        return "Skipped"
    if counts.keys() - {*_LATER}:
        return "Changed"
    return "Waiting" if counts else "Unchanged"


def _print(made: PreviewedComposite) -> None:
    if not made.objects and not made.message:
        return
    name = f"{made.namespace}/{made.name}" if made.namespace else made.name
    line(Styled(name, bold=True), f": {made.message}" if made.message else "")
    for each in made.objects:
        _print_object(each)


def _print_object(each: PreviewedObject) -> None:
    mark, color = _MARKS[each.change]
    where = f"{each.namespace}/{each.name}" if each.namespace else each.name
    parts = [f"{each.kind} {where}"] if each.kind else []
    parts += [each.resource] if each.resource and not each.kind else []
    parts += [each.change.lower()] if each.change not in ("Created", "Changed", "Deleted", "Waiting") else []
    parts += [each.message] if each.message else []
    line(Styled(f"  {mark} {': '.join(parts)}", color=color))
    for field in each.fields:
        if field.before is None:
            line(f"      + {field.path}: {field.after}")
        elif field.after is None:
            line(f"      - {field.path}: {field.before}")
        else:
            line(f"      ~ {field.path}: {field.before} -> {field.after}")
    if each.more_fields:
        line(f"      and {count(each.more_fields, 'more field')}")
