"""Many objects at once: requests for thousands take longer than most tests."""

from uuid import uuid4

import orjson

from tests.cluster.harness.admin import Admin
from tests.cluster.harness.customkind import CustomKind


async def put_objects(admin: Admin, kind: CustomKind, count: int) -> None:
    """Puts many copies of one object into etcd, in a second."""
    (first,) = await admin.create_objects(kind, 1)
    copy = admin.etcd.get(kind.etcd_key(first))
    assert copy is not None

    def value(name: str) -> bytes:
        metadata = {**copy["metadata"], "name": name, "uid": str(uuid4())}
        return orjson.dumps({**copy, "metadata": metadata})

    names = (f"copy-{number:05d}" for number in range(count - 1))
    admin.etcd.put_all((kind.etcd_key(each), value(each)) for each in names)
