"""Which answer belongs to which request.

HTTP/1.1 pairs them by order alone, so one stray answer on a connection shifts all that follow: what was said
of one object would be believed of the next. The API server returns a request's Audit-ID header with its
answer (k8s.io/apiserver pkg/endpoints/filters/audit_init.go), which makes such a shift visible.
"""

import itertools
import uuid
from typing import Final

AUDIT_ID: Final = "Audit-ID"


class RequestIds:
    """Unique ids for the requests to one server, and what came back of them."""

    def __init__(self) -> None:
        self._prefix = str(uuid.uuid4())[:-12]
        self._numbers = itertools.count(1)
        self._returned: bool | None = None

    def next(self) -> str:
        """An id that no other request has; of a UUID's form, since audit logs expect one."""
        return f"{self._prefix}{next(self._numbers):012x}"

    def answered(self, id: str, code: int, returned: str) -> bool:
        """Whether an answer with this status and Audit-ID header (empty: none) may be the one to `id`.

        A proxy may keep our ids from the server, which then makes ids of its own: the first answer with an id
        shows whether ids come back. Where they do, only a failure may come without, as from a proxy.
        """
        if not returned:
            return code >= 400 or not self._returned
        if self._returned is None:
            self._returned = returned == id
        return returned == id or not self._returned
