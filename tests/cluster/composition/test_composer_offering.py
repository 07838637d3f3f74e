"""Whether composites find a Composition, as the composer says while Compositions come and go."""

from crdkeeper.cluster.transport.client import Client
from tests.cluster.composition.composerscene import NAME, PATH, apply, delete, has
from tests.unit.core.composition.documents import document

COMPOSITIONS = "/apis/crdkeeper.dev/v1alpha1/compositions"


async def test_a_definition_is_offered_while_a_composition_can_be_used(client: Client, rights: None) -> None:
    await apply(client, document())
    await has(client, "Offered", "False", "NoComposition")
    composition = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "Composition",
        "metadata": {"name": "small"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "platform.example.com/v1", "kind": "Database"},
            "resources": [
                {
                    "name": "settings",
                    "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
                }
            ],
        },
    }
    await client.request("POST", COMPOSITIONS, composition)
    await has(client, "Offered", "True", "OnlyOne")
    await apply(client, document(defaultCompositionRef={"name": "large"}))
    await has(client, "Offered", "False", "CompositionMissing")
    await client.request("POST", COMPOSITIONS, {**composition, "metadata": {"name": "large"}})
    await has(client, "Offered", "True", "Default")
    await delete(client, f"{COMPOSITIONS}/large")
    await has(client, "Offered", "False", "CompositionMissing")
    await delete(client, f"{COMPOSITIONS}/small")
    await delete(client, f"{PATH}/{NAME}")
