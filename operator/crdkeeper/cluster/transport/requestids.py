"""Which answer belongs to which request.

HTTP/1.1 matches them only by order, so one stray answer on a connection shifts all later ones: an answer
about one object would be attributed to the next. The API server returns a request's Audit-ID header with its
answer (k8s.io/apiserver pkg/endpoints/filters/audit_init.go), which reveals such a shift.
"""

import itertools
import uuid
from typing import Final

AUDIT_ID: Final = "Audit-ID"


class RequestIds:
    """Unique ids for the requests to one server, and whether they are returned."""

    def __init__(self) -> None:
        self._prefix = str(uuid.uuid4())[:-12]
        self._numbers = itertools.count(1)
        self._returned: bool | None = None

    def next(self) -> str:
        """An id that no other request has, in the form of a UUID, which audit logs expect."""
        return f"{self._prefix}{next(self._numbers):012x}"

    def answered(self, id: str, code: int, returned: str) -> bool:
        """Whether an answer with this status and Audit-ID header (empty: none) may be the one to `id`.

        A proxy may drop our ids, and the server then creates its own: the first answer with an id shows
        whether ours are returned. If they are, only an error, which a proxy may have sent, may lack one.
        """
        if not returned:
            return code >= 400 or not self._returned
        if self._returned is None:
            self._returned = returned == id
        return returned == id or not self._returned
