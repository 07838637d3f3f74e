"""One controller's turn: what it does with instances of an API, and what that costs."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from statistics import median
from typing import Any, Final

from tests.benchmark import compositesubject as subject
from tests.benchmark.compositecontestants import Contestant, until
from tests.benchmark.meter import Meter, peak_memory, reset_peak_memory, resident_memory
from tests.benchmark.requestlog import RequestLog, writes
from tests.benchmark.server import Server
from tests.controlplane.plane import ControlPlane

_AT_ONCE: Final = 16
_TIMEOUT: Final = 3000.0
_QUIET_SECONDS: Final = 4.0
"""kro looks again after three."""
_SETTLING_SECONDS: Final = 180.0
_REST_SECONDS: Final = 20.0
_CONTROLLER: Final = "controller"
_EXPRESSION: Final = re.compile(r"\$\{[^}]*\}")

Figures = dict[str, Any]


class Seen:
    """What a watch has told of all objects of a collection, reduced by `reduce`."""

    def __init__(self, server: Server, path: str, reduce: Callable[[Mapping[str, Any]], Any]) -> None:
        self.latest: dict[str, Any] = {}
        self._reduce = reduce
        self._changed = threading.Condition()
        threading.Thread(target=self._follow, args=(server, path), daemon=True).start()

    def wait(self, holds: Callable[[dict[str, Any]], bool]) -> float:
        """When that became true; raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: holds(self.latest), _TIMEOUT):
                raise TimeoutError(f"{len(self.latest)} objects, and still not as expected")
            return time.monotonic()

    def _follow(self, server: Server, path: str) -> None:
        with suppress(OSError):  # the API server has ended; waiting for more times out
            for each in server.watch_all(path):
                with self._changed:
                    self.latest[each["metadata"]["name"]] = self._reduce(each)
                    self._changed.notify_all()


class Turn:
    """The phases of one contestant's turn. It leaves nothing behind."""

    def __init__(
        self,
        plane: ControlPlane,
        server: Server,
        requests: RequestLog,
        contestant: Contestant,
        instances: int,
        objects: int,
    ) -> None:
        self._plane = plane
        self._server = server
        self._requests = requests
        self._contestant = contestant
        self._objects = objects
        self._names = [f"a{number:05}" for number in range(instances)]
        self._space = f"turn-{time.monotonic_ns()}"
        self._path = f"/apis/{contestant.group}/v1/namespaces/{self._space}/{subject.PLURAL}"
        self._config_maps = f"/api/v1/namespaces/{self._space}/configmaps"
        self.figures: Figures = {"contestant": contestant.title, "instances": instances, "objects": objects}

    def all(self, changes: int) -> Figures:
        """All phases."""
        with self._api():
            instances = Seen(self._server, self._path, _standing)
            data = Seen(self._server, self._config_maps, lambda each: each.get("data") or {})
            with self._phase("create", lambda: instances.wait(self._are_ready)):
                self._create()
            self.figures["rest"] = self._at_rest()
            with self._phase("change", lambda: data.wait(self._have_note("second"))):
                self._contestant.change(self._objects, "second")
            with self._phase("drift", time.monotonic):
                took = self._drift(data, changes)
            self.figures["drift"].update(_quantiles(took))
            with self._phase("follow", time.monotonic):
                took = self._follow(instances, changes)
            self.figures["follow"].update(_quantiles(took))
            self._restart()
        return self.figures

    def rest(self) -> Figures:
        """Only at rest, and a restart."""
        with self._api():
            instances = Seen(self._server, self._path, _standing)
            with self._phase("create", lambda: instances.wait(self._are_ready)):
                self._create()
            self.figures["rest"] = self._at_rest()
            self._restart()
            self.figures["rest after restart"] = self._at_rest()
        return self.figures

    @contextmanager
    def _api(self) -> Iterator[None]:
        self._plane.kubectl("create", "namespace", self._space)
        self._contestant.start()
        try:
            self._contestant.define(self._objects, "first")
            yield
            with self._phase("delete", self._wait_gone):
                self._each("DELETE", ((f"{self._path}/{each}", None) for each in self._names))
            self._contestant.remove()
        finally:
            self._contestant.stop()
            self._plane.kubectl("delete", "namespace", self._space, "--wait=false")

    @contextmanager
    def _phase(self, name: str, done: Callable[[], float]) -> Iterator[None]:
        """Measures what begins in the block: the time until `done`, and its costs until all is quiet."""
        pid, user = self._contestant.pid, self._contestant.user
        pids = {_CONTROLLER: pid, "apiserver": self._plane.api_servers[0].pid}
        meter = Meter({**pids, "etcd": self._plane.etcd_process.pid})
        reset_peak_memory(pid)
        before, counted = meter.read(), self._requests.counts(user)
        yield
        seconds = done() - before.at
        self._wait_quiet()
        usage = before.until(meter.read())
        made = self._requests.counts(user) - counted
        self.figures[name] = {
            "seconds": seconds,
            "cpu": usage.cpu[_CONTROLLER],
            "apiserver": usage.cpu["apiserver"],
            "etcd": usage.cpu["etcd"],
            "others": usage.others / usage.seconds,
            "peak": peak_memory(pid),
            "requests": sum(made.values()),
            "writes": writes(made),
            "by kind": dict(made.most_common()),
        }

    def _wait_quiet(self) -> None:
        """Until the controller requests nothing any more; it may do so at rest, too."""
        deadline = time.monotonic() + _SETTLING_SECONDS
        count, since = -1, time.monotonic()
        while time.monotonic() < deadline and time.monotonic() - since < _QUIET_SECONDS:
            now = sum(self._requests.counts(self._contestant.user).values())
            if now != count:
                count, since = now, time.monotonic()
            time.sleep(0.5)

    def _create(self) -> None:
        group = self._contestant.group
        self._each("POST", ((self._path, subject.instance(group, self._space, each)) for each in self._names))

    def _each(self, method: str, requests: Iterable[tuple[str, Any]]) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda each: self._server.send(method, *each), requests))

    def _are_ready(self, latest: Mapping[str, Any]) -> bool:
        return len(latest) == len(self._names) and all(each["ready"] for each in latest.values())

    def _have_note(self, note: str) -> Callable[[Mapping[str, Any]], bool]:
        wanted = len(self._names) * self._objects // 4
        return lambda latest: sum(each.get("note") == note for each in latest.values()) == wanted

    def _at_rest(self) -> Figures:
        pid, user = self._contestant.pid, self._contestant.user
        meter = Meter({_CONTROLLER: pid})
        before, counted = meter.read(), self._requests.counts(user)
        time.sleep(_REST_SECONDS)
        usage = before.until(meter.read())
        made = self._requests.counts(user) - counted
        return {
            "cores": usage.cpu[_CONTROLLER] / usage.seconds,
            "memory": resident_memory(pid),
            "requests": sum(made.values()),
            "writes": writes(made),
        }

    def _restart(self) -> None:
        self._contestant.stop()
        counted = self._requests.counts(self._contestant.user)
        began = time.monotonic()
        self._contestant.start()
        with self._phase("restart", time.monotonic):
            pass
        made = self._requests.counts(self._contestant.user) - counted
        cpu = Meter({_CONTROLLER: self._contestant.pid}).read().cpu[_CONTROLLER]
        self.figures["restart"].update(
            seconds=time.monotonic() - began - _QUIET_SECONDS,
            cpu=cpu,
            requests=sum(made.values()),
            writes=writes(made),
        )
        self.figures["restart"]["by kind"] = dict(made.most_common())

    def _drift(self, data: Seen, changes: int) -> list[float]:
        """Another value in a field of ours, one object after the other: the times until it is put back."""
        took = []
        for name in self._spread(changes):
            began = time.monotonic()
            self._patch(name, {"engine": "another"})
            data.wait(_has(f"{name}-0", "engine", "another"))
            took.append(data.wait(_has(f"{name}-0", "engine", subject.ENGINE)) - began)
        return took

    def _follow(self, instances: Seen, changes: int) -> list[float]:
        """A value of somebody else in an object: the times until the instance's status has it."""
        took = []
        for number, name in enumerate(self._spread(changes)):
            value = f"number {number}"
            began = time.monotonic()
            self._patch(name, {"theirs": value})
            took.append(instances.wait(_has(name, "theirs", value)) - began)
        return took

    def _spread(self, changes: int) -> list[str]:
        return [self._names[number * 7919 % len(self._names)] for number in range(changes)]

    def _patch(self, name: str, data: Mapping[str, str]) -> None:
        self._server.merge(f"{self._config_maps}/{name}-0?fieldManager=somebody", {"data": data})

    def _wait_gone(self) -> float:
        until(
            lambda: not self._server.send("GET", f"{self._path}?limit=1")["items"],
            "instances are left",
            _TIMEOUT,
        )
        return time.monotonic()


