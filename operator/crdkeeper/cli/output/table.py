"""Tables and ages in kubectl's format."""

from collections.abc import Sequence

from crdkeeper.core.text import visible

_GAP = "   "


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, with_headers: bool = True) -> list[str]:
    """Aligned columns without borders, line by line; an empty cell is shown as `-`."""
    lines = [[visible(cell) or "-" for cell in row] for row in rows]
    if with_headers:
        lines.insert(0, list(headers))
    widths = [max((len(line[column]) for line in lines), default=0) for column in range(len(headers))]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def age(seconds: float) -> str:
    """A duration in one or two units, the smaller one only if it matters (HumanDuration of
    k8s.io/apimachinery/pkg/util/duration).
    """
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}" + (f"{small}{small_unit}" if small else "")
