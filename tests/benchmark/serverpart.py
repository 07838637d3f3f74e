"""`make bench-server`: what the API server does while objects are rewritten, and what each request costs it.

First, kinds of CRDs, one after the other, each on a control plane of its own: the API server's CPU per object
and its parts, by a profile. Then the forms of request that rewrite an object, in turns: blocks of each follow
each other, so that a machine that becomes slower favours none. Figures are CPU, not time, and it never fails
for one.
"""

import json
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.benchmark.bareclient import Channel, patch, requests
from tests.benchmark.command import execute, parser_of, show, tell
from tests.benchmark.meter import Meter
from tests.benchmark.requestforms import FORMS, OURS
from tests.benchmark.server import Server
from tests.benchmark.serverprofile import OTHER, WORK, profile, shares
from tests.benchmark.subject import CRD, GROUP, PLURAL, Shape, Subject
from tests.controlplane.plane import ControlPlane

_AT_ONCE = 16
_BLOCK = 200
_PROFILE_SECONDS = 5
_WATCHERS = 20
_POLICY: Final = "bench"
_KINDS: Final = {
    "small, nothing else": Shape(),
    "100 CEL rules": Shape(rules=100),
    "10 field managers": Shape(managers=10),
    "10 KB": Shape(routes=130),
    "20 watches": Shape(),
    "an admission policy": Shape(),
}


def run(objects: int, rounds: int) -> dict[str, Any]:
    """The whole benchmark; prints the tables and returns the figures."""
    kinds = {}
    for name, shape in _KINDS.items():
        tell(name)
        with _subject(shape) as (plane, subject):
            subject.grow(objects)
            if name == "an admission policy":
                _admit(plane)
            with _watches(plane, _WATCHERS if name.endswith("watches") else 0):
                kinds[name] = {"bytes": subject.size, **_profiled(plane, subject)}
    show(_kinds_table(kinds))
    tell("forms of request")
    with _subject(Shape()) as (plane, subject):
        subject.grow(len(FORMS) * _BLOCK)
        forms = _forms(plane, subject, rounds)
    show(_forms_table(forms))
    return {"kinds": kinds, "forms": forms}


@contextmanager
def _subject(shape: Shape) -> Iterator[tuple[ControlPlane, Subject]]:
    with (
        tempfile.TemporaryDirectory(prefix="crdkeeper-bench-") as directory,
        ControlPlane(Path(directory), controllers=()) as plane,
    ):
        yield plane, Subject(plane, shape)


def _profiled(plane: ControlPlane, subject: Subject) -> dict[str, Any]:
    """CPU milliseconds per object, and the part of each kind of work."""
    server, meter = Server(plane.kubeconfig), Meter({"apiserver": plane.api_servers[0].pid})
    subject.flip()
    patches = list(requests(server, GROUP, subject.version, PLURAL))
    channels = [Channel(server) for _ in range(_AT_ONCE)]
    with ThreadPoolExecutor(1) as pool:
        profiled = pool.submit(profile, Server(plane.kubeconfig), _PROFILE_SECONDS)
        before = meter.read()
        patch(channels, patches)
        used = before.until(meter.read()).cpu["apiserver"]
        found = profiled.result()
    subject.check()
    return {"milliseconds": 1000 * used / subject.count, "shares": shares(found)}


def _forms(plane: ControlPlane, subject: Subject, rounds: int) -> dict[str, list[float]]:
    """CPU milliseconds of the API server per object, of each form in each round."""
    server, meter = Server(plane.kubeconfig), Meter({"apiserver": plane.api_servers[0].pid})
    channels = [Channel(server) for _ in range(_AT_ONCE)]
    used: dict[str, list[float]] = {name: [] for name in FORMS}
    for turn in range(rounds):
        tell(f"round {turn + 1} of {rounds}")
        prefix = f"/apis/{GROUP}/{subject.flip()}/{PLURAL}"
        listed = list(server.list(prefix, accept="application/json"))
        for place, (name, form) in enumerate(FORMS.items()):
            # Each round, a form gets other objects and another place in the order.
            at = (place + turn) % len(FORMS) * _BLOCK
            made = [form.request(server, prefix, each) for each in listed[at : at + _BLOCK]]
            before = meter.read()
            patch(channels, made)
            used[name].append(1000 * before.until(meter.read()).cpu["apiserver"] / len(made))
        subject.check()
    return used


@contextmanager
def _watches(plane: ControlPlane, number: int) -> Iterator[None]:
    """That many clients that watch all objects, and read what comes."""
    over = threading.Event()

    def drain() -> None:
        with suppress(OSError, HTTPException):  # the control plane ends before them
            for _ in Server(plane.kubeconfig).watch_all(f"/apis/{GROUP}/v1/{PLURAL}"):
                if over.is_set():
                    return

    threads = [threading.Thread(target=drain, daemon=True) for _ in range(number)]
    for each in threads:
        each.start()
    yield
    over.set()


def _admit(plane: ControlPlane) -> None:
    """Has a ValidatingAdmissionPolicy look at every write."""
    rule = {"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["*"], "resources": [PLURAL]}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": _POLICY}}
    policy = {
        **kind,
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "object.spec.routes.all(each, each.timeoutSeconds < 1000)"}],
        },
    }
    binding = {
        **kind,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": _POLICY, "validationActions": ["Deny"]},
    }
    for each in (policy, binding):
        plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(each))


def _kinds_table(kinds: dict[str, dict[str, Any]]) -> list[str]:
    lines = [f"CPU of the API server per object of {CRD}, {_AT_ONCE} patches at a time, and its parts", ""]
    lines.append(f"{'':<48}" + "".join(f"{name:>22}" for name in kinds))
    lines.append(f"{'bytes':<48}" + "".join(f"{each['bytes']:>22,}" for each in kinds.values()))
    lines.append(
        f"{'CPU per object':<48}" + "".join(f"{each['milliseconds']:>19.2f} ms" for each in kinds.values())
    )
    lines += [
        f"{work:<48}" + "".join(f"{each['shares'][work]:>22.0%}" for each in kinds.values())
        for work in (*WORK, OTHER)
    ]
    return lines


def _forms_table(forms: dict[str, list[float]]) -> list[str]:
    ours = forms[OURS]
    lines = [f"CPU of the API server per object by form of request; medians of {len(ours)} rounds", ""]
    for name, used in forms.items():
        part = median(each / own for each, own in zip(used, ours, strict=True))
        spread = f"({min(used):.2f}-{max(used):.2f})"
        lines.append(f"{name:<52}{median(used):>8.2f} ms {spread:>14}{part:>8.0%} of ours")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """See `execute`."""
    parser = parser_of("serverpart", __doc__)
    parser.add_argument("--objects", type=int, default=3000, metavar="N", help="of each kind of CRD")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="of all forms of request")
    return execute(lambda options: run(options.objects, options.rounds), parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
