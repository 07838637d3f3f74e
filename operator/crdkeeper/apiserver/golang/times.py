"""Times as Go prints them in JSON."""

from datetime import UTC, datetime
from typing import Final

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


def moment(text: str) -> datetime:
    """The time of a metav1.Time or MicroTime in an object; in the year 0, which Python lacks, the earliest.

    Anybody who may write an object may write such a time, for example into its managedFields.
    Raises ValueError for what the API server does not print.
    """
    return _EARLIEST if text.startswith("0000-") else datetime.fromisoformat(text)