def bare_client(plane: ControlPlane, server: Server, instances: int, objects: int) -> Figures:
    """The same objects, each applied once, from a client that does nothing else: the ceiling of a start."""
    space = f"bare-{time.monotonic_ns()}"
    plane.kubectl("create", "namespace", space)
    requests = []
    for number in range(instances):
        for _, template, _ in subject.resources("composite", objects, "first"):
            made = json.loads(_EXPRESSION.sub(f"a{number:05}", json.dumps(template)))
            made["metadata"]["namespace"] = space
            requests.append((_path_of(made), made))
    meter = Meter({"apiserver": plane.api_servers[0].pid, "etcd": plane.etcd_process.pid})
    before = meter.read()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda each: server.send("APPLY", *each), requests))
    usage = before.until(meter.read())
    plane.kubectl("delete", "namespace", space)
    return {
        "contestant": "bare client",
        "instances": instances,
        "create": {"seconds": usage.seconds, "apiserver": usage.cpu["apiserver"], "etcd": usage.cpu["etcd"]},
    }


def _path_of(value: Mapping[str, Any]) -> str:
    base = "/api/v1" if value["apiVersion"] == "v1" else f"/apis/{value['apiVersion']}"
    plural = f"{value['kind'].lower()}s"
    return f"{base}/namespaces/{value['metadata']['namespace']}/{plural}/{value['metadata']['name']}"


def _has(name: str, field: str, value: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda latest: latest[name].get(field) == value


def _standing(found: Mapping[str, Any]) -> Figures:
    """Whether an instance is ready, and what its status has of somebody else's value."""
    status = found.get("status") or {}
    said = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    return {"ready": said.get("Ready") == "True", "theirs": status.get("theirs", "")}


def _quantiles(took: list[float]) -> Figures:
    took.sort()
    return {
        "p50": median(took),
        "p99": took[min(len(took) - 1, int(0.99 * len(took)))],
        "worst": took[-1],
    }
