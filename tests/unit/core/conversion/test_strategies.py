"""These rules can express what other tools have special strategies for, without losses."""

from typing import Any

import pytest

from tests.unit.core.conversion.samples import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    at,
    compiled,
    list_of,
    map_of,
    obj,
)

NOTE = "metadata.annotations[example.com/owner]"
LABEL = "metadata.labels[example.com/tier]"
LABELS = {"labels": {"example.com/tier": "web"}}
ANNOTATIONS = {"annotations": {"example.com/owner": "me"}}
HOST_PORT = '{template: "{host}:{port}", parts: {host: spec.host, port: spec.port}}'
ENTRY = obj(name=STRING, value=STRING)
LISTENER = obj(name=STRING, port=INTEGER)
TO_LIST = """- {hub: spec.listeners, cel: {toHub: "[{'name': 'main', 'port': object.spec.port}]"}}
- {spoke: spec.port, cel: {toSpoke: "object.spec.listeners[0].port"}}"""

# hub schema, spoke schema, rules, the hub's object, the spoke's (spec, metadata)
STRATEGIES: dict[str, tuple[Any, Any, str, tuple[Any, Any], tuple[Any, Any]]] = {
    "fieldRename": (
        obj(a=STRING),
        obj(b=STRING),
        "- {hub: spec.a, spoke: spec.b}",
        ({"a": "x"}, {}),
        ({"b": "x"}, {}),
    ),
    "fieldMove": (
        obj(image=obj(name=STRING, tag=STRING)),
        obj(image=obj(name=STRING), tag=STRING),
        "- {hub: spec.image.tag, spoke: spec.tag}",
        ({"image": {"name": "nginx", "tag": "1"}}, {}),
        ({"image": {"name": "nginx"}, "tag": "1"}, {}),
    ),
    "fieldCopy": (
        obj(a=STRING),
        obj(a=STRING, copy=STRING),
        "- {spoke: spec.copy, cel: {toSpoke: 'object.?spec.?a'}}",
        ({"a": "x"}, {}),
        ({"a": "x", "copy": "x"}, {}),
    ),
    "scalarToObject": (
        obj(image=obj(name=STRING)),
        obj(image=STRING),
        "- {hub: spec.image.name, spoke: spec.image}",
        ({"image": {"name": "nginx"}}, {}),
        ({"image": "nginx"}, {}),
    ),
    "objectToScalar": (
        obj(image=STRING),
        obj(image=obj(name=STRING)),
        "- {hub: spec.image, spoke: spec.image.name}",
        ({"image": "nginx"}, {}),
        ({"image": {"name": "nginx"}}, {}),
    ),
    "singletonArrayToObject": (
        obj(listener=obj(port=INTEGER)),
        obj(listeners=list_of(obj(port=INTEGER))),
        "- {hub: spec.listener, spoke: spec.listeners, wrap: true}",
        ({"listener": {"port": 80}}, {}),
        ({"listeners": [{"port": 80}]}, {}),
    ),
    "objectToSingletonArray": (
        obj(listeners=list_of(obj(port=INTEGER))),
        obj(listener=obj(portNumber=STRING)),
        "- {hub: spec.listeners, spoke: spec.listener, wrap: true,"
        " each: [{hub: port, spoke: portNumber, cast: true}]}",
        ({"listeners": [{"port": 80}]}, {}),
        ({"listener": {"portNumber": "80"}}, {}),
    ),
    "fieldsToMap": (
        obj(settings=map_of(STRING)),
        obj(size=STRING, count=INTEGER),
        "- {hub: 'spec.settings[size]', spoke: spec.size}\n"
        "- {hub: 'spec.settings[count]', spoke: spec.count, cast: true}\n"
        "- {hub: spec.settings, aside: true}",
        ({"settings": {"size": "x", "count": "1"}}, {}),
        ({"size": "x", "count": 1}, {}),
    ),
    "mapToFields": (
        obj(size=STRING),
        obj(settings=map_of(STRING)),
        "- {hub: spec.size, spoke: 'spec.settings[size]'}\n- {spoke: spec.settings, aside: true}",
        ({"size": "x"}, {}),
        ({"settings": {"size": "x"}}, {}),
    ),
    "toAnnotation": (
        obj(owner=STRING),
        obj(),
        f"- {{hub: spec.owner, spoke: '{NOTE}'}}",
        ({"owner": "me"}, {}),
        ({}, ANNOTATIONS),
    ),
    "fromAnnotation": (
        obj(),
        obj(owner=STRING),
        f"- {{hub: '{NOTE}', spoke: spec.owner}}",
        ({}, ANNOTATIONS),
        ({"owner": "me"}, {}),
    ),
    "toLabel": (
        obj(tier=STRING),
        obj(),
        f"- {{hub: spec.tier, spoke: '{LABEL}'}}",
        ({"tier": "web"}, {}),
        ({}, LABELS),
    ),
    "fromLabel": (
        obj(),
        obj(tier=STRING),
        f"- {{hub: '{LABEL}', spoke: spec.tier}}",
        ({}, LABELS),
        ({"tier": "web"}, {}),
    ),
    "labelToAnnotation": (
        obj(),
        obj(),
        f"- {{hub: '{LABEL}', spoke: '{NOTE}'}}",
        ({}, {"labels": {"example.com/tier": "me"}}),
        ({}, ANNOTATIONS),
    ),
    "enumRemap": (
        obj(size={"type": "string", "enum": ["Small"]}),
        obj(size={"type": "string", "enum": ["small"]}),
        "- {hub: spec.size, spoke: spec.size, values: [{hub: Small, spoke: small}]}",
        ({"size": "Small"}, {}),
        ({"size": "small"}, {}),
    ),
    "defaultValue": (
        obj(mode=STRING),
        obj(),
        "- {hub: spec.mode, aside: true, fill: Auto}",
        ({"mode": "Auto"}, {}),
        ({}, {}),
    ),
    "constant": (
        obj(engine=STRING),
        obj(),
        "- {hub: spec.engine, drop: true, fill: v1}",
        ({"engine": "v1"}, {}),
        ({}, {}),
    ),
    "delete": (obj(a=STRING), obj(), "- {hub: spec.a, drop: true}", ({}, {}), ({}, {})),
    "jsonPatch (test and replace)": (
        obj(policy=STRING),
        obj(policy=STRING),
        "- {hub: spec.policy, spoke: spec.policy,"
        " cel: {toHub: \"self == 'always' ? 'Always' : self\","
        " toSpoke: \"self == 'Always' ? 'always' : self\"}}",
        ({"policy": "Always"}, {}),
        ({"policy": "always"}, {}),
    ),
    "forEach": (
        obj(ports=list_of(obj(number=INTEGER))),
        obj(ports=list_of(obj(port=INTEGER))),
        "- {hub: spec.ports, spoke: spec.ports, each: [{hub: number, spoke: port}]}",
        ({"ports": [{"number": 1}]}, {}),
        ({"ports": [{"port": 1}]}, {}),
    ),
    "forEach (values of a map)": (
        obj(ports=map_of(obj(number=INTEGER))),
        obj(ports=map_of(obj(port=STRING))),
        "- {hub: spec.ports, spoke: spec.ports, each: [{hub: number, spoke: port, cast: true}]}",
        ({"ports": {"web": {"number": 1}}}, {}),
        ({"ports": {"web": {"port": "1"}}}, {}),
    ),
    "typeCoerce": (
        obj(port=INTEGER, on=BOOLEAN),
        obj(port=STRING, on=STRING),
        "- {hub: spec.port, spoke: spec.port, cast: true}\n- {hub: spec.on, spoke: spec.on, cast: true}",
        ({"port": 80, "on": True}, {}),
        ({"port": "80", "on": "true"}, {}),
    ),
    "scalarToFields": (
        obj(host=STRING, port=INTEGER),
        obj(address=STRING),
        f"- {{spoke: spec.address, join: {HOST_PORT}}}",
        ({"host": "h", "port": 80}, {}),
        ({"address": "h:80"}, {}),
    ),
    "fieldsToScalar": (
        obj(address=STRING),
        obj(host=STRING, port=INTEGER),
        f"- {{hub: spec.address, join: {HOST_PORT}}}",
        ({"address": "h:80"}, {}),
        ({"host": "h", "port": 80}, {}),
    ),
    "arrayToMapByKey": (
        obj(ports=map_of(obj(port=INTEGER))),
        obj(ports=list_of(LISTENER, "name")),
        "- {hub: spec.ports, spoke: spec.ports, key: name}",
        ({"ports": {"web": {"port": 80}}}, {}),
        ({"ports": [{"name": "web", "port": 80}]}, {}),
    ),
    "mapToArrayByKey": (
        obj(env=list_of(ENTRY, "name")),
        obj(env=map_of(STRING)),
        "- {hub: spec.env, spoke: spec.env, key: name}",
        ({"env": [{"name": "A", "value": "1"}]}, {}),
        ({"env": {"A": "1"}}, {}),
    ),
    "mapToArrayByKey (of other values)": (
        obj(env=map_of(INTEGER)),
        obj(env=list_of(ENTRY, "name")),
        "- {hub: spec.env, spoke: spec.env, key: name, each: [{hub: value, spoke: value, cast: true}]}",
        ({"env": {"A": 1}}, {}),
        ({"env": [{"name": "A", "value": "1"}]}, {}),
    ),
    "numericScale": (
        obj(ratio=NUMBER),
        obj(percent=INTEGER),
        "- {hub: spec.ratio, spoke: spec.percent, scale: {hub: 1, spoke: 100}}",
        ({"ratio": 0.25}, {}),
        ({"percent": 25}, {}),
    ),
    "numericScale (with an offset)": (
        obj(celsius=NUMBER),
        obj(fahrenheit=NUMBER),
        "- {hub: spec.celsius, spoke: spec.fahrenheit,"
        " cel: {toHub: (self - 32.0) / 1.8, toSpoke: self * 1.8 + 32.0}}",
        ({"celsius": 100.0}, {}),
        ({"fahrenheit": 212.0}, {}),
    ),
    "listJoin": (
        obj(hosts=STRING),
        obj(hosts=list_of(STRING)),
        "- {hub: spec.hosts, spoke: spec.hosts, separator: ','}",
        ({"hosts": "a,b"}, {}),
        ({"hosts": ["a", "b"]}, {}),
    ),
    "listSplit": (
        obj(ports=list_of(INTEGER)),
        obj(ports=STRING),
        "- {hub: spec.ports, spoke: spec.ports, separator: ' '}",
        ({"ports": [80, 443]}, {}),
        ({"ports": "80 443"}, {}),
    ),
    "listItem": (
        obj(listeners=list_of(LISTENER)),
        obj(port=INTEGER),
        "- {hub: 'spec.listeners[0].port', spoke: spec.port}\n- {hub: spec.listeners, aside: true}",
        ({"listeners": [{"port": 80}]}, {}),
        ({"port": 80}, {}),
    ),
    "listItem (several fields)": (
        obj(host=STRING, port=INTEGER),
        obj(listeners=list_of(obj(host=STRING, ports=list_of(STRING)))),
        "- {hub: spec.host, spoke: 'spec.listeners[0].host'}\n"
        "- {hub: spec.port, spoke: 'spec.listeners[0].ports[0]', cast: true}\n"
        "- {spoke: spec.listeners, aside: true}",
        ({"host": "h", "port": 80}, {}),
        ({"listeners": [{"host": "h", "ports": ["80"]}]}, {}),
    ),
    "listItem (computed)": (
        obj(listeners=list_of(LISTENER)),
        obj(port=INTEGER),
        TO_LIST,
        ({"listeners": [{"name": "main", "port": 80}]}, {}),
        ({"port": 80}, {}),
    ),
    "nested objects": (
        obj(check=obj(timeoutSeconds=INTEGER, retries=INTEGER)),
        obj(healthCheck=obj(timeout=STRING, retries=INTEGER)),
        "- {hub: spec.check, spoke: spec.healthCheck,"
        " each: [{hub: timeoutSeconds, spoke: timeout, duration: s}]}",
        ({"check": {"timeoutSeconds": 90, "retries": 2}}, {}),
        ({"healthCheck": {"timeout": "1m30s", "retries": 2}}, {}),
    ),
    "quantity": (
        obj(memory=STRING),
        obj(memoryMiB=INTEGER),
        "- {hub: spec.memory, spoke: spec.memoryMiB, quantity: Mi}",
        ({"memory": "512Mi"}, {}),
        ({"memoryMiB": 512}, {}),
    ),
    "duration": (
        obj(timeout=STRING),
        obj(timeoutSeconds=INTEGER),
        "- {hub: spec.timeout, spoke: spec.timeoutSeconds, duration: s}",
        ({"timeout": "1m30s"}, {}),
        ({"timeoutSeconds": 90}, {}),
    ),
    "mapKeyRename": (
        obj(limits=map_of(STRING)),
        obj(limits=map_of(STRING)),
        "- {hub: 'spec.limits[memory]', spoke: 'spec.limits[mem]'}",
        ({"limits": {"memory": "1Gi", "cpu": "1"}}, {}),
        ({"limits": {"mem": "1Gi", "cpu": "1"}}, {}),
    ),
    "cel": (
        obj(name=STRING),
        obj(names=obj(first=STRING, last=STRING)),
        "- {hub: spec.name, spoke: spec.names, cel: {toHub: self.first + ' ' + self.last,"
        " toSpoke: \"{'first': self.split(' ')[0], 'last': self.split(' ')[1]}\"}}",
        ({"name": "Ada Lovelace"}, {}),
        ({"names": {"first": "Ada", "last": "Lovelace"}}, {}),
    ),
}


@pytest.mark.parametrize(("hub", "spoke", "rules", "one", "other"), STRATEGIES.values(), ids=STRATEGIES)
def test_both_ways(hub: Any, spoke: Any, rules: str, one: Any, other: Any) -> None:
    conversion = compiled(hub, {"v2": (spoke, rules)})
    hubs, spokes = at("v1", one[0], **one[1]), at("v2", other[0], **other[1])
    assert conversion.convert(hubs, "v2") == spokes
    assert conversion.convert(spokes, "v1") == hubs
    for value, there in ((hubs, "v2"), (spokes, "v1")):
        back = value["apiVersion"].rpartition("/")[2]
        assert conversion.convert(conversion.convert(value, there), back) == value
