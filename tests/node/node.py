"""One node: a machine with containerd, kubelet and kube-proxy, registered with the API server."""

from collections.abc import Callable
from pathlib import Path

from tests.controlplane.plane import ControlPlane
from tests.controlplane.probe import answers
from tests.controlplane.processes import Process
from tests.node import configuration
from tests.node.machines import CommandFailed, Machine
from tests.node.programs import Programs

PROXY = "system:kube-proxy"


def user(name: str) -> str:
    """The user as whom the kubelet of that node authenticates to the API server."""
    return f"system:node:{name}"


class Node:
    """A node on a running, connected machine. Start its runtime first, then the rest."""

    def __init__(self, machine: Machine, programs: Programs, plane: ControlPlane, *, dns: str) -> None:
        self.machine = machine
        self.name = machine.name
        self._programs = programs
        files = machine.files / "etc"
        networks = files / "networks"
        configuration.write(networks / "pods.conflist", configuration.network(machine))
        runtime = configuration.write(files / "containerd.toml", configuration.containerd(programs, networks))
        self.containerd = machine.process(
            "containerd", programs.containerd, {"config": str(runtime)}, ready=self._runtime_answers
        )
        kubeconfig = plane.kubeconfig_for(f"kubelet-{self.name}", token=plane.pki.tokens[user(self.name)])
        settings = configuration.write(
            files / "kubelet.json", configuration.kubelet(machine, plane.pki, dns=dns)
        )
        self.kubelet = machine.process(
            "kubelet",
            programs.kubelet,
            {
                "config": str(settings),
                "kubeconfig": str(kubeconfig),
                "hostname-override": self.name,
                "node-ip": machine.address,
            },
            ready=self._answers(10248, "/healthz", host="127.0.0.1"),
        )
        proxy = configuration.kube_proxy(
            machine, plane.kubeconfig_for("kube-proxy", token=plane.pki.tokens[PROXY])
        )
        self.kube_proxy = machine.process(
            "kube-proxy",
            programs.kube_proxy,
            {"config": str(configuration.write(files / "kube-proxy.json", proxy))},
            ready=self._answers(10249, "/healthz", host="127.0.0.1"),
        )

    def start_runtime(self) -> None:
        """Starts containerd: from then on images can be imported."""
        self.containerd.start()
        self.containerd.wait_ready()

    def import_image(self, archive: Path) -> None:
        """Adds the images of an OCI archive for pods; nothing is ever pulled."""
        self.ctr("images", "import", archive)

    def ctr(self, *words: str | Path) -> str:
        """The output of `ctr`, in the namespace that the kubelet uses."""
        return self.machine.run(
            self._programs.ctr, "--address", configuration.SOCKET, "--namespace", "k8s.io", *words
        )

    def start(self) -> None:
        """Starts kubelet and kube-proxy and returns when they run; the node may need seconds to be Ready."""
        programs = (self.kube_proxy, self.kubelet)
        for each in programs:
            each.start()
        for each in programs:
            each.wait_ready()

    @property
    def processes(self) -> tuple[Process, ...]:
        """Its programs, those that depend on others first."""
        return (self.kubelet, self.kube_proxy, self.containerd)

    def _answers(self, port: int, path: str, *, host: str) -> Callable[[], bool]:
        def ask() -> bool:
            with self.machine.network():
                return answers(port, path, host=host)

        return ask

    def _runtime_answers(self) -> bool:
        try:
            return bool(self.ctr("version"))
        except CommandFailed:
            return False
