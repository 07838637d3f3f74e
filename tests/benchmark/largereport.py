"""The output of a benchmark with very many objects, also of one that was interrupted."""

from collections.abc import Sequence
from statistics import fmean, median
from typing import Final

from tests.benchmark.largeturn import PARTS, Turn, least_lists
from tests.controlplane.etcd import Size

LEGEND: Final = """\
objects/s     from the condition Settled to Rewritten, with listing and with what the kills cost.
listed again  objects that the killed process had written after the position that it had saved: the next one
              lists them, and finds them current.
memory        of the last process, which did half of the objects: mean resident size in the first and in the
              last quarter of its time, and the peaks of all processes."""

_MIB = 2**20


def lines(small: Sequence[Turn], large: Sequence[Turn]) -> list[str]:
    """What is known of the runs with few objects and of those with many."""
    return [line for each in large for line in _turn(each, small)] or [_rate(each) for each in small]


def _turn(turn: Turn, small: Sequence[Turn]) -> list[str]:
    rates = [each.rate for each in small if each.title == turn.title and each.rate]
    known = [_rate(turn, median(rates) if rates else None), _parts(turn), _resumes(turn), _requests(turn)]
    return [*filter(None, (*known, _memory(turn), _etcd(turn.sizes))), ""]


def _rate(turn: Turn, small: float | None = None) -> str:
    title = f"crdkeeper ({turn.title}), {turn.objects:,} objects"
    if turn.rate is None:
        return f"{title}: interrupted, {turn.done:,} written"
    running = turn.objects / (turn.rewritten - turn.began - turn.stopped)
    verified = f"{turn.objects / (turn.ended - turn.began):.0f} with verify" if turn.ended else "not verified"
    against = f"; {turn.rate / small:.0%} and {running / small:.0%} of {small:.0f} with few" if small else ""
    return f"{title}: {turn.rate:.0f} objects/s, {running:.0f} without the restarts ({verified}){against}"


def _parts(turn: Turn) -> str:
    rates = turn.parts()
    return f"  objects/s in each tenth: {' '.join(f'{each:.0f}' for each in rates)}" if rates else ""


def _resumes(turn: Turn) -> str:
    found = turn.resumes
    if not found:
        return ""
    again = [each.read_again for each in found]
    seconds = [each.seconds for each in found]
    return (
        f"  killed {len(found)} times: listed again {min(again):,} to {max(again):,} objects, median "
        f"{median(again):,.0f}; wrote again after {min(seconds):.1f} to {max(seconds):.1f} s"
    )


def _requests(turn: Turn) -> str:
    if turn.written_again is None or turn.requests is None:
        return ""
    patches, pages = turn.requests.patches - turn.objects, turn.requests.lists - least_lists(turn.objects)
    return (
        f"  {patches:,} patches and {pages:,} pages more than without kills; "
        f"{turn.written_again:,} objects written again"
    )


def _memory(turn: Turn) -> str:
    if not turn.peaks:
        return ""
    peaks = f"  memory: peak {max(turn.peaks.values()) / _MIB:.0f} MiB"
    last = turn.last_process()
    if len(last) < PARTS:
        return peaks
    quarter = len(last) // 4
    first, final = last[:quarter], last[-quarter:]
    resident = [f"{fmean(each.resident for each in some) / _MIB:.1f}" for some in (first, final)]
    shared = [f"{fmean(each.proportional for each in some) / _MIB:.1f}" for some in (first, final)]
    return (
        f"{peaks}; of the last process first {resident[0]}, then {resident[1]} MiB "
        f"(PSS {shared[0]}, {shared[1]} MiB)"
    )


def _etcd(sizes: Sequence[Size]) -> str:
    if not sizes:
        return ""
    compactions = len({each.compacted for each in sizes}) - 1
    used = [each.used / 2**30 for each in sizes]
    return (
        f"  etcd: file {sizes[0].file / 2**30:.2f} to {sizes[-1].file / 2**30:.2f} GiB, of it in use "
        f"{used[0]:.2f}, at most {max(used):.2f}, at the end {used[-1]:.2f}; {compactions} compactions"
    )
