"""The objects of the demo: `python -m demo.databases 2000` creates them as their owners would have.

Through the API server at v1, each with a status from a second write, like that of a controller.
"""

import argparse
import asyncio
import random
from collections.abc import Iterator
from typing import Any, Final

from crdkeeper.cluster.transport.client import MERGE_PATCH, Client
from crdkeeper.cluster.transport.connection import Connection

GROUP: Final = "platform.example.com"
PLURAL: Final = "databases"
NAMESPACES: Final = ("team-orders", "team-billing", "team-search")

_AT_ONCE = 24
_ENGINES = {"postgres": ("15", "16.4", "17"), "mysql": ("8.0", "8.4")}
_PARAMETERS = {
    "postgres": {"max_connections": "200", "shared_buffers": "1GB", "log_min_duration_statement": "250"},
    "mysql": {"max_connections": "300", "innodb_buffer_pool_size": "2147483648"},
}


def databases(count: int) -> Iterator[dict[str, Any]]:
    """`count` Databases over all namespaces; the same ones each time."""
    chance = random.Random(count)
    for number in range(count):
        namespace = NAMESPACES[number % len(NAMESPACES)]
        labels = {"team": namespace.removeprefix("team-"), "tier": chance.choice(("gold", "silver"))}
        yield {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Database",
            "metadata": {"name": f"db-{number:05}", "namespace": namespace, "labels": labels},
            "spec": _spec(number, chance),
        }


def _spec(number: int, chance: random.Random) -> dict[str, Any]:
    engine = chance.choice(sorted(_ENGINES))
    version = chance.choice(_ENGINES[engine])
    return {
        "engine": {"name": engine, "version": version, "parameters": _PARAMETERS[engine]},
        "replicas": chance.choice((1, 2, 3)),
        "storage": {"size": f"{chance.choice((10, 50, 200))}Gi", "storageClassName": "fast"},
        "users": [
            {"name": name, "privileges": privileges, "passwordSecretRef": {"name": f"db-{number:05}-{name}"}}
            for name, privileges in (("app", ["Read", "Write"]), ("schema", ["Own"]))
        ],
    }


def _status(database: dict[str, Any]) -> dict[str, Any]:
    metadata = database["metadata"]
    return {
        "endpoint": f"{metadata['name']}.{metadata['namespace']}.svc:5432",
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "AllReplicasReady",
                "message": "All replicas answer.",
            }
        ],
    }


async def create(count: int) -> None:
    """Creates them in the cluster of KUBECONFIG; all of them, or raises."""
    left = databases(count)
    async with Client(Connection()) as client, asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(_create_each(client, left))


async def _create_each(client: Client, left: Iterator[dict[str, Any]]) -> None:
    for database in left:
        name, namespace = database["metadata"]["name"], database["metadata"]["namespace"]
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/{PLURAL}"
        await client.request("POST", f"{path}?fieldManager=team-tooling", database)
        await client.request(
            "PATCH",
            f"{path}/{name}/status?fieldManager=database-operator",
            {"status": _status(database)},
            content_type=MERGE_PATCH,
        )


def main() -> None:
    """Creates as many as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m demo.databases", description=__doc__)
    parser.add_argument("count", type=int)
    count = parser.parse_args().count
    asyncio.run(create(count))
    print(f"{count:,} Databases created in {len(NAMESPACES)} namespaces, at {GROUP}/v1")


if __name__ == "__main__":
    main()
