"""What a composite gives up goes in order, also if some of it has to stay for now."""

from tests.unit.core.composites.scenes import Scene
from tests.unit.core.templates.compositions import config_map, server


def test_what_has_to_stay_for_now_keeps_the_waves_before_it() -> None:
    scene = Scene(config_map("credentials"), server("db", text="${credentials.metadata.name}"), server("a"))
    scene.run()
    scene.done.clear()
    # Until b is rendered, it may be the same object as db.
    scene.compose(server("a"), server("b", replicas="${a.status.ready}"))
    scene.run()
    assert (scene.done, scene.names()) == ([], ["a", "credentials", "db"])
    (first,) = (each for each in scene.objects.values() if each["metadata"]["name"] == "orders-a")
    first["status"] = {"ready": 1}
    scene.run()
    assert scene.done == ["create b", "delete db", "delete credentials"]
