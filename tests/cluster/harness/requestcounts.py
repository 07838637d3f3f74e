"""How many requests an API server has answered, by its own count."""

from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.harness.admin import Admin
from tests.cluster.harness.customkind import CustomKind
from tests.controlplane.cluster import Cluster

_METRIC: Final = "apiserver_request_total"


def counted(metrics: str, group: str, resource: str, verb: str, **labels: str) -> int:
    """The requests with that verb (LIST, PATCH) for a resource, from the metrics of the API server."""
    wanted = {"group": group, "resource": resource, "verb": verb, **labels}
    # The whole is megabytes, and parsing it takes seconds.
    lines = [each for each in metrics.splitlines() if each.startswith(_METRIC + "{") and resource in each]
    families = text_string_to_metric_families("\n".join(lines) + "\n")
    samples = (sample for family in families for sample in family.samples)
    return int(sum(each.value for each in samples if wanted.items() <= each.labels.items()))


async def requests_of(admin: Admin, kind: CustomKind, verb: str, **labels: str) -> int:
    """The requests with that verb for a kind's objects, by anyone, since the API server started."""
    answer = await admin.client.send("GET", "/metrics")
    return counted(answer.content.decode(), kind.group, kind.plural, verb, **labels)


async def requests_by_server(cluster: Cluster, kind: CustomKind, verb: str) -> list[int]:
    """The same of each API server."""
    found = []
    for index in range(len(cluster.api_servers)):
        async with Admin(cluster, server=index) as admin:
            found.append(await requests_of(admin, kind, verb))
    return found
