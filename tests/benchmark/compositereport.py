"""The tables of the benchmark of composites: medians of the rounds, and ours divided by kro's."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, Final

_OURS: Final = "crdkeeper"
_PHASES: Final = {
    "create": "all instances created",
    "change": "the template changed",
    "drift": "drift put back, one object after the other",
    "follow": "a change of an object to the status",
    "restart": "the controller restarted, nothing changed",
    "delete": "all instances deleted",
}
_ONE_AFTER_THE_OTHER: Final = ("drift", "follow")
_PER_INSTANCE: Final = "requests per instance"
_Row = tuple[str, str, float]
"""The figure, its form, and the factor."""
_COSTS: Final[Mapping[str, _Row]] = {
    "writes": ("writes", "{:,.0f}", 1),
    "CPU": ("cpu", "{:.1f} s", 1),
    "API server's CPU": ("apiserver", "{:.1f} s", 1),
    "peak memory": ("peak", "{:.0f} MiB", 2**-20),
}
_TOGETHER: Final[Mapping[str, _Row]] = {
    "seconds": ("seconds", "{:.1f}", 1),
    _PER_INSTANCE: (_PER_INSTANCE, "{:.2f}", 1),
    **_COSTS,
}
_TIMES: Final[Mapping[str, _Row]] = {
    **{each: (each, "{:.0f} ms", 1000) for each in ("p50", "p99", "worst")},
    **_COSTS,
}
_REST: Final[Mapping[str, _Row]] = {
    "cores": ("cores", "{:.3f}", 1),
    "memory": ("memory", "{:.0f} MiB", 2**-20),
    "requests in 20 s": ("requests", "{:.0f}", 1),
}
_BARE: Final = "bare client"
_LEGEND: Final = """\
seconds      until all instances are ready, all objects have the new template, are gone; for a restart, until
             the controller requests nothing any more.
requests     of the controller to the API server for each instance, until all is quiet; without Leases.
CPU          user and system time, until all is quiet.
bare client  applies the same objects once, 16 at a time, and nothing else: the API server's ceiling.
ours / kro   the median over the rounds of our figure divided by kro's in the same round; less is better."""

Figures = Mapping[str, Any]


def lines(figures: Sequence[Figures]) -> list[str]:
    """The tables."""
    titles = list(dict.fromkeys(each["contestant"] for each in figures if each["contestant"] != _BARE))
    rounds = {title: [each for each in figures if each["contestant"] == title] for title in titles}
    others = [title for title in titles if title != _OURS]
    made = [_row("", *titles, *(f"ours / {each}" for each in others))]

    def add(what: str, figure: Callable[[Figures], float], form: str, scale: float) -> None:
        cells = [form.format(median(map(figure, rounds[each])) * scale) for each in titles]
        for other in others:
            pairs = zip(map(figure, rounds[_OURS]), map(figure, rounds[other]), strict=True)
            ratios = [one / two for one, two in pairs if two]
            cells.append(f"{median(ratios):.2f}" if ratios else "-")
        made.append(_row(f"  {what}", *cells))

    for phase, title in _PHASES.items():
        if any(phase not in each for of in rounds.values() for each in of):
            continue
        made.append(f"{title}:")
        for what, (which, form, scale) in (_TIMES if phase in _ONE_AFTER_THE_OTHER else _TOGETHER).items():
            add(what, partial(_figure, phase, which), form, scale)
    for rest in ("rest", "rest after restart"):
        if all(rest in each for of in rounds.values() for each in of):
            made.append(f"at {rest}:")
            for what, (which, form, scale) in _REST.items():
                add(what, partial(_figure, rest, which), form, scale)
    bare = [each["create"]["seconds"] for each in figures if each["contestant"] == _BARE]
    if bare:
        made += ["", f"bare client: {median(bare):.1f} s"]
    noise = [
        of["others"] for each in figures for of in each.values() if isinstance(of, dict) and "others" in of
    ]
    made += [f"Other programs kept {median(noise):.1f} cores busy meanwhile (at most {max(noise):.1f}).", ""]
    return [*made, _LEGEND]


def _figure(phase: str, which: str, figures: Figures) -> float:
    of = figures[phase]
    value: float = of["requests"] / figures["instances"] if which == _PER_INSTANCE else of[which]
    return value


def _row(first: str, *cells: str) -> str:
    return first.ljust(46) + "".join(each.rjust(18) for each in cells)
