"""The getters of timestamps and durations (common/stdlib of cel-go; UTC unless a time zone is given)."""

from collections.abc import Callable
from typing import Final

from crdkeeper.apiserver.cel.values.overloads import Overload, Table
from crdkeeper.apiserver.cel.values.times import SECOND, Duration, Timestamp, civil, days_of, zone_offset
from crdkeeper.apiserver.cel.values.values import Value

_Fields = tuple[int, int, int, int, int, int]


def _day_of_year(fields: _Fields) -> int:
    return days_of(*fields[:3]) - days_of(fields[0], 1, 1)


def _day_of_week(fields: _Fields) -> int:
    return (days_of(*fields[:3]) + 4) % 7


_GETTERS: Final[dict[str, Callable[[_Fields], int]]] = {
    "getFullYear": lambda fields: fields[0],
    "getMonth": lambda fields: fields[1] - 1,
    "getDayOfYear": _day_of_year,
    "getDayOfMonth": lambda fields: fields[2] - 1,
    "getDate": lambda fields: fields[2],
    "getDayOfWeek": _day_of_week,
    "getHours": lambda fields: fields[3],
    "getMinutes": lambda fields: fields[4],
    "getSeconds": lambda fields: fields[5],
}
_UNITS: Final = {"getHours": 3600 * SECOND, "getMinutes": 60 * SECOND, "getSeconds": SECOND}


def _getter(field: Callable[[_Fields], int]) -> Callable[..., Value]:
    def get(timestamp: Timestamp, zone: str = "") -> int:
        return field(civil(timestamp.order // SECOND + zone_offset(timestamp, zone)))

    return get


def _milliseconds(timestamp: Timestamp, zone: str = "") -> int:
    zone_offset(timestamp, zone)
    return timestamp.order % SECOND // 10**6


def _whole(unit: int) -> Callable[[Duration], int]:
    return lambda duration: duration.whole(unit)


def _members() -> Table:
    getters = {name: _getter(field) for name, field in _GETTERS.items()} | {"getMilliseconds": _milliseconds}
    spans: dict[str, Callable[[Duration], int]] = {name: _whole(unit) for name, unit in _UNITS.items()}
    spans["getMilliseconds"] = Duration.milliseconds
    return {
        name: [
            Overload((Timestamp.type_name,), get),
            Overload((Timestamp.type_name, "string"), get),
            *([Overload((Duration.type_name,), spans[name])] if name in spans else []),
        ]
        for name, get in getters.items()
    }


MEMBERS: Final[Table] = _members()
